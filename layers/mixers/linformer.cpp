#include "layers/mixers/linformer.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/modules/description.h"

namespace zoo {
namespace {

/// The first T columns of `matrix` (k, n) times x (B, K, T, Dh).
torch::Tensor over_positions(const torch::Tensor& matrix, const torch::Tensor& x) {
  const int64_t length = x.size(2), most = matrix.size(1);
  if (length > most) {
    throw DataError(fmt::format("a sequence of {} tokens is longer than model.max_positions, {}: shorten it",
                                length, most));
  }
  return torch::matmul(matrix.narrow(1, 0, length), x);
}

}  // namespace

PositionProjectionImpl::PositionProjectionImpl(const PositionProjectionOptions& options_)
    : options(options_) {
  TORCH_CHECK(options.n_slots() > 0 && options.n_slots() <= options.n_positions(), options.n_slots(),
              " slots for ", options.n_positions(), " positions");
  const auto drawn = [this] {
    return torch::randn({options.n_slots(), options.n_positions()}) /
           std::sqrt(static_cast<double>(options.n_slots()));
  };
  keys = register_parameter("keys", drawn());
  if (options.separate_values()) values = register_parameter("values", drawn());
}

torch::Tensor PositionProjectionImpl::project_keys(const torch::Tensor& x) const {
  return over_positions(keys, x);
}

torch::Tensor PositionProjectionImpl::project_values(const torch::Tensor& x) const {
  return over_positions(values.defined() ? values : keys, x);
}

std::shared_ptr<torch::nn::Module> PositionProjectionImpl::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<PositionProjectionImpl>(options);
}

void PositionProjectionImpl::pretty_print(std::ostream& stream) const {
  stream << Description("PositionProjection")
                .add("n_slots", options.n_slots())
                .add("n_positions", options.n_positions())
                .add("separate_values", options.separate_values());
}

LinformerImpl::LinformerImpl(const AttentionOptions& options_, const PositionProjectionOptions& projection)
    : LinformerImpl(options_, std::make_shared<PositionProjectionImpl>(projection)) {
  register_module("projection", projection_);
  is_own_ = true;
}

LinformerImpl::LinformerImpl(const AttentionOptions& options_, std::shared_ptr<PositionProjectionImpl> shared)
    : ProjectedMixerImpl(options_), projection_(std::move(shared)), is_own_(false) {}

torch::Tensor LinformerImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  TORCH_CHECK(!context.mask.is_causal() && !context.state, "a Linformer cannot be causal");
  TORCH_CHECK(!context.maps, "a Linformer has weights of slots, and none of tokens");
  auto heads = heads_of(x, context);
  if (const auto real = real_tokens(context, x.size(1), x.device()); real.defined()) {
    const auto padding = real.logical_not().unsqueeze(1).unsqueeze(-1);  // (B, 1, T, 1)
    heads.k = heads.k.masked_fill(padding, 0);
    heads.v = heads.v.masked_fill(padding, 0);
  }
  return merged(
      fused_attention(heads.q, projection_->project_keys(heads.k), projection_->project_values(heads.v),
                      {.scale = options.scale(), .dropout = is_training() ? options.dropout() : 0.0}));
}

std::unique_ptr<LayerState> LinformerImpl::new_state(int64_t) const {
  TORCH_CHECK(false, "a Linformer does not generate");
}

std::shared_ptr<torch::nn::Module> LinformerImpl::fresh(const std::optional<torch::Device>& device) const {
  if (is_own_) return std::make_shared<LinformerImpl>(options, projection_->options);
  auto clone = std::make_shared<LinformerImpl>(options, copy_of(projection_, device));
  clone->is_private_ = true;
  return clone;
}

void LinformerImpl::take_settings(const torch::nn::Module& from) {
  const auto& other = dynamic_cast<const LinformerImpl&>(from);
  const bool is_made = is_own_ || is_private_;
  if (is_made || (projection_ != other.projection_ && !other.is_private_)) return;
  projection_ = copy_of(other.projection_);
  is_private_ = true;
}

void LinformerImpl::pretty_print(std::ostream& stream) const {
  stream << Description("Linformer")
                .add("d_model", options.d_model())
                .add("n_heads", options.n_heads())
                .add("n_kv_heads", n_kv_heads())
                .add("head_dim", head_dim())
                .add("projection", options.projection())
                .add("scale", options.scale())
                .add("n_slots", projection_->options.n_slots())
                .add("n_positions", projection_->options.n_positions())
                .add("dropout", options.dropout());
}

}  // namespace zoo
