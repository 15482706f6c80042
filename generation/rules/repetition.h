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
  in_output,            // for a model that answers or translates: it may use the words of its source
  in_prompt_or_output,  // for a model that continues its prompt
  in_prompt
};

/// The tokens of a sequence that count as said before, in their order.
struct SaidTokens {
  /// `begin` stands before all others: what the decoder of an encoder-decoder reads before an output.
  SaidTokens(PresentTokens present, TokenIds begin = {}) : which(present), first(std::move(begin)) {}
  TokenIds of(const SequenceView& row) const;
  /// The same without generated tokens: how many there are.
  int64_t n_before(const SequenceView& row) const;

  PresentTokens which;
  TokenIds first;
};

/// Divides the positive scores of tokens that were said before by `penalty`, and multiplies the negative ones
/// (CTRL, Keskar et al. 2019; `repetition_penalty` in Hugging Face transformers). penalty > 0; above 1 it
/// makes repetition less likely.
class RepetitionPenalty final : public LogitsProcessor {
 public:
  RepetitionPenalty(double penalty, SaidTokens said) : penalty_(penalty), said_(std::move(said)) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;
  bool add_to(RowRules& rules) const override;

 private:
  double penalty_;
  SaidTokens said_;
};

/// Subtracts presence + frequency · n from the score of each token that occurs n > 0 times in the output, as
/// OpenAI's and vLLM's `presence_penalty` and `frequency_penalty`.
class OccurrencePenalty final : public LogitsProcessor {
 public:
  OccurrencePenalty(double presence, double frequency) : presence_(presence), frequency_(frequency) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;
  bool add_to(RowRules& rules) const override;

 private:
  double presence_, frequency_;
};

/// Forbids every token that would complete n tokens which follow each other already in what was said before
/// (`no_repeat_ngram_size` in Hugging Face transformers). Where this would leave no token, it forbids none.
/// n ≥ 1.
class NoRepeatNgram final : public LogitsProcessor {
 public:
  NoRepeatNgram(int64_t n, SaidTokens said) : n_(n), said_(std::move(said)) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  int64_t n_;
  SaidTokens said_;
};

/// The same for n tokens that follow each other in the prompt: what answers it does not copy them
/// (`encoder_no_repeat_ngram_size` in Hugging Face transformers).
class NoCopiedNgram final : public LogitsProcessor {
 public:
  NoCopiedNgram(int64_t n, SaidTokens said) : n_(n), said_(std::move(said)) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  int64_t n_;
  SaidTokens said_;
};

/// Forbids the last token of each of `words` where its other tokens have just been said (`bad_words_ids` in
/// Hugging Face transformers). Where this would leave no token, it forbids none. No word is empty.
class BadWords final : public LogitsProcessor {
 public:
  BadWords(std::vector<TokenIds> words, SaidTokens said) : words_(std::move(words)), said_(std::move(said)) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  std::vector<TokenIds> words_;
  SaidTokens said_;
};

/// Tokens that follow each other, and what is added to the score of the last one.
struct BiasedSequence {
  TokenIds tokens;  // not empty
  double bias;
};

/// Adds to the score of the last token of each sequence where its other tokens have just been said
/// (`sequence_bias` in Hugging Face transformers; of single tokens, `logit_bias` of OpenAI). Ids that the
/// output layer lacks need no rule.
class SequenceBiases final : public LogitsProcessor {
 public:
  SequenceBiases(std::vector<BiasedSequence> sequences, SaidTokens said)
      : sequences_(std::move(sequences)), said_(std::move(said)) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  std::vector<BiasedSequence> sequences_;
  SaidTokens said_;
};

}  // namespace zoo
