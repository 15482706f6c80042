#!/usr/bin/env python3
"""scripts/applications.py, with a program in the place of zoo that gives fixed outputs."""

import json
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/applications.py"
ZOO = f"""#!{sys.executable}
import json, sys
command, run, *arguments = sys.argv[1:]
if run.endswith("missing"):
    sys.exit("zoo: no such run")
if command == "predict" and "--audio" in arguments:
    results = [{{"text": file.split("/")[-1][0]}} for file in arguments[arguments.index("--audio") + 1:] if file[0] != "-"]
elif command == "predict":
    results = [{{"tokens": [{{"label": "H"}} for _ in arguments[1]]}}]
elif "--temperature" in arguments:
    results = [{{"outputs": [{{"text": " pass"}}]}} for argument in arguments if argument == "--prompt"]
else:
    results = [{{"outputs": [{{"text": f"sample {{i}}"}} for i in range(10)]}}]
print(json.dumps({{"results": results}}))
"""
FUNCTION = "def f{i}(x):\n    a = 1\n    b = 2\n    c = 3\n    return x"


class Applications(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.dir = Path(self.temporary.name)
        self.write("zoo", ZOO).chmod(stat.S_IRWXU)
        for name in ("fsdd", "fsdd-strings"):
            self.write(f"datasets/{name}/test.tsv", "audio\ttext\tspeaker\n" +
                       "".join(f"recordings/{i}.wav\tsaid {i}\tann\n" for i in range(20)))
        self.write("datasets/proteins/structure.test.tsv", "sequence\tdssp3\n" + "ACDEF\t-HHE-\n" * 12)
        self.write("datasets/python-stdlib/test.jsonl",
                   "".join(json.dumps({"text": FUNCTION.replace("{i}", str(i))}) + "\n" for i in range(15)))

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--zoo", self.dir / "zoo", "--datasets", self.dir / "datasets",
                               "--runs", self.dir, *arguments], capture_output=True, encoding="utf-8")

    def test_ten_outputs_of_each(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^\| `(\d+)\.wav` \| ann \| said (\d+) \| (\d) \|$", done.stdout, re.MULTILINE)
        self.assertEqual(len(rows), 20)
        for recording, said, written in rows:
            self.assertEqual((said, written), (recording, recording[0]))
        self.assertEqual(done.stdout.count("2 of 3 right"), 10)
        self.assertIn("sequence   CDEF\npredicted  HHHH\ntrue       HHE-", done.stdout)
        self.assertEqual(done.stdout.count("sample 9"), 2)
        self.assertEqual(done.stdout.count("# masked"), 10)
        self.assertEqual(done.stdout.count(" pass   # written"), 10)

    def test_only_the_section_changes(self):
        begin = "<!-- functions: begin, made by scripts/applications.py --write -->"
        page = self.write("page.md", f"before\n{begin}\nold\n<!-- functions: end -->\nafter\n")
        self.assertEqual(self.run_script("--only", "functions", "--page", page, "--write").returncode, 0)
        text = page.read_text(encoding="utf-8")
        self.assertTrue(text.startswith(f"before\n{begin}\n\n```python\nsample 0\n\nsample 1"), text)
        self.assertTrue(text.endswith("sample 9\n```\n\n<!-- functions: end -->\nafter\n"), text)
        done = self.run_script("--only", "tunes", "--page", page, "--write")
        self.assertEqual(done.returncode, 1)
        self.assertIn("page.md: the lines around tunes are missing", done.stderr)
        self.assertEqual(page.read_text(encoding="utf-8"), text)

    def test_what_the_program_complains_about_is_shown(self):
        self.write("zoo", ZOO.replace('"missing"', '"python"'))
        done = self.run_script("--only", "functions")
        self.assertEqual((done.returncode, done.stderr), (1, "zoo: no such run\n"))


if __name__ == "__main__":
    unittest.main()
