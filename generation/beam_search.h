#pragma once
// Beam search over B prompts at once, as in Hugging Face transformers. Each step ranks the likeliest
// continuations of a prompt's beams: 2·beams, or more if there are several end tokens. Those among the first
// `beams` that end, with an end token or a stop text, become finished hypotheses. The first `beams` that do
// not end are the next beams. Hypotheses are ranked by log-probability / length^penalty; the length includes
// the end token.

#include <vector>

#include <torch/types.h>

#include "generation/generation_config.h"
#include "generation/hypothesis.h"
#include "generation/rules/logits_processors.h"
#include "models/model.h"

namespace zoo {

struct BeamOptions {
  int64_t beams = 4;
  double length_penalty = 1.0;
  EarlyStopping early_stopping = EarlyStopping::first_finished;
};

/// Returns the finished hypotheses of each prompt, at most `beams`, best first. Deterministic. `processors`
/// may forbid tokens and change other scores. Hypotheses are ranked by changed scores, which are not
/// normalised again.
std::vector<std::vector<Hypothesis>> beam_search(GenerativeModel& model, torch::Device device,
                                                 const std::vector<TokenIds>& prompts,
                                                 const LogitsProcessors& processors,
                                                 const SearchLimits& limits, const BeamOptions& options);

}  // namespace zoo
