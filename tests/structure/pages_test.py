#!/usr/bin/env python3
"""scripts/check_pages.py and the bundler find what they are there for: mistakes planted in a copy of the pages."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "scripts/check_pages.py"
SKIPPED = 77


class Pages(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = Path(self.directory.name)
        shutil.copytree(ROOT / "pages", self.root / "pages")

    def tearDown(self):
        self.directory.cleanup()

    def check(self):
        done = subprocess.run([sys.executable, CHECK, "--root", self.root], capture_output=True, text=True)
        return done.returncode, done.stderr

    def bundle(self, file):
        done = subprocess.run(["esbuild", "--bundle", "--minify", "--format=esm", "--log-level=warning", f"pages/{file}"],
                              cwd=self.root, capture_output=True, text=True)  # as in cmake/ZooEmbed.cmake
        return done.returncode, done.stderr

    def plant(self, file, line):
        """Adds a line behind the imports of a module."""
        path = self.root / "pages" / file
        before, begin, after = path.read_text().partition("\nimport {")
        path.write_text(f"{before}\n{line}{begin}{after}" if line.startswith("import") else f"{before}{begin}{after}{line}\n")

    def expect(self, *parts):
        code, text = self.check()
        self.assertEqual(code, 1)
        for part in parts:
            self.assertIn(part, text)

    def test_the_sources_pass(self):
        code, text = self.check()
        self.assertEqual(code, 0, text)

    def test_an_import_from_a_module_that_is_not_there(self):
        self.plant("report/report_zoom.js", "import {zoom} from './report_lens.js';")
        self.expect("pages/report/report_zoom.js: there is no './report_lens.js'")
        code, text = self.bundle("report/report_page.js")
        self.assertEqual(code, 1)
        self.assertIn('Could not resolve "./report_lens.js"', text)
        self.assertIn("pages/report/report_zoom.js", text)

    def test_an_import_of_a_name_that_is_not_there(self):
        self.plant("report/report_zoom.js", "import {zoom} from '../page.js';")
        self.plant("report/report_zoom.js", "zoom();")
        self.expect("pages/report/report_zoom.js: '../page.js' exports no zoom")
        code, text = self.bundle("report/report_page.js")
        self.assertEqual(code, 1)
        self.assertIn('No matching export in "pages/page.js" for import "zoom"', text)

    def test_an_import_that_nothing_uses(self):
        self.plant("report/report_zoom.js", "import {el} from '../page.js';")
        self.expect("pages/report/report_zoom.js:3:", "'el' is imported but never used")

    def test_an_export_that_nothing_uses(self):
        self.plant("report/report_zoom.js", "export const LENS = 2;")
        self.expect("pages/report/report_zoom.js: no module imports LENS")

    def test_a_private_name_that_nothing_uses(self):
        self.plant("report/report_zoom.js", "const LENS = 2;")
        self.expect("pages/report/report_zoom.js:", "'LENS' is declared but never used")

    def test_a_name_that_nothing_declares(self):
        self.plant("report/report_zoom.js", "magnify();")
        self.expect("pages/report/report_zoom.js:", "'magnify' is not defined")

    def test_a_private_name_of_another_module(self):
        self.plant("report/report_zoom.js", "niceTicks(0, 1, false, 3);")
        self.expect("'niceTicks' is not defined")

    def test_a_circle(self):
        self.plant("page.js", "import {weightText} from './heat_map.js';\n")
        self.plant("page.js", "weightText(1);")
        self.expect("import(no-cycle)")

    def test_another_form_of_import_or_export(self):
        self.plant("report/report_zoom.js", "import * as everything from '../page.js';")
        self.plant("report/report_lines.js", "const A = 1; console.log(A);\nexport {A as B};")
        self.expect("report_zoom.js: import names", "report_lines.js: export one name")


if __name__ == "__main__":
    sys.path.insert(0, str(CHECK.parent))
    from check_pages import find_oxlint
    if not find_oxlint() and not os.environ.get("ZOO_REQUIRE_REFERENCES"):
        print("no oxlint: scripts/setup.sh --tests installs it")
        sys.exit(SKIPPED)
    unittest.main()
