#pragma once
// Disentangled attention (He et al. 2021, DeBERTa; in the form of versions 2 and 3): a score compares
// contents, and besides the query with a vector of the distance, and a vector of the distance with the key:
//
//     score(i, j) = (q_i · k_j  +  q_i · W_k r_δ  +  W_q r_δ · k_j) / √(Dh · parts),   δ = bucket(i - j)
//
// The vectors r (2 P, D) are those of a whole stack. For encoders.

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <torch/nn/modules/embedding.h>

#include "layers/projected_mixer.h"
#include "layers/weights/norm.h"
#include "models/mixers/mixers.h"

namespace zoo {

/// The keys of the mixer `disentangled`.
struct DisentangledKeys {
  /// P: distances of less than P / 2 have vectors of their own, and longer ones share them in proportion to
  /// their logarithms, up to max_distance. 0: all have their own, up to max_distance, and P is that.
  int64_t buckets = 256;
  int64_t max_distance = 512;
  bool content_to_position = true, position_to_content = true;
  bool share_keys = true;  // W_q and W_k are those of contents
  bool norm = true;        // a norm on r
};
void describe(ConfigVisitor& v, DisentangledKeys& keys);

struct RelativeVectorsOptions {
  RelativeVectorsOptions(int64_t span, int64_t d_model) : span_(span), d_model_(d_model) {}
  /// P, half of the number of vectors.
  TORCH_ARG(int64_t, span);
  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(std::optional<NormOptions>, norm) = std::nullopt;
};

/// r. Parameters: `table.weight` (2 P, D), `norm`.
class RelativeVectorsImpl : public Cloneable<RelativeVectorsImpl> {
 public:
  explicit RelativeVectorsImpl(const RelativeVectorsOptions& options);
  /// (2 P, D)
  torch::Tensor forward();
  void pretty_print(std::ostream& stream) const override;

  RelativeVectorsOptions options;
  torch::nn::Embedding table{nullptr};
  Norm norm{nullptr};
};
TORCH_MODULE(RelativeVectors);

struct DisentangledOptions {
  explicit DisentangledOptions(RelativeVectorsOptions vectors) : vectors_(std::move(vectors)) {}
  TORCH_ARG(RelativeVectorsOptions, vectors);
  TORCH_ARG(DisentangledKeys, keys);
  /// Probability of dropping a number of r.
  TORCH_ARG(double, dropout) = 0.0;
};

/// The name of r in a stack. Layers with as many vectors of the same kind have the same ones.
std::string name_of_vectors(const DisentangledKeys& keys);

/// The row of r for each of the distances -(n - 1) … n - 1: (2 n - 1) int64, from 0 to 2 P - 1.
torch::Tensor rows_of_distances(const DisentangledKeys& keys, int64_t n);

/// Parameters beside those of attention: `position_query` and `position_key` (H·Dh, D), unless keys are
/// shared.
class DisentangledAttentionImpl : public Cloneable<DisentangledAttentionImpl, ProjectedMixerImpl> {
 public:
  /// With vectors of its own, the submodule "relative_vectors"; or with `shared` ones, which another module
  /// owns.
  DisentangledAttentionImpl(const AttentionOptions& options, const DisentangledOptions& more,
                            std::shared_ptr<RelativeVectorsImpl> shared = nullptr);
  /// x: (B, T, D) → (B, T, D). Throws c10::Error for a causal mask or a state.
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {}) override;
  auto arguments() const { return std::tie(options, more_, shared_); }
  void pretty_print(std::ostream& stream) const override;

  Linear position_query{nullptr}, position_key{nullptr};

 protected:
  /// As those of a Linformer: a layer that is cloned by itself gets a copy of the vectors.
  void take_settings(const torch::nn::Module& from) override;

 private:
  torch::Tensor map_of_vectors(const torch::Tensor& vectors, Linear& own, size_t part);  // (1, H, 2 P, Dh)
  torch::Tensor bias_of_distances(const Heads& heads, double scale);                     // (B, H, T, T)

  DisentangledOptions more_;
  std::shared_ptr<RelativeVectorsImpl> shared_;   // not registered here; null: there are own ones
  std::shared_ptr<RelativeVectorsImpl> vectors_;  // one or the other
  bool is_private_ = false;                       // no other module has shared_
};

using DisentangledAttention = MixerHolder<DisentangledAttentionImpl>;

}  // namespace zoo
