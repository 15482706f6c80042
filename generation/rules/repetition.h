#pragma once
// Rules against repetition: they change the scores of tokens that were said before.

#include <span>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "generation/rules/logits_processors.h"

namespace zoo {

/// The tokens that count as said before.
enum class PresentTokens {
  in_output,           // for a model that answers or translates: it may use the words of its source
  in_prompt_or_output  // for a model that continues its prompt
};

/// Divides the positive scores of tokens that were said before by `penalty`, and multiplies the negative ones
/// (CTRL, Keskar et al. 2019; `repetition_penalty` in Hugging Face transformers). penalty > 0; above 1 it
/// makes repetition less likely.
class RepetitionPenalty final : public LogitsProcessor {
 public:
  RepetitionPenalty(double penalty, PresentTokens said) : penalty_(penalty), said_(said) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double penalty_;
  PresentTokens said_;
};

/// Subtracts presence + frequency · n from the score of each token that occurs n > 0 times in the output, as
/// OpenAI's and vLLM's `presence_penalty` and `frequency_penalty`.
class OccurrencePenalty final : public LogitsProcessor {
 public:
  OccurrencePenalty(double presence, double frequency) : presence_(presence), frequency_(frequency) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double presence_, frequency_;
};

/// Forbids every token that would complete n tokens which follow each other already in what was said before
/// (`no_repeat_ngram_size` in Hugging Face transformers). Where this would leave no token, it forbids none.
/// n ≥ 1.
class NoRepeatNgram final : public LogitsProcessor {
 public:
  NoRepeatNgram(int64_t n, PresentTokens said) : n_(n), said_(said) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  int64_t n_;
  PresentTokens said_;
};

/// Forbids the last token of each of `words` where its other tokens have just been said (`bad_words_ids` in
/// Hugging Face transformers). Where this would leave no token, it forbids none. No word is empty.
class BadWords final : public LogitsProcessor {
 public:
  BadWords(std::vector<TokenIds> words, PresentTokens said) : words_(std::move(words)), said_(said) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  std::vector<TokenIds> words_;
  PresentTokens said_;
};

}  // namespace zoo
