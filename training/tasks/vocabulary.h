#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"

namespace zoo {

/// The tokenizer and the labels, which a task takes from its training data before the model is made. A run
/// keeps them beside the weights.
struct Vocabulary {
  std::shared_ptr<const Tokenizer> tokenizer;  // RUN/tokenizer.*; null if the task has none
  std::vector<std::string> labels;             // RUN/labels.json: names of the classes, if the task has any
};

}  // namespace zoo
