#pragma once
// How one token is chosen from processed logits. No generator has a state: every random number is a function
// of the seed and of what it is drawn for, so a text depends neither on the batch it is in nor on what was
// generated before.

#include <cstdint>
#include <span>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// What a random number is drawn for.
struct Draw {
  uint64_t prompt = 0;    // which prompt of the user, from 0; 32 bits
  uint64_t sample = 0;    // which output for it, from 0; 32 bits
  uint64_t position = 0;  // which token of the output, from 0
};

/// Uniform in [0, 1), 53 bits: Philox4x32-10 (Salmon et al. 2011) with key `seed` and counter `draw`.
double uniform(uint64_t seed, const Draw& draw);

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// logits: (B, V) float32, -inf = cannot be chosen → B token ids. Throws CheckpointError where a row holds
  /// a NaN, or nothing that can be chosen.
  virtual std::vector<int64_t> sample(const torch::Tensor& logits, std::span<const Draw> draws) const = 0;
};

/// The likeliest token; among equals the lowest id.
class GreedySampler final : public Sampler {
 public:
  std::vector<int64_t> sample(const torch::Tensor& logits, std::span<const Draw> draws) const override;
};

/// A token drawn with its probability, softmax(logits).
class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(uint64_t seed) : seed_(seed) {}
  std::vector<int64_t> sample(const torch::Tensor& logits, std::span<const Draw> draws) const override;

 private:
  uint64_t seed_;
};

/// Raises the CheckpointError of a model whose logits are NaN.
[[noreturn]] void fail_not_a_number();

}  // namespace zoo
