#pragma once
// Multi-head latent attention (DeepSeek-AI 2024, DeepSeek V2). Keys and values of all heads come from one
// short vector for each token, and a key of R numbers with the position, which all heads share:
//
//     c = norm(W_down x)  (r)     k_rotary = rotary(W_rotary x)  (R)
//     k_h = [W_up,h c; k_rotary]  (Dh)     v_h = W_value,h c  (Dv)
//
// A cache keeps c and k_rotary alone: r + R numbers for each token and layer. In decoding W_up is taken to
// the queries and W_value to the outputs ("absorbed"): each head then has the keys [c; k_rotary] and the
// values c, as if there were one head of keys.

#include <memory>
#include <optional>

#include <torch/nn/pimpl.h>

#include "layers/attention/mixer.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/weights/cost.h"
#include "layers/weights/linear.h"
#include "layers/weights/norm.h"

namespace zoo {

class ConfigVisitor;

/// The keys of the mixer `latent`. d_model, heads, their width and the part of it with positions
/// (model.rotary.fraction) are those of the model.
struct LatentKeys {
  int64_t kv_rank = 64;                   // r
  std::optional<int64_t> q_rank = {};     // default: queries come from x
  std::optional<int64_t> value_dim = {};  // Dv; default Dh - R
  std::optional<double> norm_eps = {};    // of the two norms; default model.norm_eps
};
void describe(ConfigVisitor& v, LatentKeys& keys);

struct LatentAttentionOptions {
  LatentAttentionOptions(int64_t d_model, int64_t n_heads, int64_t head_dim)
      : d_model_(d_model), n_heads_(n_heads), head_dim_(head_dim), norm_(1) {}
  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(int64_t, n_heads);
  /// Dh of queries and keys, R of them with positions.
  TORCH_ARG(int64_t, head_dim);
  /// R, 1 … Dh - 1.
  TORCH_ARG(int64_t, rotary_width) = 1;
  /// Dv; default Dh - R.
  TORCH_ARG(std::optional<int64_t>, value_dim) = std::nullopt;
  /// r, the numbers that keys and values come from.
  TORCH_ARG(int64_t, kv_rank) = 64;
  /// The numbers that queries come from, with a norm; default: queries come from x.
  TORCH_ARG(std::optional<int64_t>, q_rank) = std::nullopt;
  /// Kind and epsilon of the two norms; their sizes are set here.
  TORCH_ARG(NormOptions, norm);
  /// Biases of the maps from x.
  TORCH_ARG(bool, bias) = false;
  TORCH_ARG(bool, out_bias) = false;
  /// Probability of dropping an attention weight.
  TORCH_ARG(double, dropout) = 0.0;
  /// Factor on the scores; default 1/√Dh.
  TORCH_ARG(std::optional<double>, scale) = std::nullopt;
  TORCH_ARG(std::optional<double>, softcap) = std::nullopt;

 public:
  int64_t plain_width() const { return head_dim_ - rotary_width_; }  // numbers of a key without positions
  int64_t value_width() const { return value_dim_.value_or(plain_width()); }
};

/// Parameters: `q` (H·Dh, D), or `q_down` (rank, D), `q_norm` and `q_up` (H·Dh, rank); `kv_down` (r + R, D),
/// `kv_norm`, `kv_up` (H·(Dh - R + Dv), r), whose rows are, for each head, those of keys and then of values;
/// `out` (D, H·Dv).
class LatentAttentionImpl : public Cloneable<LatentAttentionImpl, MixerImpl> {
 public:
  explicit LatentAttentionImpl(const LatentAttentionOptions& options);
  /// Needs context.rotary, of width R. Takes biases of scores and masks, no memory.
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context) override;
  std::unique_ptr<LayerState> new_state(int64_t n_rows) const override;
  void pretty_print(std::ostream& stream) const override;

  LatentAttentionOptions options;
  Linear q{nullptr}, q_down{nullptr}, q_up{nullptr};
  Norm q_norm{nullptr};
  Linear kv_down{nullptr}, kv_up{nullptr}, out{nullptr};
  Norm kv_norm{nullptr};

 private:
  /// What a cache keeps: c (B, 1, S, r) and the rotated keys (B, 1, S, R).
  struct Latent {
    torch::Tensor c, rotary;
  };
  torch::Tensor queries(const torch::Tensor& x, const RotaryTable& rotary);  // (B, H, T, Dh), R last
  Latent latent(const torch::Tensor& x, const RotaryTable& rotary);
  /// (B, H, T, Dv), with keys and values of each head.
  torch::Tensor attend_expanded(const torch::Tensor& queries, const Latent& all,
                                const AttentionContext& context);
  /// The same with W_up and W_value absorbed.
  torch::Tensor attend_absorbed(const torch::Tensor& queries, const Latent& all,
                                const AttentionContext& context);
  torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       const AttentionContext& context) const;
};

class LatentAttention : public MixerHolder<LatentAttentionImpl> {
 public:
  using MixerHolder::MixerHolder;
};

/// Counts the plain form, in which each head has keys and values.
void count_latent_attention(CostAccount& account, std::string name, const LatentAttentionOptions& options,
                            double n_rows, double n_queries, double n_keys);

}  // namespace zoo
