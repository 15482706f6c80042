// Models that read recordings: what they hide, what they remember, what they cost.

#include "models/families/recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"
#include "models/families/model_cost.h"
#include "models/families/speech_encoder.h"
#include "models/families/wave_encoder.h"
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

ModelConfig small_wave_encoder(const WaveEncoderConfig& keys = {}) {
  auto config = small_config(Architecture::encoder, Position::none);
  auto wave = keys;
  wave.conv_widths = {5, 6, 7};
  wave.conv_kernels = {4, 3, 2};
  wave.conv_strides = {3, 2, 1};
  config.architecture = Selection("wave_encoder", wave);
  config.position = Selection("convolution", ConvolutionPositionConfig{.kernel_size = 6, .groups = 3});
  config.embedding_norm = true;
  config.norm_placement = NormPlacement::post;
  return config;
}

/// Recordings of these samples; what follows a recording is noise.
Batch waves_of(const std::vector<int64_t>& counts, int64_t n) {
  Batch batch;
  batch.fields = {{fields::kSamples, torch::randn({std::ssize(counts), n})},
                  {fields::kSampleCounts, torch::tensor(counts, torch::kInt64)}};
  return batch;
}

TEST(Recordings, PaddingOfSamplesChangesNothing) {
  const torch::NoGradGuard no_grad;
  const std::vector<int64_t> counts = {60, 41, 17, 3};
  for (const auto norm : {WaveNorm::first, WaveNorm::each}) {
    for (const auto position : {"convolution", "rotary", "t5"}) {
      torch::manual_seed(3);
      auto config = small_wave_encoder({.conv_norm = norm});
      if (std::string_view(position) != "convolution") config.position = Selection(position);
      const auto model = random_model(config, kLabelling);
      const auto batch = waves_of(counts, 60);
      const auto hidden = model->hidden_states(batch);
      const auto n = model->aligning()->n_moments(batch);
      for (int64_t row = 0; row < 4; ++row) {
        auto alone = take_rows(batch, row, 1);
        const int64_t count = counts[static_cast<size_t>(row)];
        alone.fields[fields::kSamples] = alone.field(fields::kSamples).narrow(1, 0, count);
        const auto expected = model->hidden_states(alone);
        EXPECT_EQ(expected.size(1), n[row].item<int64_t>());
        EXPECT_TRUE(close(hidden[row].narrow(0, 0, expected.size(1)), expected[0])) << position << row;
        alone.fields.erase(fields::kSampleCounts);
        EXPECT_TRUE(close(model->hidden_states(alone), expected)) << position << row;
      }
    }
  }
}

TEST(Recordings, AShortRecordingIsFollowedBySilence) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_wave_encoder(), kLabelling);
  const auto options = wave_options(small_wave_encoder());
  EXPECT_EQ(options.total_stride(), 6);
  EXPECT_EQ(options.receptive_field(), 4 + 3 * 2 + 6 * 1);
  EXPECT_EQ(options.n_samples(3), options.receptive_field() + 2 * 6);
  EXPECT_EQ(options.n_vectors(options.n_samples(3)), 3);
  EXPECT_EQ(options.n_vectors(options.n_samples(3) - 1), 2);
  const auto batch = waves_of({5}, 5);
  auto longer = batch;
  longer.fields[fields::kSamples] = torch::constant_pad_nd(batch.field(fields::kSamples), {0, 11});
  longer.fields[fields::kSampleCounts] = torch::tensor({16}, torch::kInt64);
  EXPECT_EQ(model->hidden_states(batch).size(1), 1);
  EXPECT_TRUE(close(model->hidden_states(batch), model->hidden_states(longer)));
}

// What training hides in a row depends on the row alone, and not on how a batch is divided.
TEST(Recordings, TrainingHidesFeatures) {
  const FeatureMasks masks{.time_share = 0.4,
                           .time_length = 2,
                           .feature_share = 0.3,
                           .feature_length = 3,
                           .least_feature_masks = 1};
  const auto x = torch::randn({3, 20, 24}), vector = torch::full({24}, 7.0);
  const auto lengths = torch::tensor({20, 9, 1}, torch::kInt64);
  const auto hidden = with_hidden_features(x, lengths, vector, masks, {.seed = 5, .first_row = 4});
  const auto is_vector = (hidden == 7).any(2), is_zero = (hidden == 0).all(1);  // (B, T), (B, D)
  EXPECT_EQ(is_vector[0].sum().item<int64_t>() % 1, 0);
  EXPECT_GE(is_vector[0].sum().item<int64_t>(), 2);
  EXPECT_LE(is_vector[0].sum().item<int64_t>(), 2 * (static_cast<int64_t>(0.4 * 20 / 2) + 1));
  EXPECT_FALSE(is_vector[1].narrow(0, 9, 11).any().item<bool>()) << "padding is not hidden";
  EXPECT_FALSE(is_vector[2].any().item<bool>()) << "it is shorter than a span";
  EXPECT_GE(is_zero.sum(1).min().item<int64_t>(), 3);
  EXPECT_FALSE(torch::equal(
      is_vector[0], with_hidden_features(x, {}, vector, masks, {.seed = 6, .first_row = 4}).eq(7).any(2)[0]));
  const auto second = with_hidden_features(x.narrow(0, 1, 1), lengths.narrow(0, 1, 1), vector, masks,
                                           {.seed = 5, .first_row = 5});
  EXPECT_TRUE(torch::equal(second[0], hidden[1]));

  const auto labeller = random_model(small_wave_encoder({.masks = masks}), kLabelling);
  const auto batch = waves_of({60, 41}, 60);
  const auto seen = labeller->hidden_states(batch);
  EXPECT_TRUE(torch::equal(seen, labeller->hidden_states(batch))) << "evaluation hides nothing";
  labeller->train();
  const RandomScope random({3});
  EXPECT_FALSE(close(seen, labeller->hidden_states(batch)));
  auto inactive = masks;
  inactive.active = false;
  const auto other = random_model(small_wave_encoder({.masks = inactive}), kLabelling);
  other->train();
  EXPECT_TRUE(close(other->hidden_states(batch), seen));
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
  for (const auto norm : {WaveNorm::first, WaveNorm::each}) {
    const auto waves = small_wave_encoder({.conv_bias = true, .conv_norm = norm, .masks = FeatureMasks()});
    EXPECT_EQ(model_cost(waves, kLabelling, 8).parameters, real(waves, kLabelling));
    const auto whole = pass_shape(waves_of({76, 76}, 76));
    EXPECT_DOUBLE_EQ(forward_flops(waves, kLabelling, whole),
                     model_cost(waves, kLabelling, wave_options(waves).n_vectors(76)).flops_per_token * 2 *
                         static_cast<double>(wave_options(waves).n_vectors(76)));
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
