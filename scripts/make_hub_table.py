#!/usr/bin/env python3
"""Keeps the tables in docs/hub.md equal to what the tests compare: families with transformers, and published models with
what their files say.

  scripts/make_hub_table.py           fails if a table is not current
  scripts/make_hub_table.py --write   writes them into the page

A row for each family of interop/foreign_families.cpp:
  - its words and classes are those of its ForeignFamily in interop/families/
  - what is compared: the directories that tests/parity/reference_interop.py has written, if
    tests/parity/interop_parity_test.cpp reads them
  - its name in GGUF files: the architectures in interop/gguf/
  - remarks: REMARKS in tests/parity/reference_interop.py
A row for each family of the published models whose facts tests/interop/published_test.cpp checks: tests/published.
ZOO_REFERENCES: the folder of the references; default build/release/tests/references. `ctest --preset release -R
parity.References` makes them.
"""

import argparse
import ast
import json
import os
import re
import sys
from pathlib import Path

from page_section import with_section

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/hub.md"
CASES, REFERENCE = ROOT / "tests/parity/interop_parity_test.cpp", ROOT / "tests/parity/reference_interop.py"
PAIRS = ROOT / "tests/parity/pairs_parity_test.cpp"  # of pictures and texts
MARKS = {name: (f"<!-- {name}: begin, made by scripts/make_hub_table.py --write -->", f"<!-- {name}: end -->")
         for name in ("families", "published")}  # fmt: skip
PUBLISHED = ROOT / "tests/published"
SKIPPED = 77
# What a tensor of a reference stands for.
COMPARED = {
    "text_vectors": "vectors of texts and of pictures", "logits_per_image": "scores",
    "logits": "logits", "hidden": "hidden states", "maps": "attention maps", "left_logits": "padding on the left",
    "cache": "token by token with a cache", "greedy": "greedy search", "beams": "beam search", "boxes": "boxes",
    "loss": "loss", "upstream": "gradients", "loss_of_targets": "loss and all gradients", "contacts": "contacts",
    "ctc_loss": "loss of CTC and all gradients, texts",
}
# Classes that another test than that of all families compares: tests/parity/folding_parity_test.cpp.
COMPARED_ELSEWHERE = {"EsmForProteinFolding"}
TYPES = {"F32": "fp32", "BF16": "bf16", "F16": "fp16"}


class Problem(Exception):
    pass


class Missing(Problem):
    """The references are not there."""


def joined(text):
    """The value of C++ string literals that follow one another."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))


def families():
    """{model_type: (words, {class: task})}, in the order of the program."""
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "interop/families").rglob("*.cpp")))
    sources = re.sub(r"^\s*//.*\n", "", sources, flags=re.MULTILINE)
    result = {}
    listed = (ROOT / "interop/foreign_families.cpp").read_text(encoding="utf-8")
    listed = re.search(r"& foreign_families\(\) {(.*?)^}", listed, re.MULTILINE | re.DOTALL)[1]
    for function in re.findall(r"(\w+_foreign)\(\)", listed):
        body = re.search(rf"^ForeignFamily {function}\(\) {{(.*?)^}}", sources, re.MULTILINE | re.DOTALL)
        parts = body and re.search(r"\.model_type = (.*?),\s*\.doc =\s*(.*?),\s*\.classes = {(.*?)},\s*\.read", body[1], re.DOTALL)
        if not parts:
            raise Problem(f"interop/families: {function}() has no .model_type, .doc, .classes and .read")
        model_type, words, classes = parts.groups()
        result[joined(model_type)] = joined(words), dict(re.findall(r'{"(\w+)",\s*"(\w+)"}', classes))
    return result


def cases():
    """The names of the cases that the test reads, and of those that generate."""
    def names(function, path=CASES):
        text = path.read_text(encoding="utf-8")
        body = re.search(rf"^std::vector<\S+> {function}\([^)]*\) {{(.*?)^}}", text, re.MULTILINE | re.DOTALL)
        found = re.findall(r'{"(\w+)", (\d+)}', body[1] if body else "")
        if not found:
            raise Problem(f"{path.name}: {function}() has no cases")
        return {f"{name}_{i}" for name, count in found for i in range(int(count))}
    writers = names("writers")
    return writers | names("cases") | names("opened") | names("pair_cases", PAIRS), writers


def header(path):
    """{tensor: {"dtype", "shape", …}} of a safetensors file."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return {name: entry for name, entry in json.loads(file.read(length)).items() if name != "__metadata__"}


def references():
    """The directories of models, by name."""
    folder = Path(os.environ.get("ZOO_REFERENCES", ROOT / "build/release/tests/references")) / "reference_interop"
    # Those for vectors of sentences and of packed weights are compared by tests of their own.
    found = {path.parent.name: path.parent for path in sorted(folder.glob("*/config.json"))
             if not path.parent.name.startswith("sentence_") and "_packed" not in path.parent.name}  # fmt: skip
    if not found:
        raise Missing(f"{folder} has no references; ctest --preset release -R parity.References makes them")
    return found


def compared():
    """{model_type: (classes, what is compared, types of weights)}"""
    read, writers = cases()
    directories = references()
    if read != directories.keys():
        names = ", ".join(sorted(read ^ directories.keys()))
        raise Problem(f"{REFERENCE.name} and {CASES.name} have different cases: {names}; or the references are old")
    result = {}
    for name, directory in directories.items():
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        classes, what, types = result.setdefault(config["model_type"], (set(), set(), set()))
        classes.update(config["architectures"])
        what.update(header(directory.with_name(f"{name}.safetensors")))
        if name in writers:
            what.add("cache")
        weights = next(directory.glob("*.safetensors"))
        types.update(entry["dtype"] for entry in header(weights).values())
    return result


def gguf_names():
    """{model_type: name of the architecture in GGUF files}"""
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "interop/gguf").glob("*.cpp")))
    pattern = r'(?:\.name = |llama_like\()"([^"]+)",\s*(?:\.model_type = )?"([^"]+)"'
    found = {model_type: name for name, model_type in re.findall(pattern, sources)}
    if "llama" not in found or "gpt2" not in found:
        raise Problem("interop/gguf: there are no architectures with a name and a model_type")
    return found


def remarks():
    for node in ast.parse(REFERENCE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "REMARKS":
            return ast.literal_eval(node.value)
    raise Problem(f"{REFERENCE.name} lacks REMARKS")


def table():
    known, seen, notes, stored = families(), compared(), remarks(), gguf_names()
    for model_type in (seen.keys() | notes.keys() | stored.keys()) - known.keys():
        raise Problem(f"interop/foreign_families.cpp has no family {model_type}")
    lines = [
        "| `model_type` | models | tasks that are compared | equal to transformers | opened, but not compared | GGUF | remarks |",
        "|---|---|---|---|---|---|---|",
    ]
    for model_type, (words, classes) in known.items():
        if model_type not in seen:
            raise Problem(f"{REFERENCE.name} has no case for {model_type}")
        used, what, types = seen[model_type]
        used |= COMPARED_ELSEWHERE & classes.keys()
        missing = used - classes.keys()
        if missing:
            raise Problem(f"interop/families: {model_type} lacks {', '.join(sorted(missing))}")
        cells = [
            f"`{model_type}`", words, ", ".join(dict.fromkeys(task for name, task in classes.items() if name in used)),
            ", ".join(text for name, text in COMPARED.items() if name in what)
            + "; " + ", ".join(text for name, text in TYPES.items() if name in types),
            ", ".join(f"`{name}`" for name in classes if name not in used) or "–",
            f"`{stored[model_type]}`" if model_type in stored else "–", notes.get(model_type, ""),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def published_table():
    models = {}
    for path in sorted(PUBLISHED.glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        seen = any("seen" in group for group in facts["tensors"])
        kind = "refused" if "refused" in facts else "seen" if seen else "computed"
        models.setdefault(facts["family"], {}).setdefault(kind, []).append(facts)
    lines = ["| `model_type` | names of tensors seen | names computed from config.json | refused |", "|---|---|---|---|"]
    for model_type in families():
        kinds = models.get(model_type, {})
        cells = [f"`{model_type}`"]
        cells += [", ".join(facts["model"] for facts in kinds.get(kind, [])) or "–" for kind in ("seen", "computed")]
        cells.append(", ".join(f"{facts['model']} ({facts['refused']})" for facts in kinds.get("refused", [])) or "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    try:
        page = PAGE.read_text(encoding="utf-8")
        new = page
        for (begin, end), content in zip(MARKS.values(), (table(), published_table()), strict=True):
            new = with_section(new, begin, end, content)
            if new is None:
                raise Problem(f"{PAGE.name} lacks the lines {begin} and {end}")
        if arguments.write:
            PAGE.write_text(new, encoding="utf-8")
        elif new != page:
            raise Problem(f"{PAGE.relative_to(ROOT)} is not current; run scripts/make_hub_table.py --write")
    except (Problem, OSError) as problem:
        print(f"make_hub_table: {problem}", file=sys.stderr)
        may_skip = isinstance(problem, Missing) and "ZOO_REQUIRE_REFERENCES" not in os.environ
        sys.exit(SKIPPED if may_skip else 1)


if __name__ == "__main__":
    main()
