#pragma once
// The first line of a printed model.

#include <string_view>

#include "layers/weights/description.h"
#include "models/config/model_config.h"
#include "models/model.h"

namespace zoo {

/// "DecoderModel(d_model=512, n_layers=6, …)": the sizes and rates of a model of class `type`.
Description describe_model(std::string_view type, const ModelConfig& config, const ModelPurpose& purpose);

}  // namespace zoo
