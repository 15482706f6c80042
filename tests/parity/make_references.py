"""Runs reference scripts in one process, because importing torch and transformers takes longer than most scripts:

    make_references.py --out DIR [SCRIPT...]        default: every script of this folder for the newest transformers

DIR/reference_NAME gets the files of reference_NAME.py. If a script needs a module that is not installed, the file
missing.txt there names the module. DIR/versions.txt names the packages that are installed in another version than that of
scripts/references.txt: failing tests say so.
"""

import argparse
import importlib
import importlib.metadata
import pathlib
import shutil

# Scripts for transformers 4 alone: it has tokenizers that call the library SentencePiece, and it writes the older files of
# tokenizers beside tokenizer.json.
OF_VERSION_4 = {"reference_hub_sentencepiece.py", "reference_hub_tokenizers.py"}
PINNED = pathlib.Path(__file__).resolve().parents[2] / "scripts"


def other_versions():
    """Packages in other versions than those that the tests are for; those of transformers 4 are right, too."""
    found = []
    pinned = {}
    for path in (PINNED / "references.txt", PINNED / "references-4.txt"):
        for line in path.read_text().splitlines():
            name, _, version = line.partition("==")
            if version:
                pinned.setdefault(name, []).append(version)
    for name, versions in pinned.items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if installed not in versions:
            found.append(f"{name} {installed} is installed, and the tests are for {versions[0]}")
    return found


def run(script, directory):
    """Runs every case of a script, each from its own seed."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    try:
        import torch

        cases = importlib.import_module(script).CASES
    except ImportError as error:
        (directory / "missing.txt").write_text(str(error))
        return
    torch.set_num_threads(1)
    for seed, case in enumerate(cases):
        torch.manual_seed(seed)
        case(directory)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, required=True)
    scripts = sorted(pathlib.Path(__file__).parent.glob("reference_*.py"))
    newest = [script for script in scripts if script.name not in OF_VERSION_4]
    parser.add_argument("scripts", nargs="*", default=newest)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "versions.txt").write_text("".join(f"{line}\n" for line in other_versions()))
    for script in arguments.scripts:
        name = pathlib.Path(script).stem
        run(name, arguments.out / name)


main()
