#pragma once
// Beam search over B prompts at once, as Hugging Face transformers does it: each step looks at the 2·beams
// likeliest continuations of a prompt's beams; those among the first `beams` that end are finished
// hypotheses, the first `beams` that do not end go on. Hypotheses are ranked by log-probability /
// length^penalty, eos counted.

#include <vector>

#include "generation/generation_config.h"
#include "generation/search.h"

namespace zoo {

struct BeamOptions {
  int64_t beams = 4;
  double length_penalty = 1.0;
  EarlyStopping early_stopping = EarlyStopping::first_finished;
};

/// The finished hypotheses of each prompt, at most `beams`, best first. Deterministic. `processors` forbid
/// tokens; what they make of the other scores counts as well, but is not normalised again.
std::vector<std::vector<Hypothesis>> beam_search(GenerativeModel& model, torch::Device device,
                                                 const std::vector<TokenIds>& prompts,
                                                 const LogitsProcessors& processors,
                                                 const SearchLimits& limits, const BeamOptions& options);

}  // namespace zoo
