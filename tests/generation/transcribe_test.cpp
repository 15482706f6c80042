// What a Generator writes of recordings: the same as whole forward passes, for each recording alone.

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "generation/generator.h"
#include "generation/text_scores.h"
#include "models/families/whisper.h"
#include "models/inference_scope.h"
#include "tests/support/errors.h"
#include "tests/support/text_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBands = 80, kFrames = 24;

std::shared_ptr<Model> listener(const Tokenizer& tokenizer, bool pads = false) {
  auto config = small_config(Architecture::encoder);
  config.architecture = Selection("whisper", WhisperConfig{.max_frames = kFrames, .pad_to_max = pads});
  config.key_bias = false;
  return text_model(config, tokenizer);
}

Batch some_recordings() {
  torch::manual_seed(8);
  Batch batch;
  batch.fields = {{fields::kSpectrograms, torch::randn({3, kBands, kFrames})},
                  {fields::kFrames, torch::tensor({24, 10, 17}, torch::kInt64)}};
  return batch;
}

/// Greedy transcription by its definition: no cache, no batch.
TokenIds transcribed_by_hand(Model& model, const Tokenizer& tokenizer, Batch recording, const TokenIds& start,
                             const TokenIds& not_first, int64_t n) {
  const InferenceScope scope(model);
  TokenIds read = {tokenizer.special().bos}, text;
  read.insert(read.end(), start.begin(), start.end());
  while (std::ssize(text) < n && (text.empty() || text.back() != tokenizer.special().eos)) {
    recording.decoder.ids = torch::tensor(read, torch::kInt64).unsqueeze(0);
    const auto hidden = model.features(recording);
    auto scores = model.logits(hidden.narrow(0, hidden.size(0) - 1, 1)).squeeze(0);
    for (const int64_t id : tokenizer.never_generated()) scores[id] = -1e9;
    if (text.empty())
      for (const int64_t id : not_first) scores[id] = -1e9;
    text.push_back(scores.argmax().item<int64_t>());
    read.push_back(text.back());
  }
  return text;
}

TEST(Transcribe, GreedyTextIsThatOfWholeForwardPasses) {
  const auto tokenizer = letters();
  const auto recordings = some_recordings();
  for (const bool pads : {false, true}) {
    const auto model = listener(*tokenizer, pads);
    const Generator generator(*model, *tokenizer);
    for (const TokenIds& start : {TokenIds(), tokenizer->encode("fa")}) {
      GenerationConfig options{.max_new_tokens = 12, .temperature = 0, .start_tokens = start};
      for (const bool forbids : {false, true}) {
        if (forbids) {
          for (const auto& generation : generator.transcribe(recordings, options))
            options.suppress_first_tokens.push_back(generation.outputs.front().ids.front());
        }
        const auto found = generator.transcribe(recordings, options);
        ASSERT_EQ(found.size(), 3U);
        std::set<TokenIds> different;
        for (int64_t i = 0; i < 3; ++i) {
          const auto& generation = found[static_cast<size_t>(i)];
          const auto& output = generation.outputs.at(0);
          EXPECT_EQ(generation.prompt_ids, start);
          EXPECT_EQ(output.ids, transcribed_by_hand(*model, *tokenizer, take_rows(recordings, i, 1), start,
                                                    options.suppress_first_tokens, 12));
          EXPECT_EQ(output.text.find("fa") == 0, false) << "the start tokens are not part of an output";
          different.insert(output.ids);
        }
        EXPECT_GT(different.size(), 1U) << "the recordings must matter";
      }
    }
  }
}

TEST(Transcribe, ARecordingDoesNotDependOnOthers) {
  const auto tokenizer = letters();
  const auto model = listener(*tokenizer);
  const Generator generator(*model, *tokenizer);
  const auto recordings = some_recordings();
  for (const int64_t beam : {1, 3}) {
    GenerationConfig options{.max_new_tokens = 9, .beam = beam, .temperature = 0};
    options.num_samples = beam == 1 ? 1 : 2;
    const auto together = generator.transcribe(recordings, options);
    for (int64_t i = 0; i < 3; ++i) {
      const auto alone = generator.transcribe(take_rows(recordings, i, 1), options).front();
      const auto& same = together[static_cast<size_t>(i)];
      ASSERT_EQ(same.outputs.size(), alone.outputs.size());
      for (size_t k = 0; k < alone.outputs.size(); ++k) {
        EXPECT_EQ(same.outputs[k].ids, alone.outputs[k].ids);
        EXPECT_NEAR(same.outputs[k].score, alone.outputs[k].score, 1e-4);
      }
    }
    options.batch_size = 1;
    EXPECT_EQ(generator.transcribe(recordings, options)[2].outputs[0].ids, together[2].outputs[0].ids);
  }
}

TEST(Transcribe, WritesNoMoreThanTheModelCan) {
  const auto tokenizer = letters();
  const auto model = listener(*tokenizer);
  const Generator generator(*model, *tokenizer);
  GenerationConfig options{.max_new_tokens = 100, .temperature = 0, .suppress_tokens = {}};
  options.suppress_tokens = end_tokens(tokenizer->special());
  options.start_tokens = tokenizer->encode("abc");
  for (const auto& generation : generator.transcribe(some_recordings(), options))
    EXPECT_EQ(generation.outputs.front().ids.size(), 32U - 3U) << "max_positions, less the start tokens";
  options.start_tokens = tokenizer->encode(std::string(40, 'a'));
  EXPECT_THAT(message_of<UsageError>([&] { generator.transcribe(some_recordings(), options); }),
              HasSubstr("start_tokens: 40 tokens leave no room"));
}

TEST(Transcribe, TextsAndRecordingsAreNotMixedUp) {
  const auto tokenizer = letters();
  const auto model = listener(*tokenizer);
  const Generator generator(*model, *tokenizer);
  for (const std::string prompt : {"", "abc"}) {
    EXPECT_THAT(message_of<UsageError>([&] { generator.generate(std::vector<std::string>{prompt}); }),
                HasSubstr("reads recordings, not texts"));
    EXPECT_THAT(message_of<UsageError>([&] { generator.request(tokenizer->encode(prompt), {}); }),
                HasSubstr("reads recordings, not texts"));
  }
  EXPECT_THAT(message_of<UsageError>([&] { tokens_to_score("abc", *tokenizer, *model->generative()); }),
              HasSubstr("reads recordings, not texts"));
  EXPECT_THAT(message_of<UsageError>([&] { generator.transcribe(some_recordings(), {.prompt_lookup = 3}); }),
              HasSubstr("prompt_lookup"));
  const auto decoder = text_model(small_config(Architecture::decoder), *tokenizer);
  const Generator reader(*decoder, *tokenizer);
  EXPECT_THAT(message_of<UsageError>([&] { reader.transcribe(some_recordings()); }),
              HasSubstr("reads texts, not recordings"));
}

}  // namespace
}  // namespace zoo::testing
