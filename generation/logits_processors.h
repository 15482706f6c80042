#pragma once
// What happens to the scores of the next token before one is chosen. Each rule is a class with one function;
// a new one is a class here (or a file beside this one) and a line where the Generator puts its list
// together.

#include <memory>
#include <span>
#include <vector>

#include <torch/types.h>

#include "data/text/tokenizer.h"

namespace zoo {

/// One sequence under generation: what it started from, and what was added.
struct SequenceView {
  std::span<const int64_t> prompt;
  std::span<const int64_t> generated;
};

class LogitsProcessor {
 public:
  virtual ~LogitsProcessor() = default;
  /// logits: (B, V) float32 → (B, V), -inf = cannot be chosen. `rows`: the B sequences. Rows are independent
  /// of each other, and at least one token of each stays possible. The input is left as it is.
  virtual torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const = 0;
};

/// Applied in order.
using LogitsProcessors = std::vector<std::unique_ptr<const LogitsProcessor>>;
torch::Tensor process(const LogitsProcessors& processors, torch::Tensor logits,
                      std::span<const SequenceView> rows);

/// Forbids `ids`, and whatever stands above `vocab_size` in an output layer that is larger than the
/// vocabulary.
class SuppressTokens final : public LogitsProcessor {
 public:
  SuppressTokens(const TokenIds& ids, int64_t vocab_size, torch::Device device);
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  torch::Tensor ids_;  // (n) int64
  int64_t vocab_size_;
};

/// logits / temperature; below 1 the likely becomes likelier. temperature > 0, however small.
class Temperature final : public LogitsProcessor {
 public:
  explicit Temperature(double temperature) : temperature_(temperature) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double temperature_;
};

/// Keeps exactly the k likeliest tokens (Fan et al. 2018); among equals the lower ids. k ≥ 1; a k of V or
/// more keeps all.
class TopK final : public LogitsProcessor {
 public:
  explicit TopK(int64_t k) : k_(k) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  int64_t k_;
};

/// Keeps the smallest set of tokens whose probabilities add up to p or more (nucleus sampling, Holtzman et
/// al. 2020): at least one; among equals the lower ids. 0 < p ≤ 1.
class TopP final : public LogitsProcessor {
 public:
  explicit TopP(double p) : p_(p) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  double p_;
};

}  // namespace zoo
