#pragma once
// The projections of attention, and of the mixers that can take its place (models/mixers/): the weights of
// one fit the others.

#include <cstdint>
#include <string>
#include <string_view>

#include <torch/types.h>

#include "layers/attention/attention_options.h"
#include "layers/attention/qkv_projections.h"
#include "layers/weights/description.h"
#include "layers/weights/norm.h"

namespace zoo {

/// q: D → H·Dh; k and v: D → K·Dh; out: H·Dh → D.
class HeadProjectionsImpl : public QkvProjectionsImpl {
 public:
  int64_t n_kv_heads() const { return n_kv_heads_; }

  AttentionOptions options;
  Norm q_norm{nullptr}, k_norm{nullptr};

 protected:
  /// Throws c10::Error if D is not a multiple of H and there is no head_dim, or if H is not a multiple of K.
  explicit HeadProjectionsImpl(const AttentionOptions& options);

  /// q: (B, H, T, Dh); k and v: (B, K, S, Dh).
  struct Heads {
    torch::Tensor q, k, v;
  };
  /// The heads of x (B, T, D). Queries and keys are made from x + positions, (B or 1, T, D) or undefined, and
  /// normalised, but not rotated.
  Heads project_heads(const torch::Tensor& x, const torch::Tensor& positions);
  /// x (B, T, N Dh) → (B, N, T, Dh), normalised by `norm`, q_norm or k_norm, if there is one, and clipped.
  torch::Tensor normalised_heads(const torch::Tensor& x, int64_t n_heads, Norm& norm) const;
  /// x within the limits of options.qkv_clip(), if there are any.
  torch::Tensor clipped(const torch::Tensor& x) const;
  /// The sizes of the projections of a module of this type, for its pretty_print().
  Description described(std::string_view type) const;
  /// (B, H, T, Dh) → (B, T, D), by way of context.heads.
  torch::Tensor merged(const torch::Tensor& mixed, const AttentionContext& context);

  int64_t n_kv_heads_;
};

/// The sizes of these projections.
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

}  // namespace zoo
