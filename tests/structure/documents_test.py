#!/usr/bin/env python3
"""scripts/check_documents.py and scripts/make_papers.py find what they are there for: mistakes planted in a copy of the pages."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_documents  # noqa: E402
import make_papers  # noqa: E402

LEFT_OUT = {".git", ".venv", "build", "runs", "datasets", "data-cache"}


def copy_text(source, target):
    """Large files are not copied."""
    if source.endswith((".md", ".h", ".cpp")):
        shutil.copy(source, target)
    else:
        os.symlink(source, target)


class Documents(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = Path(self.directory.name)
        for path in ROOT.iterdir():
            if path.name in LEFT_OUT:
                continue
            if path.name in ("docs", "text"):  # some tests change these
                shutil.copytree(path, self.root / path.name, copy_function=copy_text)
            elif path.suffix == ".md":
                shutil.copy(path, self.root)
            else:
                (self.root / path.name).symlink_to(path)

    def tearDown(self):
        self.directory.cleanup()

    def run_script(self, script, *options):
        done = subprocess.run([sys.executable, ROOT / "scripts" / script, "--root", self.root, *options], capture_output=True,
                              text=True)
        return done.returncode, done.stderr

    def plant(self, page, old, new):
        path = self.root / page
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def problems_of_papers(self):
        """As scripts/make_papers.py without --write, in this process."""
        text, new, problems = make_papers.check(self.root)
        return problems + (["the files of a row are other ones"] if new != text else [])

    def expect(self, *parts):
        self.assert_all_in(check_documents.check(self.root), parts)

    def expect_of_papers(self, *parts):
        self.assert_all_in(self.problems_of_papers(), parts)

    def assert_all_in(self, problems, parts):
        for part in parts:
            self.assertIn(part, "\n".join(problems))

    def test_the_pages_pass(self):
        self.assertEqual(self.run_script("check_documents.py"), (0, ""))
        self.assertEqual(self.run_script("make_papers.py"), (0, ""))

    # ---- links and lengths

    def test_a_link_to_nothing(self):
        self.plant("docs/glossary.md", "](architecture.md#the-house)", "](architecture.md#the-garden)")
        self.plant("README.md", "](docs/models.md)", "](docs/modules.md)")
        self.expect("docs/glossary.md: architecture.md#the-garden: the page has no such heading",
                    "README.md: there is no docs/modules.md")

    def test_a_file_in_the_text_that_is_not_there(self):
        self.plant("docs/architecture.md", "`apps/compare.cpp`", "`apps/study.cpp`")
        self.expect("docs/architecture.md: there is no file apps/study.cpp")

    def test_a_page_on_performance_that_tells_stories(self):
        with open(self.root / "docs/performance.md", "a") as page:
            page.write("\nAnother experiment.\n" * 100)
        self.expect("docs/performance.md: ", "more than 200: what was tried belongs to docs/log.md")

    # ---- walks

    def test_a_function_that_is_not_there(self):
        self.plant("docs/architecture.md", "`WeightMatrix::rows()`", "`WeightMatrix::columns()`")
        self.plant("docs/architecture.md", "`ConfigVisitor::field()`", "`ConfigVisitor::key()`")
        self.expect("a walk names WeightMatrix::columns() in layers/weights/weights.cpp, which has no such function",
                    "a walk names ConfigVisitor::key() in io/config/describe.h, which has no such function")

    def test_a_function_of_another_file(self):
        self.plant("docs/architecture.md", "`serving/api/api.cpp` `Api::handle()`", "`serving/service.cpp` `Api::handle()`")
        self.expect("a walk names Api::handle() in serving/service.cpp, which has no such function")

    def test_a_file_that_is_not_there(self):
        self.plant("docs/architecture.md", "1. `apps/use/serve.cpp`", "1. `apps/serve.cpp`")
        self.expect("a walk names apps/serve.cpp, which is not there")

    def test_a_step_without_a_function_and_a_walk_that_is_missing(self):
        self.plant("docs/architecture.md", "1. `checkpoints/stored_model.cpp` `open_stored_model()` sees", "1. It sees")
        self.plant("docs/architecture.md", "**Where a key's limit is**", "Where a key's limit is")
        self.expect("step 1 of a walk names no file with a function: It sees that the directory",
                    "the section '## Four walks' has 3 walks, not 4")

    # ---- components

    def test_a_component_whose_source_or_test_is_not_there(self):
        self.plant("docs/components.md", "| optimizers/schedules |", "| optimizers/plan |")
        self.plant("docs/components.md", "| layers/mask_test |", "| layers/masks_test |")
        self.expect("docs/components.md: 'schedules: constant, linear, cosine, WSD…' names optimizers/plan, which is not there",
                    "names layers/masks_test, which is not there")

    # ---- translations

    def test_code_that_differs(self):
        self.plant("docs/tour.zh-CN.md", "return {torch::matmul(weights.to", "return {torch::mul(weights.to")
        self.expect("docs/tour.zh-CN.md: section 2: other blocks of code and formulas than in tour.md")

    def test_commands_and_outputs_that_differ(self):
        self.plant("docs/tour.zh-CN.md", "123,653,760", "123,653,761")
        self.plant("README.zh-CN.md", "seeds: 3", "seeds: 4")
        self.expect("docs/tour.zh-CN.md: section 6: other blocks of code and formulas than in tour.md: 't5",
                    "README.zh-CN.md: section 2: other blocks of code and formulas than in README.md: 'seeds: 4'")

    def test_a_comment_may_differ(self):
        self.plant("README.md", "# explains a key", "# says what a key means")
        self.assertEqual(check_documents.check(self.root), [])

    def test_a_formula_that_differs(self):
        self.plant("docs/tour.zh-CN.md", r"10000^{2i/D}", r"10000^{i/D}")
        self.expect("docs/tour.zh-CN.md: section", "other blocks of code and formulas than in tour.md")

    def test_numbers_links_and_pictures_that_differ(self):
        self.plant("README.zh-CN.md", "1.52", "1.53")
        self.plant("README.zh-CN.md", "](docs/limits.md)", "](docs/gpu.md)")
        self.plant("docs/tour.zh-CN.md", "images/tour-heads.svg", "images/tour-residual.svg")
        self.expect("README.zh-CN.md: section 1: other numbers than in README.md: missing ['1.52'], in place of them ['1.53']",
                    "README.zh-CN.md: section", "other links and pictures than in README.md",
                    "docs/tour.zh-CN.md: section 3: other links and pictures than in tour.md")

    def test_a_section_that_is_missing_and_a_page_without_a_link_to_its_language(self):
        text = self.text("docs/tour.zh-CN.md")
        last = text.rindex("\n## ")
        (self.root / "docs/tour.zh-CN.md").write_text(text[:last + 1])
        self.plant("README.md", "[简体中文](README.zh-CN.md)", "简体中文")
        self.expect("docs/tour.zh-CN.md: has 12 headings, tour.md has 13", "README.md has no link to README.zh-CN.md")

    def text(self, page):
        return (self.root / page).read_text()

    # ---- papers

    def cite(self, words):
        path = self.root / "text/corpus.h"
        path.write_text(path.read_text() + f"// As in {words}.\n")

    def test_a_paper_without_a_row(self):
        self.cite("Nobody et al. 2031, section 4")
        self.cite("the model of https://arxiv.org/abs/3101.00001")
        self.expect_of_papers("docs/papers.md: Nobody 2031 is missing, which text/corpus.h cites",
                    "docs/papers.md: arXiv 3101.00001 is missing, which text/corpus.h cites")

    def test_a_paper_that_another_file_cites(self):
        self.cite("Holm 1979")
        self.expect_of_papers("the files of a row are other ones")
        self.assertEqual(self.run_script("make_papers.py", "--write"), (0, ""))
        self.assertRegex(self.text("docs/papers.md"), r"\| Holm 1979 \| .* \| `statistics/\S+`, `text/corpus.h` \|")

    def test_a_paper_that_nobody_cites(self):
        self.plant("docs/papers.md", "| Holm 1979 |", "| Holm 1978 |")
        self.expect_of_papers("no source cites Holm 1978", "Holm 1979 is missing")

    def test_citations_over_lines_and_in_pairs(self):
        self.cite("Press and\n// Wolf 2017")
        self.assertEqual(self.problems_of_papers(), ["the files of a row are other ones"])


if __name__ == "__main__":
    unittest.main()
