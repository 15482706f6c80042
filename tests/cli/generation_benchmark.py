#!/usr/bin/env python3
"""Runs the benchmark of generation on tiny models and checks its output.

    generation_benchmark.py ZOO

All engines must have written the same tokens with the same model. Exit code without a PyTorch: 77, or 1 if
ZOO_REQUIRE_REFERENCES is set.
"""

import json
import sys
import tempfile
from math import isclose
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from benchmark import check, check_success, run, run_test  # noqa: E402

PROGRAM = "generation/run.py"
OPTIONS = ("--smoke", "--threads", "1", "--batches", "1", "2")
COMMON = {"cold_seconds", "peak_bytes"}
FIGURES = {"gpt-small": {"prompt", "first_token", "batch_1", "batch_2"} | COMMON, "marian": {"beams"} | COMMON}
ENGINES = {
    ("gpt-small", "fp32"): ["zoo", "transformers", "llama.cpp"], ("gpt-small", "int8"): ["zoo", "llama.cpp"],
    ("marian", "fp32"): ["zoo", "transformers"], ("marian", "int8"): ["zoo"],
}  # fmt: skip
TIMES = ("first_token", "cold_seconds", "peak_bytes")


def check_engine(result, engine, zoo, bytes_per_second, model):
    where = f"{result['model']}, {result['format']}, {engine['name']}"
    figures = engine["figures"]
    check(set(figures) == FIGURES[result["model"]], f"{where} has {sorted(figures)}")
    check(all(figure["median"] > 0 for figure in figures.values()), f"{where}: {figures}")
    check(1 << 20 < figures["peak_bytes"]["median"] < 1 << 32, f"{where}: {figures['peak_bytes']}")
    check(all(figure["setting"] in figure["tried"] for figure in figures.values()), f"{where}: {figures}")
    check(len(engine["tokens"]) == 8, f"{where} wrote {engine['tokens']}")
    if engine is not zoo:
        for key, figure in figures.items():
            ratio = zoo["figures"][key]["median"] / figure["median"]
            expected = 1 / ratio if key in TIMES else ratio
            check(isclose(figure["advantage"]["median"], expected), f"{where}: {key} is {figure}, not {expected}")
        if result["format"] == "fp32":
            check(engine["tokens"] == zoo["tokens"] and engine["equal_tokens"] == 8,
                  f"{where} wrote {engine['tokens']}, zoo {zoo['tokens']}")
    if "batch_1" in figures:
        size = {"fp32": 4, "int8": 1}[result["format"]] * model["read_for_a_token"]
        check(isclose(engine["memory_share"], size * figures["batch_1"]["median"] / bytes_per_second), where)


def main(zoo):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        done = run(PROGRAM, "gpt-small", "marian", *OPTIONS, "--engines", "zoo", "transformers", "llama.cpp", "--formats",
                   "fp32", "int8", "--zoo", zoo, "--json", str(file))
        check_success(done)
        document = json.loads(file.read_text(encoding="utf-8"))
    names = {(result["model"], result["format"]): [e["name"] for e in result["engines"]] for result in document["results"]}
    check(names == ENGINES, f"it compares {names}")
    # A layer has six squares of the width, because its inner width is the same; the head has 400 rows.
    model = document["models"]["gpt-small"]
    check(model["read_for_a_token"] == 2 * 6 * 64**2 + 400 * 64, f"{model}")
    for result in document["results"]:
        for engine in result["engines"]:
            check_engine(result, engine, result["engines"][0], document["memory"], document["models"][result["model"]])
            row = f"| {result['format']} | {engine['name']} |"
            check(row in done.stdout, f"{row} is not in the table: {done.stdout}")
    check("In fp32 the engines write the same tokens." in done.stdout, done.stdout)
    for wrong, word in ((("--engines", "vLLM"), "vLLM"), (("gpt-tiny",), "gpt-tiny"), (("--batches", "0"), "--batches")):
        failed = run(PROGRAM, "--zoo", zoo, *wrong)
        check(failed.returncode == 2 and failed.stderr.count("\n") == 1 and word in failed.stderr,
              f"{wrong} gives {failed.returncode}: {failed.stderr}")


if __name__ == "__main__":
    run_test(main, __doc__)
