#pragma once
// README.md of an exported model, as the Hub reads it: https://huggingface.co/docs/hub/model-cards

#include <cstdint>
#include <optional>
#include <string>

#include "io/metrics_log.h"
#include "tasks/task.h"

namespace zoo {

/// What a run says of its training.
struct TrainingFigures {
  int64_t step = 0, tokens = 0;  // until the weights that are kept
  Metrics validation = {};       // of these weights
};

struct HubCard {
  std::string name;        // of the directory
  std::string class_name;  // of transformers: "LlamaForCausalLM"
  std::string model_type;
  int64_t n_parameters = 0;
  std::optional<TrainingFigures> figures = {};
};

/// The page, with a head in YAML: library, pipeline, tags and, with figures, `model-index`. Files and
/// directories of the training are named without their paths.
std::string model_card(const HubCard& card, const Task& task);

}  // namespace zoo
