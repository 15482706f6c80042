#pragma once
// Texts for RUN/samples.txt.

#include <string>
#include <vector>

#include "training/task.h"

namespace zoo {

/// What a language model makes of each prompt, the prompt included, sampled with a fixed seed as the
/// experiment's `generation:` says.
std::vector<std::string> sampled_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts);

/// The likeliest answer to each prompt, token by token.
std::vector<std::string> greedy_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts);

}  // namespace zoo
