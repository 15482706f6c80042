#pragma once
// The `generation:` part of a configuration: the defaults of `zoo generate`.

#include "io/config_file.h"

namespace zoo {

struct GenerationConfig {
  int64_t max_new_tokens = 200;
  int64_t beam = 1;              // beams; 1 = no beam search
  double length_penalty = 1.0;   // beam scores are divided by length^this
  bool early_stopping = true;    // beam: stop when `beam` hypotheses are finished
  double temperature = 1.0;      // 0 = greedy
  int64_t top_k = 0;             // 0 = off
  double top_p = 1.0;            // 1 = off
  int64_t num_samples = 1;       // outputs a prompt
  int64_t seed = 0;
};
void describe(ConfigVisitor& v, GenerationConfig& c);
void validate(const GenerationConfig& c, const Complain& complain);

}  // namespace zoo
