#!/usr/bin/env python3
"""scripts/check_rooms.py finds what it is there for: mistakes planted in a copy of the sources."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "scripts/check_rooms.py"


class Rooms(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = Path(self.directory.name)
        folders = {line.split()[0].split("/")[0] for line in (ROOT / "scripts/rooms.txt").read_text().splitlines()
                   if line and not line.startswith("#")}
        for folder in [*folders, "scripts", "docs"]:
            shutil.copytree(ROOT / folder, self.root / folder,
                            ignore=shutil.ignore_patterns("*.html", "*.png", "*.js", "*.css", "*.svg", "__pycache__"))

    def tearDown(self):
        self.directory.cleanup()

    def check(self):
        done = subprocess.run([sys.executable, CHECK, "--root", self.root], capture_output=True, text=True)
        return done.returncode, done.stderr

    def plant(self, file, include):
        path = self.root / file
        path.write_text(f'#include "{include}"\n' + path.read_text())

    def test_the_sources_pass(self):
        self.assertEqual(self.check(), (0, ""))

    def test_an_include_that_points_up(self):
        self.plant("layers/weights/norm.h", "models/model.h")
        code, text = self.check()
        self.assertEqual(code, 1)
        self.assertIn("layers/weights/norm.h:1: layers/weights includes models, which stands above it", text)

    def test_an_include_between_subfolders(self):
        self.plant("tasks/metrics/text_metrics.h", "tasks/task.h")
        self.assertIn("tasks/metrics includes tasks", self.check()[1])

    def test_a_folder_that_another_has_to_do_without(self):
        self.plant("pages/playground/playground_page.h", "training/learner.h")
        self.assertIn("serving/api: a path of includes leads to training, which serving has to do without",
                      self.check()[1])

    def test_a_folder_without_a_floor(self):
        (self.root / "layers/attic").mkdir()
        (self.root / "layers/attic/old.h").write_text("#pragma once\n")
        self.assertIn("layers/attic: this folder has no floor", self.check()[1])

    def test_a_full_folder(self):
        (self.root / "io/parts.h").write_text("#pragma once\n\n// Not counted.\n" + "int part();\n" * 2000)
        self.assertRegex(self.check()[1], r"io: \d+ lines, more than 3000")

    def test_a_full_top_folder(self):
        for i in range(4):
            (self.root / f"io/part_{i}").mkdir()
            (self.root / f"io/part_{i}/parts.h").write_text("#pragma once\n" + "int part();\n" * 2000)
            with open(self.root / "scripts/rooms.txt", "a") as floors:
                floors.write(f"io/part_{i} parts\n")
        self.assertRegex(self.check()[1], r"io: \d+ lines with its subfolders, more than 12000")

    def test_an_include_of_what_is_not_there(self):
        self.plant("layers/weights/norm.h", "norm_options.h")
        self.assertIn('there is no "norm_options.h"', self.check()[1])

    def test_a_drawing_of_other_sources(self):
        self.plant("apps/config.cpp", "costs/scaling.h")
        (self.root / "docs/architecture.md").write_text(
            (self.root / "docs/architecture.md").read_text().replace("[base]", "[basement]"))
        self.assertIn("the drawing does not match the sources", self.check()[1])


if __name__ == "__main__":
    unittest.main()
