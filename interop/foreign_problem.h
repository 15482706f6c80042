#pragma once
// What the outputs of a classifier from the Hub mean.

#include <cstdint>

#include <nlohmann/json_fwd.hpp>

#include "interop/families/foreign_config.h"
#include "tasks/experiment.h"

namespace zoo {

/// Sets the problem of a task that classifies into `n_labels` labels, as config.json says: problem_type; else
/// the activation_fn of sentence_transformers (sbert_ce_default_activation_function in older files); else for
/// one label a sigmoid, and in a decoder the number itself; else one class. The keys are accounted for,
/// whatever the task is. Throws CheckpointError for other values than transformers and sentence-transformers
/// write.
void read_problem(ForeignConfig& from, int64_t n_labels, Experiment& to);

/// Sets problem_type if config.json, as it is, says another problem than the task has. `expressed`: what
/// config.json says.
void write_problem(const Experiment& wanted, const Experiment& expressed, nlohmann::json& config);

}  // namespace zoo
