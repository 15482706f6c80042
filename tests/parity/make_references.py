"""Runs reference scripts in one process, because importing torch and transformers takes longer than most scripts:

    make_references.py --out DIR [SCRIPT...]        default: every script of this folder

DIR/reference_NAME gets the files of reference_NAME.py. If a script needs a module that is not installed, the file
missing.txt there names the module.
"""

import argparse
import importlib
import pathlib
import shutil


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
    parser.add_argument("scripts", nargs="*", default=sorted(pathlib.Path(__file__).parent.glob("reference_*.py")))
    arguments = parser.parse_args()
    for script in arguments.scripts:
        name = pathlib.Path(script).stem
        run(name, arguments.out / name)


main()
