#pragma once
// Losses of constant predictions. A model has learnt something if its loss is below them.

#include <optional>
#include <string>

#include "tasks/task.h"

namespace zoo {

/// Losses of constant predictions, in nats per target.
struct GuessLosses {
  double uniform = 0;  // every class is equally likely
  double unigram = 0;  // the classes are as frequent as among the training targets, each counted once more
};

/// The losses on a split, from its first million targets and the first million training targets. Nothing for
/// a task whose targets are not classes, and if the training data cannot be read: a model can be evaluated
/// without them. Reads the data. Throws DataError for those of `split`.
std::optional<GuessLosses> guess_losses(Task& task, Split split);

/// Whether a loss shows that a model has learnt more than how frequent the classes are: it is at
/// least 2 % below the loss of that guess.
bool has_learnt(double loss, const GuessLosses& guess);

/// Says that a loss is no better than a guess; nothing if it is.
std::optional<std::string> guess_note(double loss, const GuessLosses& guess);

}  // namespace zoo
