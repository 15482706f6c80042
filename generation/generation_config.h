#pragma once
// The `generation:` part of a configuration: the defaults of `zoo generate`, and the options of a Generator.

#include <array>
#include <string_view>

#include "io/config/config_file.h"

namespace zoo {

/// When beam search stops looking, as `early_stopping` of Hugging Face transformers:
///   true   as soon as `beam` hypotheses are finished
///   false  when the best running beam, were it to end now, would not be among them
///   never  when no running beam could ever get among them
enum class EarlyStopping { heuristic, first_finished, never };
constexpr auto config_names(EarlyStopping) {
  return std::to_array<std::string_view>({"false", "true", "never"});
}

struct GenerationConfig {
  int64_t max_new_tokens = 200;
  int64_t beam = 1;             // beams; 1 = no beam search
  double length_penalty = 1.0;  // scores are log-probability / length^this, eos counted as one token
  EarlyStopping early_stopping = EarlyStopping::first_finished;
  double temperature = 1.0;  // 0 = greedy
  int64_t top_k = 0;         // 0 = off
  double top_p = 1.0;        // 1 = off
  int64_t num_samples = 1;   // outputs a prompt; under beam search the n best
  int64_t seed = 0;
  int64_t batch_size =
      32;  // sequences (prompts × beams or samples) at once; what comes out does not depend on it
};
void describe(ConfigVisitor& v, GenerationConfig& c);
/// Checks across keys.
void validate(const GenerationConfig& c, const Complain& complain);

/// All checks, of each key's range and across keys, on options that were not read from a file. Throws
/// UsageError.
void check(const GenerationConfig& c);

}  // namespace zoo
