#!/usr/bin/env python3
"""scripts/quote_sources.py finds quotations that differ from their sources, and renews them."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """namespace zoo {

int declared(int x);

int Impl::twice(int x) {
  // NOLINTNEXTLINE(some-check)
  switch (x) {
    case 0:
      return 0;
    case 1:
      return 2;
  }
  return 2 * x;
}

int shorter() { return 1; }

}  // namespace zoo
"""


class Quotes(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = Path(self.directory.name)
        (self.root / "a.cpp").write_text(SOURCE)

    def tearDown(self):
        self.directory.cleanup()

    def run_on(self, mark, code="old\n", *options):
        page = self.root / "page.md"
        page.write_text(f"Text.\n\n<!-- quote {mark} -->\n```cpp\n{code}```\n\nMore.\n")
        done = subprocess.run([sys.executable, ROOT / "scripts/quote_sources.py", "--root", self.root, *options, "page.md"],
                              capture_output=True, text=True)
        return done.returncode, done.stderr, page.read_text()

    def written(self, mark):
        code, errors, text = self.run_on(mark, "old\n", "--write")
        self.assertEqual((code, errors), (0, ""))
        self.assertTrue(text.startswith("Text.\n") and text.endswith("\nMore.\n"), text)
        return text.split("```cpp\n")[1].split("```")[0]

    def test_what_is_quoted(self):
        self.assertEqual(self.written("a.cpp"), SOURCE.replace("  // NOLINTNEXTLINE(some-check)\n", ""))
        self.assertEqual(self.written("a.cpp shorter"), "int shorter() { return 1; }\n")
        twice = self.written("a.cpp Impl::twice")
        self.assertTrue(twice.startswith("int Impl::twice(int x) {\n") and twice.endswith("  return 2 * x;\n}\n"), twice)
        self.assertEqual(self.written('a.cpp Impl::twice from "case 1" to "return"'), "case 1:\n  return 2;\n")

    def test_a_quotation_that_differs(self):
        code, errors, text = self.run_on("a.cpp shorter")
        self.assertEqual(code, 1)
        self.assertIn("page.md: a quotation differs from its source", errors)
        self.assertIn("old", text)
        self.assertEqual(self.run_on("a.cpp shorter", "int shorter() { return 1; }\n")[:2], (0, ""))

    def test_quotations_of_nothing(self):
        for mark, problem in (("b.cpp", "there is no such file"), ("a.cpp thrice", "there is no definition of thrice"),
                              ("a.cpp declared", "there is no definition of declared"),
                              ('a.cpp Impl::twice from "case 7" to "return"', "no line contains 'case 7'"),
                              ("a.cpp Impl::twice case", "write FILE NAME from")):
            code, errors, _ = self.run_on(mark)
            self.assertEqual(code, 1, mark)
            self.assertIn(problem, errors)

    def test_a_mark_without_code(self):
        (self.root / "page.md").write_text("<!-- quote a.cpp -->\nText.\n")
        done = subprocess.run([sys.executable, ROOT / "scripts/quote_sources.py", "--root", self.root, "page.md"],
                              capture_output=True, text=True)
        self.assertIn("not followed by a code block", done.stderr)

    def test_all_pages_without_a_name(self):
        (self.root / "docs").mkdir()
        for name in ("README.md", "README.zh-CN.md", "docs/texts.md", "docs/tour.md"):
            (self.root / name).write_text("<!-- quote a.cpp shorter -->\n```cpp\nold\n```\n")
        done = subprocess.run([sys.executable, ROOT / "scripts/quote_sources.py", "--root", self.root], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 1)
        for name in ("README.md", "README.zh-CN.md", "docs/texts.md", "docs/tour.md"):
            self.assertIn(f"{name}: a quotation differs", done.stderr)


if __name__ == "__main__":
    unittest.main()
