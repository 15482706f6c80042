#include "analysis/token_predictions.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "models/inference_scope.h"
#include "models/model.h"

namespace zoo {
namespace {

constexpr int64_t kPositionsAtOnce = 256;  // limits the memory of logits: a vocabulary may be large

/// Appends the predictions of some positions from their logits, (N, V).
void append(TokenPredictions& predictions, const Tokenizer& tokenizer, const torch::Tensor& logits,
            int64_t n) {
  const auto all = logits.to(torch::kCPU, torch::kFloat64).softmax(-1);
  if (all.isnan().any().item<bool>()) fail_not_a_number();
  // A model may have more outputs than the vocabulary has tokens: padding, which has no label.
  const int64_t n_tokens = std::min(all.size(1), tokenizer.vocab_size());
  const auto [probabilities, ids] = all.narrow(1, 0, n_tokens).topk(std::min(n, n_tokens), 1);
  for (int64_t t = 0; t < ids.size(0); ++t) {
    auto& likeliest = predictions.emplace_back();
    for (int64_t i = 0; i < ids.size(1); ++i)
      likeliest.push_back({tokenizer.label(ids[t][i].item<int64_t>()), probabilities[t][i].item<double>()});
  }
}

}  // namespace

TokenPredictions token_predictions(Model& model, const Tokenizer& tokenizer, const Batch& batch, int64_t n) {
  const InferenceScope scope(model);
  TokenPredictions predictions;
  for (const auto& features : model.features(batch).split(kPositionsAtOnce))
    append(predictions, tokenizer, model.logits(features), n);
  return predictions;
}

nlohmann::ordered_json predictions_json(const TokenPredictions& predictions) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& likeliest : predictions) {
    auto& tokens = list.emplace_back(nlohmann::ordered_json::array());
    for (const auto& [token, probability] : likeliest)
      tokens.push_back({{"token", token}, {"probability", std::round(probability * 1e6) / 1e6}});
  }
  return list;
}

}  // namespace zoo
