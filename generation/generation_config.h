#pragma once
// The `generation:` part of a configuration: the defaults of `zoo generate`, and the options of a Generator.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"
#include "layers/kernels/attention/cache_format.h"
#include "models/config/model_config.h"

namespace zoo {

/// When beam search stops, as `early_stopping` in Hugging Face transformers:
///   true   once `beam` hypotheses are finished
///   false  once the best running beam would not be among the `beam` best hypotheses if it ended now
///   never  once no running beam can still become one of the `beam` best hypotheses
enum class EarlyStopping { heuristic, first_finished, never };
constexpr auto config_names(EarlyStopping) {
  return std::to_array<std::string_view>({"false", "true", "never"});
}

/// The largest GenerationConfig::num_samples: the outputs of a prompt are held in memory together.
inline constexpr int64_t kMostSamples = 10000;

struct GenerationConfig {
  int64_t max_new_tokens = 200;
  int64_t beam = 1;             // number of beams; 1 = no beam search
  double length_penalty = 1.0;  // scores are log-probability / length^length_penalty; the length includes eos
  EarlyStopping early_stopping = EarlyStopping::first_finished;
  double patience = 1.0;         // how many hypotheses end a beam search: beam_search.h
  int64_t beam_groups = 1;       // groups of beams that differ from each other; 1 = off
  double diversity_penalty = 0;  // by how much a token that an earlier group has chosen is less likely
  double temperature = 1.0;      // 0 = greedy
  int64_t top_k = 0;             // 0 = off
  double top_p = 1.0;            // 1 = off
  double min_p = 0;              // 0 = off
  double typical_p = 1.0;        // 1 = off
  int64_t num_samples = 1;       // outputs per prompt; with beam search the n best
  int64_t seed = 0;
  /// How the commands that load a trained model store its weights.
  WeightFormat weights = WeightFormat::fp32;
  /// How they have it store the keys and values of earlier tokens: docs/generation.md.
  CacheFormat cache = CacheFormat::fp32;
  int64_t batch_size = 32;    // outputs that grow together; what they change: docs/generation.md
  int64_t prompt_lookup = 0;  // tokens proposed for a step by prompt look-up; 0 = off (speculation.h)
  int64_t draft_tokens = 4;   // tokens proposed for a step by a draft model, if there is one
  std::vector<std::string> stop = {};               // an output ends before the first of these texts
  int64_t min_new_tokens = 0;                       // an output does not end before so many tokens
  std::vector<std::string> bad_words = {};          // texts that no output has, as tokens
  std::vector<int64_t> suppress_tokens = {};        // ids that are never generated
  std::vector<int64_t> suppress_first_tokens = {};  // ids that are not the first token of an output
  /// Ids that stand before each output of a model that reads recordings, such as Whisper's language and task.
  std::vector<int64_t> start_tokens = {};
  std::optional<int64_t> forced_first_token = {};  // the first token of an output
  std::optional<int64_t> forced_last_token = {};   // token number max_new_tokens, if an output comes to it
  // What they count as said before: repetition.h.
  double repetition_penalty = 1;     // 1 = off
  double presence_penalty = 0;       // 0 = off
  double frequency_penalty = 0;      // 0 = off
  int64_t no_repeat_ngram_size = 0;  // 0 = off
  // What every output that ends by itself is: docs/generation.md. At most one of the two.
  std::string regex = {};        // it matches this regular expression; empty = off
  std::string json_schema = {};  // it is a JSON text that this JSON schema (its text) describes; empty = off
};
void describe(ConfigVisitor& v, GenerationConfig& c);
/// Checks conditions across keys.
void validate(const GenerationConfig& c, const Complain& complain);

/// Checks the range of each key and the conditions across keys, for options that were not read from a file.
/// Throws UsageError.
void check(const GenerationConfig& c);

}  // namespace zoo
