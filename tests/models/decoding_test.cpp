// Generation one token at a time against the whole sequence in one pass.

#include <gtest/gtest.h>

#include "tests/support/small_models.h"

namespace zoo {
namespace {

using namespace testing;  // NOLINT: the helpers of these tests

// Logits (B, T, V) of each next token, computed at once and without a cache.
torch::Tensor all_logits(Model& model, const TokenBatch& source, const torch::Tensor& written) {
  Batch batch;
  if (model.generative()->continues_prompt()) {
    batch.input.ids = written;
  } else {
    batch.input = source;
    batch.decoder.ids = written;
  }
  return model.logits(model.features(batch)).view({written.size(0), written.size(1), kVocabulary});
}

TEST(Decoding, CachedEqualsUncachedTokenForToken) {
  constexpr int64_t kPrompts = 2, kPrompt = 5, kSteps = 7;
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig& config, Model& model) {
    auto* generative = model.generative();
    ASSERT_NE(generative, nullptr);
    EXPECT_EQ(generative->continues_prompt(), config.architecture == Architecture::decoder);
    EXPECT_EQ(generative->max_length(), config.max_positions);

    const TokenBatch prompts{tokens(kPrompts, kPrompt), {}};
    const auto steps = tokens(kPrompts, kSteps);
    const auto head =
        config.architecture == Architecture::decoder ? prompts.ids : torch::full({kPrompts, 1}, kStartToken);
    const auto expected = all_logits(model, prompts, torch::cat({head, steps}, 1));

    DecodingState state;
    EXPECT_TRUE(close(generative->prefill(prompts, state), expected.select(1, head.size(1) - 1)));
    for (int64_t i = 0; i < kSteps; ++i) {
      EXPECT_EQ(state.length(), head.size(1) + i);
      EXPECT_TRUE(close(generative->step(steps.select(1, i), state), expected.select(1, head.size(1) + i)))
          << "step " << i;
    }
  });
}

// Prompts of unequal length: prefill and every step give what each row gives alone.
TEST(Decoding, BatchOfPromptsEqualsEachAlone) {
  const auto lengths = torch::tensor({3, 8, 1, 6});
  const int64_t batch = lengths.size(0), steps = 5;
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig&, Model& model) {
    auto& generative = *model.generative();
    const TokenBatch prompts{tokens(batch, 8), lengths};
    const auto written = tokens(batch, steps);

    DecodingState together;
    std::vector<torch::Tensor> logits{generative.prefill(prompts, together)};
    for (int64_t i = 0; i < steps; ++i) logits.push_back(generative.step(written.select(1, i), together));

    for (int64_t row = 0; row < batch; ++row) {
      const auto prompt = prompts.ids.narrow(0, row, 1).narrow(1, 0, lengths[row].item<int64_t>());
      DecodingState alone;
      EXPECT_TRUE(close(logits[0][row], generative.prefill({prompt, {}}, alone)[0])) << "row " << row;
      for (int64_t i = 0; i < steps; ++i) {
        const auto expected = generative.step(written.narrow(0, row, 1).select(1, i), alone)[0];
        EXPECT_TRUE(close(logits[static_cast<size_t>(i) + 1][row], expected))
            << "row " << row << ", step " << i;
      }
    }
  });
}

// Beams: rows are copied, dropped and mixed between steps.
TEST(Decoding, ReorderedRowsGoOnFromWhatTheyBecame) {
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig&, Model& model) {
    auto& generative = *model.generative();
    const TokenBatch prompts{tokens(3, 6), torch::tensor({6, 2, 4})};
    const auto rows = torch::tensor({2, 0, 2, 1, 2});
    const auto first = tokens(3, 1).flatten(), second = tokens(5, 1).flatten();

    DecodingState state;
    generative.prefill(prompts, state);
    generative.step(first, state);
    state.reorder(rows);
    const auto reordered = generative.step(second, state);

    DecodingState fresh;
    generative.prefill({prompts.ids.index_select(0, rows), prompts.lengths.index_select(0, rows)}, fresh);
    generative.step(first.index_select(0, rows), fresh);
    EXPECT_TRUE(close(reordered, generative.step(second, fresh)));
  });
}

TEST(Decoding, EncoderDecoderReadsItsSourceOnce) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::encoder_decoder));
  DecodingState state;
  model->generative()->prefill({tokens(2, 6), {}}, state);
  ASSERT_EQ(state.cache.cross.size(), 2U);
  EXPECT_EQ(state.cache.cross[0].length(), 6);
  model->generative()->step(torch::tensor({3, 4}), state);
  EXPECT_EQ(state.cache.cross[0].length(), 6);
  EXPECT_EQ(state.length(), 2);
}

}  // namespace
}  // namespace zoo
