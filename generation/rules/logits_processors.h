#pragma once
// Rules that change the scores of the next token before one is chosen. Each rule is a class with one
// function. To add a rule, write a class here (or in a new file) and add it in Generator::processors().

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "generation/rules/row_rules.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// One sequence under generation: its prompt and the tokens added so far.
struct SequenceView {
  std::span<const int64_t> prompt;
  std::span<const int64_t> generated;
};

/// At which tokens a rule holds, by the sequence before the token.
using HoldsAfter = std::function<bool(const SequenceView& row)>;

class LogitsProcessor {
 public:
  virtual ~LogitsProcessor() = default;
  /// logits: (B, V) float32 → (B, V), -inf = cannot be chosen. `rows`: the B sequences. Rows are independent
  /// of each other, and at least one token of each stays possible. Does not change its input.
  virtual torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const = 0;
  /// Adds this rule to those of a row, if numbers can say it. Returns whether it did.
  virtual bool add_to(RowRules&) const { return false; }
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
  bool add_to(RowRules& rules) const override;

 private:
  TokenIds sorted_;
  torch::Tensor on_device_;  // (n) int64: the same
  int64_t vocab_size_;
};

/// Forbids `ids` where the rule holds, such as end tokens while an output is too short.
class ForbiddenTokens final : public LogitsProcessor {
 public:
  ForbiddenTokens(TokenIds ids, HoldsAfter holds) : ids_(std::move(ids)), holds_(std::move(holds)) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  TokenIds ids_;
  HoldsAfter holds_;
};

/// Forbids all tokens but one where the rule holds. The score of this token becomes 0, as in Hugging Face
/// transformers: what is forced costs nothing, and does not rank the beams.
class ForcedToken final : public LogitsProcessor {
 public:
  ForcedToken(int64_t id, HoldsAfter holds) : id_(id), holds_(std::move(holds)) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  int64_t id_;
  HoldsAfter holds_;
};

/// Raises the scores s of `ends` by |s| · (factor^n - 1) at token number start + n of an output, n ≥ 1, which
/// is counted from 0 (`exponential_decay_length_penalty` in Hugging Face transformers). factor > 0.
class LengthDecay final : public LogitsProcessor {
 public:
  LengthDecay(double start, double factor, TokenIds ends)
      : start_(start), factor_(factor), ends_(std::move(ends)) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double start_, factor_;
  TokenIds ends_;
};

/// logits / temperature. A temperature below 1 makes likely tokens likelier. Any temperature > 0 is allowed.
class Temperature final : public LogitsProcessor {
 public:
  explicit Temperature(double temperature) : temperature_(temperature) {}
  /// The temperature, or the nearest one by which numbers can be divided.
  static double divisor(double temperature);
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;
  bool add_to(RowRules& rules) const override;

 private:
  double temperature_;
};

/// Keeps exactly the k likeliest tokens (Fan et al. 2018); among equals the lower ids. k ≥ 1; k ≥ V keeps
/// all.
class TopK final : public LogitsProcessor {
 public:
  explicit TopK(int64_t k) : k_(k) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;
  bool add_to(RowRules& rules) const override;

 private:
  int64_t k_;
};

/// Keeps the smallest set of tokens whose probabilities sum to p or more (nucleus sampling, Holtzman et al.
/// 2020), at least one token; among equals the lower ids. 0 < p ≤ 1.
class TopP final : public LogitsProcessor {
 public:
  explicit TopP(double p) : p_(p) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;
  bool add_to(RowRules& rules) const override;

 private:
  double p_;
};

/// Keeps the tokens that are at least p times as likely as the likeliest one (Nguyen et al. 2024). 0 ≤ p ≤ 1.
class MinP final : public LogitsProcessor {
 public:
  explicit MinP(double p) : p_(p) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;
  bool add_to(RowRules& rules) const override;

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

/// Keeps the tokens whose probability is at least `least` (epsilon sampling, Hewitt et al. 2022), and always
/// the likeliest. 0 ≤ least < 1.
class EpsilonCutoff final : public LogitsProcessor {
 public:
  explicit EpsilonCutoff(double least) : least_(least) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double least_;
};

/// Keeps the tokens whose probability is at least min(epsilon, √epsilon · exp(-entropy)) (eta sampling,
/// Hewitt et al. 2022), and always the likeliest. 0 ≤ epsilon < 1.
class EtaCutoff final : public LogitsProcessor {
 public:
  explicit EtaCutoff(double epsilon) : epsilon_(epsilon) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double epsilon_;
};

/// log softmax: the scores of the tokens that are left as log-probabilities, for beams.
class Renormalised final : public LogitsProcessor {
 public:
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;
};

}  // namespace zoo
