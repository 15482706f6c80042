"""Average precision by pycocotools, and cheapest assignments by scipy, on random sets."""

import contextlib
import io

import numpy as np
import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from safetensors.torch import save_file
from scipy.optimize import linear_sum_assignment


def random_set(rng, many):
    """Marked objects and detections of a few images: near ones, wrong ones, equal scores, crowds."""
    n_images, n_categories = rng.integers(1, 8), rng.integers(1, 5)
    marked, detected = [], []
    for image in range(1, n_images + 1):
        for _ in range(rng.integers(0, 12)):
            box = np.round(np.concatenate([rng.uniform(0, 200, 2), np.exp(rng.uniform(1.5, 5.5, 2))]), rng.integers(0, 3))
            category, area = rng.integers(1, n_categories + 1), box[2] * box[3] * rng.uniform(0.6, 1)
            marked.append([image, category, *box, area, rng.random() < 0.1])
            for _ in range(rng.integers(0, 4)):
                near = box + rng.normal(0, rng.choice([0.5, 3, 10]), 4)
                near[2:] = np.maximum(near[2:], 1)
                said = category if rng.random() < 0.8 else rng.integers(1, n_categories + 1)
                detected.append([image, said, *near, np.round(rng.random(), rng.integers(1, 4))])
        for _ in range(rng.integers(0, 150 if many else 4)):
            box = [*rng.uniform(0, 200, 2), *rng.uniform(5, 100, 2)]
            detected.append([image, rng.integers(1, n_categories + 1), *box, np.round(rng.random(), 2)])
    detected.append([1, 1, 0, 0, 5, 5, 0.5])
    return np.array(marked, dtype=float).reshape(-1, 8), np.array(detected, dtype=float)


def by_pycocotools(marked, detected):
    truth = COCO()
    truth.dataset = {
        "images": [{"id": image} for image in range(1, 9)],
        "categories": [{"id": category} for category in range(1, 6)],
        "annotations": [
            {"id": i + 1, "image_id": int(row[0]), "category_id": int(row[1]), "bbox": row[2:6].tolist(),
             "area": float(row[6]), "iscrowd": int(row[7])}
            for i, row in enumerate(marked)
        ],
    }  # fmt: skip
    truth.createIndex()
    found = truth.loadRes([
        {"image_id": int(row[0]), "category_id": int(row[1]), "bbox": row[2:6].tolist(), "score": float(row[6])}
        for row in detected
    ])  # fmt: skip
    evaluation = COCOeval(truth, found, "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats, [precisions_of(evaluation, category) for category in range(5)]


def precisions_of(evaluation, category):
    """Of one category: all, at 0.5, at 0.75, small, medium, large; -1 where there is nothing to find."""

    def mean(thresholds, area):
        values = evaluation.eval["precision"][thresholds, :, category, area, 2]
        return values[values > -1].mean() if (values > -1).any() else -1

    every = slice(None)
    return [mean(every, 0), mean(0, 0), mean(5, 0), mean(every, 1), mean(every, 2), mean(every, 3)]


def average_precision(out):
    rng, tensors = np.random.default_rng(0), {}
    for i in range(200):
        marked, detected = random_set(rng, many=i % 20 == 0)
        with contextlib.redirect_stdout(io.StringIO()):
            expected, categories = by_pycocotools(marked, detected)
        tensors |= {
            f"marked/{i}": torch.from_numpy(marked), f"detected/{i}": torch.from_numpy(detected),
            f"expected/{i}": torch.tensor(expected, dtype=torch.float64),
            f"categories/{i}": torch.tensor(categories, dtype=torch.float64),
        }  # fmt: skip
    save_file(tensors, out / "average_precision.safetensors")


def assignments(out):
    rng, tensors = np.random.default_rng(1), {}
    for i in range(1000):
        n_rows, n_columns = rng.integers(1, 30, 2)
        costs = rng.normal(size=(n_rows, n_columns)) if i % 2 else rng.integers(0, 4, (n_rows, n_columns)).astype(float)
        rows, columns = linear_sum_assignment(costs)
        tensors[f"costs/{i}"] = torch.from_numpy(costs)
        tensors[f"pairs/{i}"] = torch.from_numpy(np.stack([rows, columns], 1).astype(np.int64))
    save_file(tensors, out / "assignments.safetensors")


CASES = [average_precision, assignments]
