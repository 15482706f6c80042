// An encoder over the samples of a recording (wav2vec 2.0: Baevski et al. 2020, HuBERT: Hsu et al. 2021),
// with a score of each token and of the blank for each of its vectors. Trained with CTC (Graves et al. 2006;
// tasks/ctc.h).

#include "models/families/wave_encoder.h"

#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>

#include "models/config/layer_types.h"
#include "models/families/family_model.h"
#include "models/families/recordings.h"

namespace zoo {
namespace {

const WaveEncoderConfig& keys_of(const ModelConfig& config) {
  return config.architecture.as<WaveEncoderConfig>();
}

}  // namespace

void describe(ConfigVisitor& v, WaveEncoderConfig& c) {
  constexpr double widest = 1 << 14, longest = 1 << 12;
  v.field("conv_widths", c.conv_widths, "Channels that each convolution over samples finds.",
          Limits::between(1, widest));
  v.field("conv_kernels", c.conv_kernels, "Places that each of them reads.", Limits::between(1, longest));
  v.field("conv_strides", c.conv_strides, "Places from one output of each to the next.",
          Limits::between(1, longest));
  v.field("conv_bias", c.conv_bias, "Whether they have biases.");
  v.field("conv_norm", c.conv_norm,
          "A norm behind the first of them, over the moments of a recording, or behind each, over its "
          "channels.");
  v.field("feature_norm", c.feature_norm, "A norm before the linear map to d_model.");
  v.field("feature_dropout", c.feature_dropout, "Dropout behind the linear map.", {.min = 0, .max = 0.99});
  v.field("masks", c.masks, "Spans of moments and numbers that training hides; default: none.");
}

namespace {

/// Its positions are as wide as its layers: it has no tables, which could be narrower.
ModelConfig without_tables(ModelConfig config) {
  config.embedding_width.reset();
  return config;
}

}  // namespace

WaveEmbedderOptions wave_options(const ModelConfig& config) {
  const auto& keys = keys_of(config);
  std::vector<FrameConvolutionOptions> convolutions;
  int64_t n_inputs = 1;
  for (size_t i = 0; i < keys.conv_widths.size(); ++i) {
    convolutions.push_back(FrameConvolutionOptions(n_inputs, keys.conv_widths[i])
                               .kernel_size(keys.conv_kernels[i])
                               .stride(keys.conv_strides[i])
                               .padding(0)
                               .bias(keys.conv_bias));
    n_inputs = keys.conv_widths[i];
  }
  auto options = WaveEmbedderOptions(config.d_model, std::move(convolutions))
                     .norm(keys.conv_norm)
                     .feature_dropout(keys.feature_dropout)
                     .masks(keys.masks)
                     .found_positions(found_positions_of(without_tables(config)))
                     .dropout(config.dropout);
  if (keys.feature_norm) options.feature_norm(norm_options(config, n_inputs));
  if (config.embedding_norm) options.embedding_norm(norm_options(config, config.d_model));
  return options;
}

namespace {

/// Reads the fields "samples" and "sample_counts" of a batch. Its features are those of all vectors, those of
/// padding included: (B·T, D).
class WaveEncoderModel final : public Cloneable<WaveEncoderModel, EncodingModel>, public AligningModel {
 public:
  WaveEncoderModel(const ModelConfig& config, const ModelPurpose& purpose) : Cloneable(config, purpose) {
    make_encoder("embedder", WaveEmbedder(wave_options(config)).ptr());
    head_ = register_module("head", ModelHead(config, purpose, nullptr));
  }

  torch::Tensor features(const Batch& batch) override {
    return head_->prepare_at(hidden_states(batch), batch.positions);
  }
  const AligningModel* aligning() const override { return this; }
  torch::Tensor n_moments(const Batch& batch) const override {
    return wave_lengths(wave_options(config_), batch);
  }
  int64_t blank() const override { return blank_of(purpose_); }
};

void count_wave_encoder(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                        const PassShape& shape) {
  const auto options = wave_options(config);
  const auto sizes = shape.sizes_of(fields::kSamples);
  const int64_t n_samples =
      sizes.empty() ? options.n_samples(std::max<int64_t>(shape.length, 1)) : sizes.back();
  const int64_t n_vectors = options.n_vectors(n_samples);
  const auto n_all = static_cast<double>(shape.batch_size * n_vectors);
  count_wave_embedder(account, "embedder", options, shape.batch_size, n_samples);
  count_found_positions(account, account.path("embedder", "found_positions"), without_tables(config), n_all);
  count_encoder(account, config, shape.batch_size, n_vectors);
  count_head(account, config, purpose, Pooling::none, n_all);
}

void validate_wave_encoder(const ModelConfig& config, const Complain& complain) {
  const auto& keys = keys_of(config);
  const auto n = keys.conv_widths.size();
  if (n == 0 || keys.conv_kernels.size() != n || keys.conv_strides.size() != n) {
    complain(
        "architecture",
        fmt::format("has {} conv_widths, {} conv_kernels and {} conv_strides: each convolution needs one "
                    "of each",
                    n, keys.conv_kernels.size(), keys.conv_strides.size()));
  }
  if (config.position == Position::learned || config.position == Position::sinusoidal)
    complain("position", "of a wave_encoder must be convolution, rotary, alibi, t5, shaw or none");
}

}  // namespace

ModelFamily wave_encoder_family() {
  ModelFamily family;
  family.name = "wave_encoder";
  family.doc = "An encoder over the samples of a recording, as wav2vec 2.0, which is trained with CTC.";
  family.make_options = options_of<WaveEncoderConfig>();
  family.adds_found_positions = true;
  family.heads = {HeadKind::ctc};
  family.make = makes<WaveEncoderModel>();
  family.count = count_wave_encoder;
  family.set_defaults = [](ModelConfig& config) {
    config.position = position_types().select(name_of(Position::convolution));
    config.norm_placement = NormPlacement::post;
    config.embedding_norm = true;
  };
  family.validate = validate_wave_encoder;
  return family;
}

}  // namespace zoo
