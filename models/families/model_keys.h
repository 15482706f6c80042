#pragma once
// The keys of `model:` in a configuration.

#include "io/config/config_file.h"
#include "models/config/model_config.h"

namespace zoo {

void describe(ConfigVisitor& v, ModelConfig& c);

/// The first keys of an encoder inside a model of another family: its sizes, activation and norms.
void describe_inner_encoder(ConfigVisitor& v, ModelConfig& c);

/// Checks conditions across keys: D % H, odd rotary widths, … `complain` gets keys relative to `model`.
void validate(const ModelConfig& c, const Complain& complain);

}  // namespace zoo
