#pragma once
// The cost of modules. It is computed from options and shapes, without allocating anything, and is therefore
// known for models larger than the machine. A function count_…() stands in the file of the forward pass that
// it counts. models/families/model_cost.h sums up a model; `zoo inspect`, budgets, the trainer and the pages
// all use it.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace zoo {

/// The cost of one module in one forward pass.
struct CostEntry {
  std::string name;                   // its path, as in a checkpoint: "decoder.layers.0.self_attention"
  std::string kind;                   // "self-attention", "feed-forward", "norm", "embedding", …
  std::string shape;                  // input and output widths: "768 → 3072 → 768"
  double flops = 0;                   // of matrix products alone, a multiply-add = 2
  double activation_bytes = 0;        // float32 kept for the backward; fused attention, unless capped
  int64_t state_bytes_per_token = 0;  // float32 cache in generation, for each token of a sequence
  /// float32 that generation keeps for each sequence, whatever its length: running sums, or the most that a
  /// window keeps.
  int64_t state_bytes = 0;
  int64_t n_sides = 1;  // 2 if it works on both sequences of an encoder-decoder
};

/// Collects entries. It builds names and shapes as text only for Detail::layers.
class CostAccount {
 public:
  enum class Detail { totals, layers };
  explicit CostAccount(Detail detail) : detail_(detail) {}

  bool is_detailed() const { return detail_ == Detail::layers; }
  void add(CostEntry entry);
  double flops() const { return flops_; }
  const std::vector<CostEntry>& entries() const { return entries_; }  // empty for Detail::totals
  /// "PARENT.name", or an empty string for Detail::totals.
  std::string path(std::string_view parent, std::string_view name) const;
  std::string path(std::string_view parent, std::string_view name, int64_t index) const;
  /// fmt::format(), or an empty string for Detail::totals.
  template <class... Values>
  std::string text(fmt::format_string<Values...> format, Values&&... values) const {
    return is_detailed() ? fmt::format(format, std::forward<Values>(values)...) : std::string();
  }

 private:
  Detail detail_;
  double flops_ = 0;
  std::vector<CostEntry> entries_;
};

/// Bytes of a float32 number.
inline constexpr int64_t kFloatBytes = 4;
inline double bytes_of(double n_floats) { return n_floats * static_cast<double>(kFloatBytes); }
/// Of `width` numbers for each of `n_tokens`.
inline double bytes_of(double n_tokens, int64_t width) {
  return n_tokens * static_cast<double>(width * kFloatBytes);
}

}  // namespace zoo
