#pragma once
// Which positions a call computes, and the absolute encodings that are added to the embeddings. The relative
// ones (rotary, biases, Shaw) have headers of their own.

#include <functional>
#include <mutex>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// The positions of a block of T consecutive tokens. Row b of a left-padded batch counts from its first real
/// token.
struct PositionRange {
  int64_t first = 0;     // of the block: the number of tokens already in the cache
  int64_t count = 0;     // T
  torch::Tensor starts;  // (B) int64: padding on the left of each row; undefined = none

  /// (T) int64, or (B, T) with left padding, where the padding itself gets position 0.
  torch::Tensor ids(torch::Device device) const;
  int64_t end() const { return first + count; }
};

/// A row for every position so far, grown on demand; no parameters. Threads may ask at the same time.
class PositionTable {
 public:
  /// (n) int64 → (n, …), on the device of the positions.
  using Make = std::function<torch::Tensor(const torch::Tensor& positions)>;

  explicit PositionTable(Make make) : make_(std::move(make)) {}
  /// The rows of a range: (T, …), or (B, T, …) with left padding.
  torch::Tensor rows(const PositionRange& range, torch::Device device);

 private:
  torch::Tensor first_rows(int64_t n_positions, torch::Device device);

  Make make_;
  std::mutex mutex_;
  torch::Tensor rows_;
  std::vector<torch::Tensor> outgrown_;  // a recorded step of a GPU goes on reading them
};

/// PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D)) (Vaswani et al. 2017,
/// section 3.5). positions: any shape (…), int64. Returns (…, D) float32. Any D ≥ 1, odd ones included.
torch::Tensor sinusoidal_positions(const torch::Tensor& positions, int64_t d_model, double base = 10000.0);

}  // namespace zoo
