#pragma once
// The keys of the family autoencoder.

#include <cstdint>

#include "models/config/model_config.h"

namespace zoo {

/// The keys of the family, beside `type: autoencoder`. Those of `model` itself describe the layers that read.
struct AutoencoderConfig {
  int64_t maps = 2;  // norm, linear map and GELU that turn the one vector and a place into a token
};
void describe(ConfigVisitor& v, AutoencoderConfig& c);

}  // namespace zoo
