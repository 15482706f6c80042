// Makes the references of all suites of this folder. ctest runs this suite first.

#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

TEST(References, AreMadeByOneProcess) {
  const char* const out = std::getenv("ZOO_REFERENCES");
  if (!out)
    GTEST_SKIP() << "each test makes its own, because ZOO_REFERENCES names no directory for all of them";
  make_references(out);
  make_references(
      out / References::folder_of(Transformers::of_version_4),
      "reference_folding.py reference_interop.py reference_hub_sentencepiece.py reference_hub_tokenizers.py",
      Transformers::of_version_4);
}

}  // namespace
}  // namespace zoo::testing
