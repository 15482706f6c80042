"""For scripts that need the packages of scripts/references.txt: begin() continues the script in a Python that has them."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("ZOO_PYTHON", str(ROOT / ".venv/bin/python3"))
SKIPPED = 77
BEGUN = "ZOO_REFERENCES_BEGUN"

sys.path.insert(0, str(ROOT / "tests/support"))


def begin():
    """Starts the script again in $ZOO_PYTHON, by default that of .venv. Without one the script ends: skipped, or failed if
    ZOO_REQUIRE_REFERENCES is set."""
    if not Path(PYTHON).is_file():
        print(f"there is no {PYTHON}; scripts/setup.sh --tests makes it")
        sys.exit(1 if "ZOO_REQUIRE_REFERENCES" in os.environ else SKIPPED)
    if os.environ.get(BEGUN) != sys.argv[0]:
        os.environ[BEGUN] = sys.argv[0]
        os.execv(PYTHON, [PYTHON, *sys.argv])
