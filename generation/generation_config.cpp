#include "generation/generation_config.h"

namespace zoo {

void describe(ConfigVisitor& v, GenerationConfig& c) {
  v.field("max_new_tokens", c.max_new_tokens, "Most tokens to generate for one output.", Limits::at_least(1));
  v.field("beam", c.beam, "Beams of beam search; 1 = none.", Limits::between(1, 1024));
  v.field("length_penalty", c.length_penalty, "A beam's log-probability is divided by its length to this power.");
  v.field("early_stopping", c.early_stopping, "End beam search once `beam` hypotheses are finished.");
  v.field("temperature", c.temperature, "Divides the logits before sampling; 0 = greedy.", Limits::at_least(0));
  v.field("top_k", c.top_k, "Sample among the k likeliest tokens; 0 = all.", Limits::at_least(0));
  v.field("top_p", c.top_p, "Sample among the likeliest tokens that make up this probability; 1 = all.",
          {.min = 0, .max = 1, .min_excluded = true});
  v.field("num_samples", c.num_samples, "Outputs for each prompt.", Limits::at_least(1));
  v.field("seed", c.seed, "Of the sampler: the same seed gives the same text.", Limits::at_least(0));
}

void validate(const GenerationConfig& c, const Complain& complain) {
  if (c.beam > 1 && c.num_samples > c.beam) complain("num_samples", "beam search has no more outputs than beams");
}

}  // namespace zoo
