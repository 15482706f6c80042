#pragma once
// Beam search over B prompts at once, as in Hugging Face transformers. Each step ranks the likeliest
// continuations of a prompt's beams: 2·beams, or more if there are several end tokens. Those among the first
// `beams` that end, with an end token or a stop text, become finished hypotheses. The first `beams` that do
// not end are the next beams. Hypotheses are ranked by log-probability / length^penalty; the length includes
// the end token.
//
// The beams of a prompt may be divided into groups that differ from each other (Vijayakumar et al. 2018,
// "Diverse Beam Search"). In each step the groups choose one after the other. A token loses
// diversity_penalty for each beam of an earlier group that has chosen it in this step.

#include <vector>

#include <torch/types.h>

#include "generation/generation_config.h"
#include "generation/hypothesis.h"
#include "generation/rules/logits_processors.h"
#include "models/model.h"

namespace zoo {

struct BeamOptions {
  int64_t beams = 4;  // of a prompt, in all its groups
  double length_penalty = 1.0;
  EarlyStopping early_stopping = EarlyStopping::first_finished;
  /// With first_finished: a group ends once patience · its beams, rounded and at least 1, are finished (Kasai
  /// et al. 2022).
  double patience = 1.0;
  int64_t groups = 1;            // divides beams
  double diversity_penalty = 0;  // in natural log-probability
};

/// Returns the finished hypotheses of each prompt, at most `beams`, best first. Deterministic. `processors`
/// may forbid tokens and change other scores. Hypotheses are ranked by changed scores, which are not
/// normalised again: a forced token counts 0. Their `logprobs` and `total` are the model's own. `fields`: the
/// recordings, one for each prompt, if the model reads recordings.
std::vector<std::vector<Hypothesis>> beam_search(GenerativeModel& model, torch::Device device,
                                                 const std::vector<TokenIds>& prompts,
                                                 const LogitsProcessors& processors,
                                                 const SearchLimits& limits, const BeamOptions& options,
                                                 const BatchFields& fields = {});

}  // namespace zoo
