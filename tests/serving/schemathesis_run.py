#!/usr/bin/env python3
"""Requests that schemathesis makes up from the OpenAPI description of `zoo serve`, right ones and wrong ones: no answer may be an
error of the server or differ from the description.

    schemathesis_run.py ZOO [--examples N] [--seed N]

It takes minutes, so it is no part of the tests. $ZOO_PYTHON, by default the Python of .venv, needs schemathesis (pip install
schemathesis); without it the exit code is 77.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "parity")]
from references_python import PYTHON, SKIPPED, begin  # noqa: E402

begin()
from models import make_models  # noqa: E402
from server import serving  # noqa: E402

# Requests that schemathesis makes up name models that are not there. Three of four get one that can do what is asked.
HOOKS = """
import schemathesis

MODELS = {"/v1/completions": "gpt", "/v1/chat/completions": "chat", "/v1/responses": "chat", "/v1/embeddings": "bert", "/fill": "bert", "/translate": "de-en",
          "/predict": "reviews", "/v1/audio/transcriptions": "speech", "/v1/rerank": "reviews", "/attention": "gpt", "/tokenize": "gpt",
          "/lens": "gpt", "/attribute": "bert", "/ablate": "gpt", "/patch": "gpt"}


@schemathesis.hook
def map_body(context, body):
    if isinstance(body, dict) and isinstance(body.get("model"), str) and len(body["model"]) % 4 != 3:
        return {**body, "model": MODELS.get(context.operation.path, body["model"])}
    return body
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zoo", type=Path)
    parser.add_argument("--examples", type=int, default=50, help="requests of each kind for each path (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not find_spec("schemathesis"):
        print(f"{PYTHON} has no schemathesis")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="zoo-serving-") as folder:
        zoo = arguments.zoo.resolve()
        models = make_models(zoo, folder)
        with serving(zoo, models.values()) as address:
            Path(folder, "hooks.py").write_text(HOOKS, encoding="utf-8")
            env = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": folder}
            command = [
                PYTHON,
                "-m",
                "schemathesis.cli",
                "run",
                f"{address}/openapi.json",
                "--max-examples",
                arguments.examples,
                "--seed",
                arguments.seed,
                # A text that is no picture, a length beyond the model: what the description cannot say is refused, too. So
                # `positive_data_acceptance` is the one check that is left out.
                "--exclude-checks",
                "positive_data_acceptance",
                "--request-timeout",
                "60",
            ]
            return subprocess.run([str(word) for word in command], cwd=folder, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
