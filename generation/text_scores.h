#pragma once
// How likely given texts are: the log-probability of each of their tokens.

#include <string_view>
#include <vector>

#include "generation/log_probabilities.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Tokens whose probabilities are asked for.
struct TokensToScore {
  TokenIds prompt;  // what the model reads before them (of an encoder-decoder: the source), not empty
  TokenIds ids;
};

/// The tokens of `text`, which a decoder reads after those that the vocabulary puts before a text; if it puts
/// none there, after model_input() of an empty prompt. Throws DataError as encode_prompt().
TokensToScore tokens_to_score(std::string_view text, const Tokenizer& tokenizer,
                              const GenerativeModel& model);

/// The tokens of `target`, with what the vocabulary puts around a text, or eos, as the answer of a model to
/// `source`. Throws DataError as encode_prompt(), and if the source or the target is too long for the model.
TokensToScore tokens_to_score(std::string_view source, std::string_view target, const Tokenizer& tokenizer,
                              const GenerativeModel& model);

/// The natural log-probability of each token of each text after those before it, by the model itself.
/// `batch_size` texts of similar length are read together, at least 1; what they change is rounding at most.
/// A text with more tokens than a decoder sees goes on from its last half, as generation does
/// (generation/scheduler.h). The model must be generative. Throws CheckpointError if the logits are NaN.
std::vector<std::vector<double>> token_logprobs(Model& model, const std::vector<TokensToScore>& texts,
                                                int64_t batch_size = 32);

/// What a model says at the place of one token of a text.
struct ScoredToken {
  double logprob = 0;  // of the text's own token
  std::vector<TokenLogprob> likeliest = {};
};

/// The same, with the n likeliest tokens at each place.
std::vector<std::vector<ScoredToken>> scored_tokens(Model& model, const std::vector<TokensToScore>& texts,
                                                    int64_t n_likeliest, int64_t batch_size = 32);

}  // namespace zoo
