#pragma once
// The keys of the family wave_encoder.

#include <cstdint>
#include <optional>
#include <vector>

#include "models/config/model_config.h"
#include "models/embedders/wave_embedder.h"

namespace zoo {

/// The keys of the family, beside `type: wave_encoder`. The lists say the same of each convolution over
/// samples.
struct WaveEncoderConfig {
  std::vector<int64_t> conv_widths = {512, 512, 512, 512, 512, 512, 512};
  std::vector<int64_t> conv_kernels = {10, 3, 3, 3, 3, 2, 2};
  std::vector<int64_t> conv_strides = {5, 2, 2, 2, 2, 2, 2};
  bool conv_bias = false;
  WaveNorm conv_norm = WaveNorm::first;
  bool feature_norm = true;
  double feature_dropout = 0;
  std::optional<FeatureMasks> masks = {};  // default: nothing is hidden
};
void describe(ConfigVisitor& v, WaveEncoderConfig& c);

/// The embedder of a model of this family.
WaveEmbedderOptions wave_options(const ModelConfig& config);

}  // namespace zoo
