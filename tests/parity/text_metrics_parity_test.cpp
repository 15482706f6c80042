// BLEU and chrF against the package sacrebleu.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/text.h"
#include "statistics/translation_test.h"
#include "tasks/metrics/text_metrics.h"
#include "tests/parity/reference.h"
#include "text/batches/padded_rows.h"

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

/// p of sacreBLEU, from differences in samples where the true difference is 0.
double p_of(const std::vector<double>& differences, double difference) {
  const auto n = std::ranges::count_if(differences, [&](double one) { return one > std::abs(difference); });
  return static_cast<double>(n + 1) / static_cast<double>(differences.size() + 1);
}

TEST_F(TextMetricsParity, TestsOfTwoSystemsWithTheSameDraws) {
  const ReferenceCase reference(file("significance"));
  const auto texts = [&](const char* name) { return lines(reference.get(std::string("input/") + name)); };
  const ReferenceTexts references = {texts("references")};
  const auto samples = reference.get("input/samples"), exchanged = reference.get("input/exchanged");
  for (const auto& [metric, name] : {std::pair(TextMetric::bleu, "BLEU"), {TextMetric::chrf, "chrF"}}) {
    SCOPED_TRACE(name);
    const PairedTranslations pair(metric, text_counts(metric, texts("system"), references),
                                  text_counts(metric, texts("baseline"), references));
    const auto ar = reference.output(std::string("ar/") + name),
               bs = reference.output(std::string("bs/") + name);
    EXPECT_NEAR(pair.score(), ar[0].item<double>(), 1e-9);
    EXPECT_NEAR(pair.baseline_score(), ar[1].item<double>(), 1e-9);
    const double difference = pair.score() - pair.baseline_score();
    std::vector<double> by_exchange, by_sample;
    for (int64_t draw = 0; draw < samples.size(0); ++draw) {
      std::vector<bool> is_exchanged;
      for (const int64_t one : int64_values(exchanged[draw])) is_exchanged.push_back(one != 0);
      by_exchange.push_back(std::abs(pair.difference_with(is_exchanged)));
      by_sample.push_back(std::abs(pair.difference_on(int64_values(samples[draw]))));
    }
    EXPECT_DOUBLE_EQ(p_of(by_exchange, difference), ar[2].item<double>());
    // Its bootstrap centres the absolute differences.
    const double mean = std::accumulate(by_sample.begin(), by_sample.end(), 0.0) / 1000;
    for (auto& one : by_sample) one -= mean;
    EXPECT_DOUBLE_EQ(p_of(by_sample, difference), bs[2].item<double>());
    // With draws of our own, p is the same within chance.
    EXPECT_NEAR(*test_on_translations(pair).p, ar[2].item<double>(), 0.05);
  }
}

}  // namespace
}  // namespace zoo::testing
