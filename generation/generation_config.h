#pragma once
// The `generation:` part of a configuration: the defaults of `zoo generate`, and the options of a Generator.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"
#include "kernels/cache_format.h"
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

/// Tokens that follow each other: what is added to the logit of the last one where the others have just been
/// said. Without a bias, no output says them in this order.
struct SequenceBias {
  std::vector<int64_t> tokens = {};
  std::optional<double> bias = {};
};
void describe(ConfigVisitor& v, SequenceBias& c);

/// What GenerationConfig::max_new_tokens is if neither it nor max_length is given.
inline constexpr int64_t kUsualNewTokens = 200;

struct GenerationConfig {
  /// The most tokens of an output; absent: as max_length says, else kUsualNewTokens.
  std::optional<int64_t> max_new_tokens = {};
  /// The most tokens of a sequence, if max_new_tokens is absent: with the prompt that a decoder continues, or
  /// with the first token that the decoder of an encoder-decoder reads.
  std::optional<int64_t> max_length = {};
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
  double epsilon_cutoff = 0;     // 0 = off
  double eta_cutoff = 0;         // 0 = off
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
  int64_t min_length = 0;                           // the same for a sequence, counted as for max_length
  bool ignore_eos = false;                          // end tokens do not end an output
  std::vector<std::string> bad_words = {};          // texts that no output has, as tokens
  std::vector<int64_t> suppress_tokens = {};        // ids that are never generated
  std::vector<int64_t> suppress_first_tokens = {};  // ids that are not the first token of an output
  /// Ids that stand before each output of a model that reads recordings, such as Whisper's language and task.
  std::vector<int64_t> start_tokens = {};
  /// The number of the latest time with which an output with times may begin (0.02 s each in Whisper).
  std::optional<int64_t> max_initial_timestamp = {};
  /// Of translators between many languages (generation/languages.h): codes; default: those of their files.
  std::optional<std::string> source_language = {}, target_language = {};
  std::vector<SequenceBias> sequence_biases = {};
  std::optional<int64_t> forced_first_token = {};  // the first token of an output, if one token is before it
  std::optional<int64_t> forced_last_token = {};   // the last possible token, if an output comes to it
  // What they count as said before: repetition.h.
  double repetition_penalty = 1;             // 1 = off
  double encoder_repetition_penalty = 1;     // 1 = off
  double presence_penalty = 0;               // 0 = off
  double frequency_penalty = 0;              // 0 = off
  int64_t no_repeat_ngram_size = 0;          // 0 = off
  int64_t encoder_no_repeat_ngram_size = 0;  // 0 = off
  /// Start and factor by which the logits of end tokens rise with the length of an output; empty = off.
  std::vector<double> exponential_decay_length_penalty = {};
  std::vector<Selection> rules = {};  // of token_rule_types(), applied in order
  bool renormalize_logits = false;    // beams are ranked by probabilities of the tokens that rules leave
  // What every output that ends by itself is: docs/generation.md. At most one of the two.
  std::string regex = {};        // it matches this regular expression; empty = off
  std::string json_schema = {};  // it is a JSON text that this JSON schema (its text) describes; empty = off
};
void describe(ConfigVisitor& v, GenerationConfig& c);
/// Checks conditions across keys.
void validate(const GenerationConfig& c, const Complain& complain);

/// The most tokens of an output if `n_before` tokens of its sequence count for max_length. Throws UsageError
/// if max_length leaves no room.
int64_t most_new_tokens(const GenerationConfig& c, int64_t n_before);

/// How a task's models write where a configuration says nothing.
enum class UsualSearch {
  sampling,  // texts that go on in one of many ways: language modelling
  greedy,    // answers of which one is right: names of classes, what a recording says
  beams      // answers of which the best is wanted: translations, summaries
};
/// The defaults of a search.
GenerationConfig usual_generation(UsualSearch search);

/// Checks the range of each key and the conditions across keys, for options that were not read from a file.
/// Throws UsageError.
void check(const GenerationConfig& c);

}  // namespace zoo
