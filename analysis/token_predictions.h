#pragma once
// The tokens that a model finds likeliest at each position of a text.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

struct TokenPrediction {
  std::string token;   // its label
  double probability;  // among all tokens, 0 … 1
};

/// For each position the likeliest tokens, the likeliest first.
using TokenPredictions = std::vector<std::vector<TokenPrediction>>;

/// The `n` likeliest tokens at every position of the only row of `batch`, which is on the model's device: the
/// next token for a model that writes, the token at the position itself for a masked language model. The head
/// must predict tokens (predicts_tokens()). Throws CheckpointError if the logits are not numbers.
TokenPredictions token_predictions(Model& model, const Tokenizer& tokenizer, const Batch& batch, int64_t n);

/// For each position a list of {"token", "probability"}; probabilities have six digits after the point.
nlohmann::ordered_json predictions_json(const TokenPredictions& predictions);

}  // namespace zoo
