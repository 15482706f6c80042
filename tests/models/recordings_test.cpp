// Models that read recordings: what they hide, what they remember, what they cost.

#include "models/families/recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "models/families/model_cost.h"
#include "models/families/speech_encoder.h"
#include "models/families/whisper.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMels = 6, kMostFrames = 26;
constexpr ModelPurpose kWriting{.vocab_size = kVocabulary, .start_token = kStartToken, .n_mels = kMels};
constexpr ModelPurpose kLabelling{.head = HeadKind::ctc, .n_classes = kVocabulary + 1, .n_mels = kMels};

ModelConfig small_whisper(bool pads, Position position = Position::learned) {
  auto config = small_config(Architecture::encoder, position);
  config.architecture = Selection("whisper", WhisperConfig{.max_frames = kMostFrames, .pad_to_max = pads});
  config.n_decoder_layers = 3;
  config.key_bias = false;
  return config;
}

ModelConfig small_speech_encoder(Position position = Position::sinusoidal) {
  auto config = small_config(Architecture::encoder, position);
  config.architecture = Selection("speech_encoder", SpeechEncoderConfig{.max_frames = kMostFrames});
  return config;
}

/// Recordings of these frames; what follows a recording is noise.
Batch recordings_of(const std::vector<int64_t>& frames, int64_t n_frames) {
  Batch batch;
  const auto n_rows = std::ssize(frames);
  batch.fields = {{fields::kSpectrograms, torch::randn({n_rows, kMels, n_frames})},
                  {fields::kFrames, torch::tensor(frames, torch::kInt64)}};
  return batch;
}

/// The recording of a row alone, without its padding.
Batch alone(const Batch& batch, int64_t row) {
  auto result = take_rows(batch, row, 1);
  const auto n = result.field(fields::kFrames).item<int64_t>();
  result.fields[fields::kSpectrograms] = result.field(fields::kSpectrograms).narrow(2, 0, n);
  return result;
}

TEST(Recordings, PaddingChangesNothing) {
  const torch::NoGradGuard no_grad;
  const std::vector<int64_t> frames = {24, 17, 6, 1};
  for (const auto position : {Position::sinusoidal, Position::rotary, Position::t5, Position::shaw}) {
    torch::manual_seed(3);
    const auto labeller = random_model(small_speech_encoder(position), kLabelling);
    const auto writer = random_model(small_whisper(/*pads=*/false, position), kWriting);
    auto batch = recordings_of(frames, 24);
    batch.decoder.ids = tokens(4, 5);
    const auto scores = labeller->logits(labeller->features(batch)).view({4, 12, kVocabulary + 1});
    const auto logits = writer->logits(writer->features(batch)).view({4, 5, kVocabulary});
    for (int64_t row = 0; row < 4; ++row) {
      const auto single = alone(batch, row);
      const auto expected = labeller->logits(labeller->features(single));
      EXPECT_EQ(expected.size(0), n_audio_vectors(frames[static_cast<size_t>(row)]));
      EXPECT_TRUE(close(scores[row].narrow(0, 0, expected.size(0)), expected)) << row;
      EXPECT_TRUE(close(logits[row], writer->logits(writer->features(single)))) << row;
    }
    EXPECT_FALSE(torch::equal(scores[1][0], scores[0][0]));
  }
}

TEST(Recordings, PublishedModelsReadTheSilence) {
  const torch::NoGradGuard no_grad;
  const auto writer = random_model(small_whisper(/*pads=*/true), kWriting);
  auto batch = recordings_of({kMostFrames, 12}, kMostFrames);
  batch.decoder.ids = tokens(2, 5);
  const auto logits = writer->logits(writer->features(batch));
  batch.fields.erase(fields::kFrames);
  EXPECT_TRUE(torch::equal(logits, writer->logits(writer->features(batch))));
  batch.fields[fields::kSpectrograms] = batch.field(fields::kSpectrograms).narrow(2, 0, 24);
  EXPECT_THAT(message_of<DataError>([&] { writer->features(batch); }), HasSubstr("padded to 26 frames"));
}

TEST(Recordings, ARecordingThatIsTooLongIsAnError) {
  const auto labeller = random_model(small_speech_encoder(), kLabelling);
  EXPECT_THAT(message_of<DataError>([&] { labeller->features(recordings_of({40}, 40)); }),
              HasSubstr("40 frames is longer than model.architecture.max_frames, 26"));
}

TEST(Recordings, DecodeWithACacheAsWithout) {
  const torch::NoGradGuard no_grad;
  for (const auto position : {Position::learned, Position::sinusoidal, Position::rotary, Position::alibi}) {
    for (const bool pads : {false, true}) {
      const auto model = random_model(small_whisper(pads, position), kWriting);
      auto& writer = *model->generative();
      EXPECT_TRUE(writer.reads_recordings());
      auto batch = recordings_of({26, 11}, kMostFrames);
      const auto text = tokens(2, 7);
      batch.decoder.ids = torch::cat({torch::full({2, 1}, kStartToken), text}, 1);
      const auto expected = model->logits(model->features(batch)).view({2, 8, kVocabulary});
      // The first three tokens are the prompt.
      Batch sources{.input = {.ids = text.narrow(1, 0, 3)}, .fields = batch.fields};
      DecodingState state;
      EXPECT_TRUE(close(writer.prefill(sources, state), expected.select(1, 3)));
      for (int64_t t = 3; t < 7; ++t) {
        const auto logits = writer.forward({.ids = text.narrow(1, t, 1)}, state);
        EXPECT_TRUE(close(logits, expected.select(1, t + 1))) << t;
      }
      // Without a prompt, the start token is read.
      sources.input.ids = torch::empty({2, 0}, torch::kInt64);
      EXPECT_TRUE(close(writer.prefill(sources, state), expected.select(1, 0)));
    }
  }
}

// Prompts of several lengths behind the start token: each row reads its own, as it does alone.
TEST(Recordings, PromptsOfUnequalLengthsAreReadAsAlone) {
  const torch::NoGradGuard no_grad;
  for (const auto position : {Position::learned, Position::rotary}) {
    const auto model = random_model(small_whisper(/*pads=*/false, position), kWriting);
    auto& writer = *model->generative();
    const auto batch = recordings_of({24, 11, 17}, 24);
    const auto text = tokens(3, 4);
    const std::vector<int64_t> lengths = {1, 4, 2};
    Batch sources{.input = {.ids = text, .lengths = torch::tensor(lengths, torch::kInt64)},
                  .fields = batch.fields};
    const auto first = writer.first_tokens(sources.input);
    EXPECT_TRUE(torch::equal(first.lengths, torch::tensor({2, 5, 3}, torch::kInt64)));
    DecodingState state;
    const auto logits = writer.prefill(sources, state);
    EXPECT_EQ(state.lengths(), (std::vector<int64_t>{2, 5, 3}));
    for (int64_t row = 0; row < 3; ++row) {
      auto own = alone(batch, row);
      own.input.ids = text.narrow(0, row, 1).narrow(1, 0, lengths[static_cast<size_t>(row)]);
      DecodingState own_state;
      EXPECT_TRUE(close(logits.narrow(0, row, 1), writer.prefill(own, own_state))) << row;
    }
  }
}

TEST(Recordings, PositionsAreABufferThatIsCopied) {
  const auto model = random_model(small_whisper(/*pads=*/true), kWriting);
  const auto table = model->named_buffers()["encoder_embedder.positions"];
  EXPECT_TRUE(torch::equal(table, audio_positions(kMostFrames / 2, kWidth)));
  table.fill_(0.5);
  const auto copy = copy_of(model);
  EXPECT_TRUE(torch::equal(copy->named_buffers()["encoder_embedder.positions"], table));
  EXPECT_FALSE(model->named_parameters().contains("encoder_embedder.positions"));
}

TEST(Recordings, CostWhatTheirModulesHave) {
  const auto real = [](const ModelConfig& config, const ModelPurpose& purpose) {
    int64_t n = 0;
    for (const auto& parameter : initialized_model(config, purpose)->parameters()) n += parameter.numel();
    return n;
  };
  for (const auto position : {Position::learned, Position::sinusoidal, Position::rotary}) {
    const auto writer = small_whisper(/*pads=*/true, position);
    EXPECT_EQ(model_cost(writer, kWriting, 8).parameters, real(writer, kWriting));
    if (position == Position::learned) continue;
    const auto labeller = small_speech_encoder(position);
    EXPECT_EQ(model_cost(labeller, kLabelling, 8).parameters, real(labeller, kLabelling));
  }
  // The cost of a batch of recordings, without that of their padding, is that of their vectors and tokens.
  const auto writer = small_whisper(/*pads=*/false);
  const auto shape = pass_shape([] {
    auto batch = recordings_of({16, 16, 16}, 16);
    batch.decoder.ids = tokens(3, 8);
    batch.targets = tokens(1, 24).flatten();
    return batch;
  }());
  EXPECT_DOUBLE_EQ(forward_flops(writer, kWriting, shape),
                   model_cost(writer, kWriting, 8).flops_per_token * 3 * 8);
  // Only the decoder's layers remember the tokens of a text.
  const int64_t n_layers = 3;
  EXPECT_EQ(model_cost(writer, kWriting, 8).cache_bytes_per_token, n_layers * 2 * kWidth * 4);
}

TEST(Recordings, ALayerOfEveryOddWidthIsRefused) {
  auto config = small_whisper(/*pads=*/true);
  config.d_model = 27;
  config.n_heads = 3;
  EXPECT_THAT(message_of<ConfigError>([&] { initialized_model(config, kWriting); }),
              HasSubstr("must be even"));
}

TEST(Recordings, KeysHaveNoBiasWhereOthersHaveOne) {
  const auto model = random_model(small_whisper(/*pads=*/true), kWriting);
  const auto parameters = model->named_parameters();
  EXPECT_TRUE(parameters.contains("decoder.layers.0.cross_attention.q.bias"));
  EXPECT_FALSE(parameters.contains("decoder.layers.0.cross_attention.k.bias"));
  auto config = small_whisper(/*pads=*/true);
  config.projection = Projection::fused;
  EXPECT_THAT(message_of<ConfigError>([&] { initialized_model(config, kWriting); }),
              HasSubstr("model.key_bias"));
}

}  // namespace
}  // namespace zoo::testing
