#pragma once
// Generated texts to look at.

#include <string>
#include <vector>

#include "training/tasks/task.h"

namespace zoo {

/// What a language model makes of each prompt, sampled with a fixed seed as the experiment's `generation:`
/// says: inputs and outputs without each other.
std::vector<Sample> sampled_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts);

}  // namespace zoo
