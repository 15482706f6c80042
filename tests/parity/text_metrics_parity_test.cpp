// BLEU and chrF against the package sacrebleu.

#include <set>

#include "base/text.h"
#include "tasks/metrics/text_metrics.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

class TextMetricsParity : public ReferenceTest {
 protected:
  TextMetricsParity() : ReferenceTest("reference_text_metrics.py") {}

  static std::vector<std::string> lines(const torch::Tensor& bytes) {
    const auto* const begin = reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>());
    std::istringstream text(std::string(begin, static_cast<size_t>(bytes.numel())));
    std::vector<std::string> result;
    for (std::string line; std::getline(text, line, '\0');) result.push_back(line);
    return result;
  }

  /// Every corpus of a case.
  void check_corpora(const std::string& name) {
    const ReferenceCase reference(file(name));
    std::set<double> different;
    for (const auto& output : reference.names("output/")) {
      const auto corpus = output.substr(0, output.find('/'));
      SCOPED_TRACE("corpus " + corpus);
      const auto outputs = lines(reference.get("input/" + corpus + "/outputs"));
      ReferenceTexts references;
      for (const auto& r : reference.names("input/" + corpus + "/references/"))
        references.push_back(lines(reference.get("input/" + corpus + "/references/" + r)));
      const auto scores = reference.output(output);
      const double bleu = scores[0].item<double>(), chrf = scores[1].item<double>();
      EXPECT_NEAR(corpus_bleu(outputs, references), bleu, 1e-9);
      EXPECT_NEAR(corpus_chrf(outputs, references), chrf, 1e-9);
      different.insert(bleu);
    }
    EXPECT_GT(different.size(), 4U);
  }
};

TEST_F(TextMetricsParity, Tokenizer) {
  const ReferenceCase reference(file("tokenizer"));
  const auto texts = lines(reference.get("input/lines")), expected = lines(reference.output("tokens"));
  ASSERT_EQ(texts.size(), expected.size());
  ASSERT_GT(texts.size(), 3000U);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenize_13a(texts[i]), expected[i]) << excerpt(texts[i]);
}

TEST_F(TextMetricsParity, RandomCorpora) { check_corpora("random"); }

TEST_F(TextMetricsParity, Multi30k) {
  if (!std::filesystem::exists(file("multi30k")))
    GTEST_SKIP() << "no Multi30k: set ZOO_DATA_MIRROR or run scripts/get_data.sh multi30k";
  check_corpora("multi30k");
}

}  // namespace
}  // namespace zoo::testing
