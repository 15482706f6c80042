#pragma once
// The cost of a pass through a model. Costs are computed from options and shapes, without allocating
// anything. They are therefore available for models larger than the machine. `zoo inspect`, budgets, the
// trainer and the pages all use these functions (models/families/model_cost.h sums them up).

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "layers/attention/attention.h"
#include "layers/feed_forward.h"

namespace zoo {

/// The shapes of one batch, including padding, because the hardware computes it too.
struct PassShape {
  int64_t batch_size = 1;      // B
  int64_t length = 0;          // T of the encoder's input, or of the input of a model with one stack
  int64_t decoder_length = 0;  // T of the decoder's input in an encoder-decoder
  int64_t n_targets = 0;       // N: number of predictions
  std::map<std::string, std::vector<int64_t>> fields = {};  // sizes of the batch's fields
};

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

 private:
  Detail detail_;
  double flops_ = 0;
  std::vector<CostEntry> entries_;
};

/// Bytes of a float32 number.
inline constexpr int64_t kFloatBytes = 4;
inline double bytes_of(double n_floats) { return n_floats * static_cast<double>(kFloatBytes); }

// One function per kind of layer. `n_tokens`: number of vectors that the layer processes, over all rows.

/// A table of `rows` vectors. `n_tokens` looked-up vectors are kept for the backward pass. `n_sides` as in
/// CostEntry.
void count_table(CostAccount& account, std::string name, int64_t rows, int64_t width, double n_tokens = 0,
                 int64_t n_sides = 1);

void count_linear(CostAccount& account, std::string name, std::string kind, const LinearOptions& options,
                  double n_tokens);

/// `count` norms of equal options.
void count_norms(CostAccount& account, std::string name, const NormOptions& options, int64_t count,
                 double n_tokens);

void count_feed_forward(CostAccount& account, std::string name, const FeedForwardOptions& options,
                        double n_tokens);

/// The sizes of the projections of an attention, or of a mixer in its place
/// (layers/attention/head_projections.h).
struct HeadSizes {
  explicit HeadSizes(const AttentionOptions& options)
      : n_heads(options.n_heads()),
        n_kv_heads(options.n_kv_heads().value_or(options.n_heads())),
        head_dim(options.head_dim().value_or(options.d_model() / options.n_heads())),
        d_model(options.d_model()) {}

  int64_t n_heads, n_kv_heads, head_dim, d_model;

  int64_t q_width() const { return n_heads * head_dim; }
  int64_t kv_width() const { return n_kv_heads * head_dim; }
  /// Numbers in the four matrices.
  int64_t matrices() const { return 2 * d_model * (q_width() + kv_width()); }
  /// "8 heads of 64, 2 for keys and values"
  std::string text() const;
};

/// The shape of one attention call.
struct AttentionShape {
  int64_t batch_size = 1;  // B
  int64_t n_queries = 0;   // T
  int64_t n_keys = 0;      // S
  /// Products with an element for each pair: QKᵀ and that with V. Shaw's vectors need each once more.
  int64_t n_products = 2;
  int64_t n_key_maps = 1;  // how often keys and values are projected: Longformer has maps for global queries
};
/// Counts the scores of all T·S pairs, including masked ones, as PyTorch's FlopCounterMode does. Only with a
/// pattern, it counts the visible pairs alone.
void count_attention(CostAccount& account, std::string name, std::string kind,
                     const AttentionOptions& options, const AttentionShape& shape);

}  // namespace zoo
