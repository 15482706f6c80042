#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "data/images/pixel_statistics.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// The tokens, the names of classes and the statistics of pixels. A task takes them from its training data
/// before there is a model. A run keeps them in files beside the weights.
struct Vocabulary {
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;  // RUN/tokenizer.*; null if the task has none
  std::vector<std::string> labels = {};        // RUN/labels.json: names of the classes, if the task has any
  std::optional<PixelStatistics> pixels = {};  // RUN/pixels.json, if the task has images
  /// RUN/dense.safetensors: the dense maps of `embedding`, float: "0.weight" (out, in), "0.bias" (out), …
  std::map<std::string, torch::Tensor> dense = {};
  /// RUN/hub/: the small files of the directory in Hugging Face's form from which the model came, if it did,
  /// by name. An export gives them back.
  std::map<std::string, std::string> foreign_files = {};
};

}  // namespace zoo
