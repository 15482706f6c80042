#pragma once
// Rules that change the scores of the next token before one is chosen. Each rule is a class with one
// function. To add a rule, write a class here (or in a new file) and add it in Generator::processors().

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "data/text/tokenizer.h"

namespace zoo {

/// One sequence under generation: its prompt and the tokens added so far.
struct SequenceView {
  std::span<const int64_t> prompt;
  std::span<const int64_t> generated;
};

class LogitsProcessor {
 public:
  virtual ~LogitsProcessor() = default;
  /// logits: (B, V) float32 → (B, V), -inf = cannot be chosen. `rows`: the B sequences. Rows are independent
  /// of each other, and at least one token of each stays possible. Does not change its input.
  virtual torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const = 0;
};

/// Processors in the order in which they are applied.
using LogitsProcessors = std::vector<std::unique_ptr<const LogitsProcessor>>;
torch::Tensor process(const LogitsProcessors& processors, torch::Tensor logits,
                      std::span<const SequenceView> rows);

/// Forbids `ids`, and every id from `vocab_size` on if the output layer is larger than the vocabulary. Ids
/// that the output layer lacks need no rule.
class SuppressTokens final : public LogitsProcessor {
 public:
  SuppressTokens(const TokenIds& ids, int64_t vocab_size, torch::Device device);
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  TokenIds sorted_;
  torch::Tensor on_device_;  // (n) int64: the same
  int64_t vocab_size_;
};

/// Adds to the scores of single tokens, as OpenAI's `logit_bias`.
class TokenBiases final : public LogitsProcessor {
 public:
  /// `ids` and their `biases`, one for each; ids that the output layer lacks need no rule.
  TokenBiases(TokenIds ids, std::vector<double> biases) : ids_(std::move(ids)), biases_(std::move(biases)) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  TokenIds ids_;
  std::vector<double> biases_;
};

/// Forbids all tokens but one as number `position` of the generated ones, counted from 0.
class ForcedToken final : public LogitsProcessor {
 public:
  ForcedToken(int64_t id, int64_t position) : id_(id), position_(position) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  int64_t id_, position_;
};

/// logits / temperature. A temperature below 1 makes likely tokens likelier. Any temperature > 0 is allowed.
class Temperature final : public LogitsProcessor {
 public:
  explicit Temperature(double temperature) : temperature_(temperature) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double temperature_;
};

/// Keeps exactly the k likeliest tokens (Fan et al. 2018); among equals the lower ids. k ≥ 1; k ≥ V keeps
/// all.
class TopK final : public LogitsProcessor {
 public:
  explicit TopK(int64_t k) : k_(k) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  int64_t k_;
};

/// Keeps the smallest set of tokens whose probabilities sum to p or more (nucleus sampling, Holtzman et al.
/// 2020), at least one token; among equals the lower ids. 0 < p ≤ 1.
class TopP final : public LogitsProcessor {
 public:
  explicit TopP(double p) : p_(p) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double p_;
};

/// Keeps the tokens that are at least p times as likely as the likeliest one (Nguyen et al. 2024). 0 ≤ p ≤ 1.
class MinP final : public LogitsProcessor {
 public:
  explicit MinP(double p) : p_(p) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double p_;
};

/// Keeps the tokens whose information -log p is nearest to its expected value, the entropy, until their
/// probabilities sum to `mass` or more (locally typical sampling, Meister et al. 2022); equally near tokens
/// together. 0 < mass ≤ 1.
class TypicalP final : public LogitsProcessor {
 public:
  explicit TypicalP(double mass) : mass_(mass) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double mass_;
};

/// Forbids `ends` as long as fewer than n tokens are generated.
class MinNewTokens final : public LogitsProcessor {
 public:
  MinNewTokens(int64_t n, TokenIds ends) : n_(n), ends_(std::move(ends)) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  int64_t n_;
  TokenIds ends_;
};

}  // namespace zoo
