#pragma once
// A run that begins where another one ended: `init_from`.

#include <memory>
#include <string>

#include "models/model.h"
#include "training/tasks/experiment.h"
#include "training/tasks/task.h"

namespace zoo {

/// What the vocabulary of a new run is before its task adds what it lacks: the tokenizer of the run that
/// `init_from` names, without labels, which are the new task's own; nothing where `init_from` is not set.
/// Throws ConfigError: there is no such run; its model or tokenizer is another than the configuration says,
/// but for keys under which weights keep their meaning (dropout, max_positions, n_layers …); its vocabulary
/// lacks the special tokens of the new task.
Vocabulary initial_vocabulary(const Experiment& experiment);

/// The task of a new run: reads the training data and makes the tokenizer, or takes that of the run named by
/// `init_from`. Throws DataError, ConfigError.
std::unique_ptr<Task> make_task(const Experiment& experiment);

/// Replaces the weights of `model` by those of the run that `init_from` names, its best ones, by the names of
/// the parameters. What has no counterpart there stays as it is, as does the last layer of a classifier whose
/// classes are others. Returns one line for people: where the weights come from, what stays as it is, and
/// what is left behind. Throws ConfigError as initial_vocabulary(), and where no parameter has a counterpart,
/// a counterpart has another shape, or the vocabulary is no longer that of `task`; CheckpointError (no
/// weights, damaged).
std::string load_initial_weights(const Experiment& experiment, const Task& task, Model& model);

}  // namespace zoo
