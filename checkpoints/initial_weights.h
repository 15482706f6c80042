#pragma once
// A run that starts with the weights of another: `init_from`.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "checkpoints/stored_model.h"
#include "models/model.h"
#include "tasks/experiment.h"
#include "tasks/task.h"

namespace zoo {

/// The model that `init_from` names. Its files are opened once, for its vocabulary and its weights.
struct InitialModel {
  std::filesystem::path dir;
  StoredModel model;
};

/// Nothing if `init_from` is not set. Throws ConfigError if there is no such model, if its vocabulary lacks
/// the special tokens of the new task, or if its model or tokenizer differs from the configuration. Keys that
/// do not change the meaning of the weights may differ (dropout, max_positions, n_layers …).
std::optional<InitialModel> open_initial_model(const Experiment& experiment);

/// The vocabulary with which a new run starts, before its task adds missing parts: the tokenizer of `source`.
/// It has no labels, because the new task has its own. It is empty if there is no source, and
/// if the source is a model within this one whose task reads no tokens.
Vocabulary initial_vocabulary(const Experiment& experiment, const std::optional<InitialModel>& source);

/// The task of a new run. Reads the training data and makes the tokenizer, or takes the tokenizer of the run
/// that `init_from` names. Throws DataError, and ConfigError as open_initial_model().
std::unique_ptr<Task> task_of_new_run(const Experiment& experiment);

/// Says that reading the weights of the run that `init_from` names takes long. Nothing if it does not.
std::optional<std::string> initial_weights_note(const Experiment& experiment);

/// Replaces the weights of `model` by those of `source`, by the names of the parameters. Parameters without a
/// counterpart there stay as they are; so does the last layer of a classifier whose classes differ. Returns
/// one line for people: the source of the weights, the new modules, and the modules that are not used. Throws
/// ConfigError if no parameter has a counterpart, if a counterpart has another shape, or if that run's
/// vocabulary differs from the vocabulary of `task`; CheckpointError (no weights, damaged).
std::string load_initial_weights(const InitialModel& source, const Task& task, Model& model);

}  // namespace zoo
