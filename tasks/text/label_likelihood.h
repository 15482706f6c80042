#pragma once
// The likelihood of each of a few given answers under an encoder-decoder.

#include <vector>

#include <torch/types.h>

#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Log-probabilities of fixed answers to sources. Each source is encoded once for all answers.
class LabelLikelihood {
 public:
  /// `answers` have no special tokens. Sources are cut to `source_length` tokens, eos included.
  LabelLikelihood(Model& model, const SpecialTokens& special, const std::vector<TokenIds>& answers,
                  int64_t source_length);
  /// (B, C) float on the CPU: log p(answer, eos | source) of each answer to each source.
  torch::Tensor operator()(std::vector<TokenIds> sources) const;

 private:
  Model& model_;
  SpecialTokens special_;
  int64_t source_length_;
  torch::Tensor tokens_;  // (C, T) int64 on the model's device: answer, eos, padding
  torch::Tensor real_;    // (C, T) float: 1 at answer and eos, 0 at padding
};

}  // namespace zoo
