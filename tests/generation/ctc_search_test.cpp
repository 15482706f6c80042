// Texts from CTC scores against the sums over all paths.

#include "generation/ctc_search.h"

#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "tests/support/ctc_paths.h"

namespace zoo {
namespace {

/// The log-probability of every text, summed over all paths of log_probs (T, C).
std::map<TokenIds, double> texts_of_paths(const torch::Tensor& log_probs) {
  auto result = testing::probabilities_of_texts(log_probs);
  for (auto& [text, value] : result) value = std::log(value);
  return result;
}

TEST(CtcSearch, FindsTheLikeliestTextIfTheBeamHoldsAll) {
  torch::manual_seed(3);
  for (int trial = 0; trial < 30; ++trial) {
    const auto log_probs = (torch::randn({2, 6, 3}, torch::kFloat64) * 1.5).log_softmax(-1);
    const auto lengths = torch::tensor({6, 4}, torch::kInt64);
    const auto found = ctc_search(log_probs, lengths, /*beam=*/1000);
    for (int64_t b = 0; b < 2; ++b) {
      const auto texts = texts_of_paths(log_probs[b].narrow(0, 0, lengths[b].item<int64_t>()));
      const auto best = std::ranges::max_element(texts, {}, [](const auto& text) { return text.second; });
      const auto& own = found[static_cast<size_t>(b)];
      EXPECT_EQ(own.ids, best->first);
      EXPECT_NEAR(own.logprob, best->second, 1e-9);
    }
  }
}

TEST(CtcSearch, ANarrowBeamFindsNoMoreThanThereIs) {
  torch::manual_seed(5);
  int n_different = 0;
  for (int trial = 0; trial < 30; ++trial) {
    const auto log_probs = torch::randn({1, 7, 3}, torch::kFloat64).log_softmax(-1);
    const auto texts = texts_of_paths(log_probs[0]);
    const auto greedy = ctc_search(log_probs, {}, 1).front(), narrow = ctc_search(log_probs, {}, 2).front();
    for (const auto& found : {greedy, narrow}) EXPECT_LE(found.logprob, texts.at(found.ids) + 1e-9);
    const auto best = log_probs[0].amax(-1).sum().item<double>();
    EXPECT_NEAR(greedy.logprob, best, 1e-9) << "the best path has the same log-probability";
    n_different += greedy.ids != ctc_search(log_probs, {}, 100).front().ids ? 1 : 0;
  }
  EXPECT_GT(n_different, 0) << "the likeliest text often has another path than the likeliest one";
}

/// Scores of which one class per vector is nearly certain.
torch::Tensor certain(const std::vector<int64_t>& classes, int64_t n_classes) {
  auto logits = torch::zeros({1, std::ssize(classes), n_classes}, torch::kFloat64);
  for (int64_t t = 0; t < std::ssize(classes); ++t) logits[0][t][classes[static_cast<size_t>(t)]] = 20;
  return logits.log_softmax(-1);
}

TEST(CtcSearch, LeavesOutBlanksAndRepetitions) {
  for (const int64_t beam : {1, 4}) {
    EXPECT_EQ(ctc_search(certain({3, 0, 0, 3, 0, 1, 1, 3}, 4), {}, beam).front().ids, (TokenIds{0, 0, 1}));
    EXPECT_EQ(ctc_search(certain({2, 2, 1, 0}, 4), {}, beam).front().ids, (TokenIds{2, 1, 0}));
    EXPECT_EQ(ctc_search(certain({3, 3}, 4), {}, beam).front().ids, TokenIds());
    EXPECT_EQ(ctc_search(certain({1, 2, 0}, 4), torch::tensor({1}, torch::kInt64), beam).front().ids,
              (TokenIds{1}));
  }
}

TEST(CtcSearch, RefusesWhatIsNotANumber) {
  EXPECT_THROW(ctc_search(torch::full({1, 2, 3}, std::numeric_limits<double>::quiet_NaN()), {}, 2),
               CheckpointError);
}

}  // namespace
}  // namespace zoo
