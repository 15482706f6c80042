#!/usr/bin/env python3
"""Compares configs/models with the models that are published under the names in their comments (published_models.py).

  catalogue_test.py parameters    the numbers of parameters are those of transformers, and docs/models.md is current
  catalogue_test.py keys          the keys are those that the program reads from the published config.json

ZOO_PROGRAM: the program; default build/release/zoo. ZOO_PYTHON: a Python with torch and transformers; default that of .venv.
"""

import functools
import json
import os
import sys
import tempfile
from pathlib import Path

from references_python import ROOT, begin
from zoo_copies import run_zoo


# What transformers counts in another way.
def without_pooler(model):
    """BigBirdForMaskedLM has a pooler that its head does not use."""
    return -count(model.bert.pooler)


def with_bias_of_logits(model):
    """A bias of the output, which transformers keeps as a buffer."""
    return model.final_logits_bias.numel()


def marian(model):
    """Tables of sinusoids, which transformers keeps as parameters."""
    tables = (model.model.encoder.embed_positions, model.model.decoder.embed_positions)
    return with_bias_of_logits(model) - sum(count(table) for table in tables)


def without_contacts(model):
    """A regression from attention maps, which here is no parameter: training leaves it as it is."""
    return -count(model.esm.contact_head)


def without_sinusoids(model):
    """The encoder's table of sinusoids, which transformers keeps as a parameter that is never trained."""
    return -count(model.model.encoder.embed_positions)


def with_own_output(model):
    """The output of mT5, as with_output()."""
    return model.lm_head.weight.numel()


def with_output(model):
    """The output of T5 1.1, which transformers 5 ties to the embeddings until a file has both."""
    return 0 if model.config.scale_decoder_outputs else model.lm_head.weight.numel()


CORRECTIONS = {
    "t5": with_output, "whisper": without_sinusoids, "big_bird": without_pooler, "esm": without_contacts, "bart": with_bias_of_logits,
    "marian": marian, "pegasus": marian, "mbart": with_bias_of_logits, "mt5": with_own_output,
}  # fmt: skip


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())  # a tied matrix once


def published_parameters(published):
    """Those of the model as transformers builds it, without memory for its numbers."""
    import torch
    import transformers
    from transformers.initialization import no_init_weights

    transformers.logging.set_verbosity_error()
    config = transformers.AutoConfig.for_model(**published.config)
    with torch.device("meta"), no_init_weights():
        model = getattr(transformers, published.class_name)(config)
        model.tie_weights()
    return count(model) + CORRECTIONS.get(config.model_type, lambda _: 0)(model)


# Models that transformers has no class for.
def original_transformer(width, heads, inner, *, final_norms):
    """PyTorch's has two more norms after the layers, which a post-norm model does not have; and one table of tokens."""
    import torch

    with torch.device("meta"):
        model = torch.nn.Transformer(width, heads, 6, 6, inner, batch_first=True)
    norms = count(model.encoder.norm) + count(model.decoder.norm)
    return count(model) - (0 if final_norms else norms) + 37000 * width


def mixer(width, layers, inner_tokens):
    """Tolstikhin et al. 2021, figure 1, with patches of 16 pixels and 1,000 classes."""
    import torch

    def mlp(outer, inner):
        return [torch.nn.Linear(outer, inner), torch.nn.Linear(inner, outer)]

    with torch.device("meta"):
        norms = [torch.nn.LayerNorm(width) for _ in range(2 * layers + 1)]
        mlps = [module for _ in range(layers) for module in mlp(196, inner_tokens) + mlp(width, 4 * width)]
        ends = [torch.nn.Conv2d(3, width, 16, 16), torch.nn.Linear(width, 1000)]
    return sum(map(count, norms + mlps + ends))


BUILT_HERE = {
    "transformer-base": functools.partial(original_transformer, 512, 8, 2048, final_norms=False),
    "transformer-base-pre-norm": functools.partial(original_transformer, 512, 8, 2048, final_norms=True),
    "transformer-big": functools.partial(original_transformer, 1024, 16, 4096, final_norms=False),
    "mixer-s16": functools.partial(mixer, 512, 8, 256),
    "mixer-b16": functools.partial(mixer, 768, 12, 384),
    "mixer-l16": functools.partial(mixer, 1024, 24, 512),
}


def published_of(path):
    """The entries of MODELS for the names on the Hub of a configuration."""
    from make_catalogue import names_on_the_hub
    from published_models import MODELS

    if path.stem in BUILT_HERE:
        return {}
    names = names_on_the_hub(path)
    if not names:
        raise SystemExit(f'{path.name}: its comment lacks "Published as OWNER/MODEL." at the end')
    missing = [name for name in names if name not in MODELS]
    if missing:
        raise SystemExit(f"{path.name}: tests/parity/published_models.py lacks {', '.join(missing)}")
    return {name: MODELS[name] for name in names}


def compare_parameters(paths):
    from make_catalogue import Problem, check, inspected

    costs = {}
    for path in paths:
        try:
            costs[path] = inspected(path)
        except Problem as problem:
            yield f"{path.name}: {problem}"
    for path in costs:
        expected = {name: published_parameters(published) for name, published in published_of(path).items()}
        if path.stem in BUILT_HERE:
            expected["this test"] = BUILT_HERE[path.stem]()
        for name, parameters in expected.items():
            if costs[path]["parameters"] != parameters:
                yield f"{path.name}: {costs[path]['parameters']:,} parameters, but {name} has {parameters:,}"
    if not check(costs, write=False):
        yield "docs/models.md is not current; run scripts/make_catalogue.py --write"


# Keys that no config.json has, and that change neither parameters nor what is computed: how weights are drawn and stored.
FREE = {"init", "init_residual_scaling", "projection", "gate", "classifier_bias"}
# Where a configuration differs on purpose.
ON_PURPOSE = {
    ("t5", "max_positions"): "relative positions have no end, and the configuration has the length of the training",
    ("mt5", "max_positions"): "as for t5",
    ("vit", "norm_eps"): "the authors' program has 1e-6, the conversions to transformers 1e-12",
    ("deit", "norm_eps"): "as for vit",
    ("distilbert", "pooler"): "the configuration can also be trained as a classifier",
}
# What the published file says in words that need the package timm.
OF_THE_FILE = {
    "facebook/detr-resnet-50-dc5": {
        "use_timm_backbone": True, "backbone": "resnet50", "backbone_config": None, "dilation": True
    },
}  # fmt: skip
ALIKE = 1e-12  # relative difference of numbers that were computed in another order


def program(*arguments):
    from make_catalogue import program

    return run_zoo(program(), *arguments)


def keys_of(config):
    """The keys of `model` that its family has, with the values of those that are left out."""
    import yaml

    done = program("config", config)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    experiment = yaml.safe_load(done.stdout)
    model = experiment["model"]
    defaults = {
        "n_kv_heads": model["n_heads"], "head_dim": model["d_model"] // model["n_heads"], "d_ff": 4 * model["d_model"],
        "n_decoder_layers": model["n_layers"], "qkv_bias": model["bias"], "out_bias": model["bias"],
        "ff_bias": model["bias"],
    }  # fmt: skip
    model |= {key: value for key, value in defaults.items() if key in model and model[key] is None}
    if model["attention_scale"] is None:
        model["attention_scale"] = model["head_dim"] ** -0.5
    model["task"] = experiment["task"]["type"] if isinstance(experiment["task"], dict) else experiment["task"]
    return {key: value for key, value in model.items() if key not in FREE}


def differ(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, float):
        return abs(ours - theirs) > ALIKE * abs(theirs)
    return ours != theirs


def data_for(config):
    """The keys of `data` that a model needs: those for recordings say how long they are, and how many bands they have."""
    if config["model_type"] != "whisper":
        return ""
    return f"data: {{audio: {{padding: longest, n_mels: {config['num_mel_bins']}}}}}\n"


def compare_keys(paths):
    not_opened = set()
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            try:
                ours = keys_of(path)
            except RuntimeError as error:
                yield f"{path.name}: {error}"
                continue
            for name, published in published_of(path).items():
                model_type = published.config["model_type"]
                if model_type in not_opened:
                    continue
                directory = Path(folder) / name.replace("/", "--")
                directory.mkdir()
                (directory / "config.json").write_text(json.dumps(published.file() | OF_THE_FILE.get(name, {})))
                config = directory / "experiment.yaml"
                config.write_text(f"init_from: {directory}\n{data_for(published.config)}")
                try:
                    theirs = keys_of(config)
                except RuntimeError as error:
                    if "this family is not known" in str(error):
                        not_opened.add(model_type)
                        continue
                    yield f"{path.name}: {error}"
                    continue
                for key, value in ours.items():
                    if differ(value, theirs[key]) and (model_type, key) not in ON_PURPOSE:
                        yield f"{path.name}: {key} is {value}, but in {name} {theirs[key]}"
    print(f"not opened here, so not compared: {', '.join(sorted(not_opened)) or 'none'}")


def unused(paths):
    from published_models import MODELS

    used = {name for path in paths for name in published_of(path)}
    yield from (f"published_models.py: no configuration is published as {name}" for name in MODELS if name not in used)


def main():
    if sys.argv[1:] not in (["parameters"], ["keys"]):
        sys.exit(__doc__)
    begin()
    sys.path.insert(0, str(ROOT / "scripts"))
    from make_catalogue import configurations

    paths = configurations()
    compare = compare_parameters if sys.argv[1] == "parameters" else compare_keys
    problems = [*unused(paths), *compare(paths)]
    print("\n".join(problems) or f"{len(paths)} configurations agree")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
