#pragma once
// Chooses one token from processed logits. Samplers are stateless: every random number is a function of the
// seed and of a Draw. A text therefore depends on the seed, on the number of its prompt (its row) and on the
// number of the output, but not on how rows are batched or on texts generated before.

#include <cstdint>
#include <span>
#include <vector>

#include <torch/types.h>

#include "generation/rules/row_rules.h"

namespace zoo {

/// Identifies the token for which a random number is drawn.
struct Draw {
  uint64_t prompt = 0;    // index of the prompt; 32 bits
  uint64_t sample = 0;    // index of the output for this prompt; 32 bits
  uint64_t position = 0;  // index of the token in the output
};

/// Uniform in [0, 1), 53 bits: Philox4x32-10 (Salmon et al. 2011) with key `seed` and counter `draw`.
double uniform(uint64_t seed, const Draw& draw);
/// The number by which RandomSampler draws a token.
double number_of_token(uint64_t seed, const Draw& draw);
/// A row for each number (B, 1) float64 in 0 … 1: the token (B) at this share of the row's mass, and the
/// whole mass (B). mass: (B, V) float64, not negative; V at a row whose mass is not a number.
struct TokensAt {
  torch::Tensor tokens, total;
};
TokensAt tokens_at(const torch::Tensor& numbers, const torch::Tensor& mass);

/// Tokens that may follow a text.
struct Proposal {
  std::vector<int64_t> tokens = {};
  /// (n, V) float64: the distribution from which each was drawn; undefined: they were not drawn.
  torch::Tensor distributions = {};
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// logits: (B, V) float32, -inf = cannot be chosen → B token ids. Throws CheckpointError if a row holds a
  /// NaN or no token that can be chosen.
  virtual std::vector<int64_t> sample(const torch::Tensor& logits, std::span<const Draw> draws) const = 0;
  /// Adds what it does to the rules of a row, if numbers can say it. Returns whether it did.
  virtual bool add_to(RowRules&) const { return false; }

  /// The token of a draft, and the distribution from which it was drawn, (V) float64; undefined if it was not
  /// drawn. logits: (1, V).
  struct Drafted {
    int64_t token;
    torch::Tensor distribution;
  };
  virtual Drafted draft(const torch::Tensor& logits, const Draw& draw) const;
  /// The tokens that follow a text, for which n tokens were proposed: those of the proposal that are
  /// accepted, and one more. logits: (n+1, V) after the text and after each proposed token, with a draw for
  /// each. Tokens are accepted so that they are distributed as sample() chooses them.
  virtual std::vector<int64_t> check(const Proposal& proposal, const torch::Tensor& logits,
                                     std::span<const Draw> draws) const;
};

/// The likeliest token; among equals the lowest id.
class GreedySampler final : public Sampler {
 public:
  std::vector<int64_t> sample(const torch::Tensor& logits, std::span<const Draw> draws) const override;
  bool add_to(RowRules& rules) const override;
};

/// Draws a token with its probability, softmax(logits). A token x of a proposal whose tokens were drawn is
/// accepted with probability min(1, p(x) / q(x)), where p are the model's probabilities and q the draft's;
/// instead of the first one that is not, one is drawn from max(p - q, 0) (Leviathan et al. 2023, appendix
/// A.1).
class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(uint64_t seed) : seed_(seed) {}
  std::vector<int64_t> sample(const torch::Tensor& logits, std::span<const Draw> draws) const override;
  bool add_to(RowRules& rules) const override;
  Drafted draft(const torch::Tensor& logits, const Draw& draw) const override;
  std::vector<int64_t> check(const Proposal& proposal, const torch::Tensor& logits,
                             std::span<const Draw> draws) const override;

 private:
  uint64_t seed_;
};

}  // namespace zoo
