#!/usr/bin/env python3
"""tokenizers/unicode/tables.cpp says what the installed `tokenizers` does, and a changed table is noticed."""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = pathlib.Path(os.environ.get("ZOO_PYTHON", ROOT / ".venv/bin/python3"))


def check(script):
    return subprocess.run([PYTHON, script, "--check"], capture_output=True, text=True)


def has_tokenizers():
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", "import tokenizers"], capture_output=True).returncode == 0


if not has_tokenizers():
    print("no Python with tokenizers")
    sys.exit(1 if os.environ.get("ZOO_REQUIRE_REFERENCES") else 77)
result = check(ROOT / "scripts/make_unicode_tables.py")
if result.returncode != 0:
    sys.exit(result.stderr)
with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder)
    (copy / "scripts").mkdir()
    (copy / "tokenizers/unicode").mkdir(parents=True)
    script = ROOT / "scripts/make_unicode_tables.py"
    (copy / "scripts" / script.name).write_text(script.read_text())
    table = (ROOT / "tokenizers/unicode/tables.cpp").read_text()
    (copy / "tokenizers/unicode/tables.cpp").write_text(table.replace("{0x116D0, 0x116E3", "{0x116D0, 0x116E2"))
    planted = check(copy / "scripts" / script.name)
    if planted.returncode == 0 or "does not say what tokenizers" not in planted.stderr:
        sys.exit(f"a changed table was not noticed: {planted.stderr}")
