#include "layers/attention/mask.h"

#include <limits>

#include <torch/types.h>

namespace zoo {
namespace {

torch::Tensor as_four_dimensions(const torch::Tensor& mask) {
  TORCH_CHECK(mask.dim() >= 2 && mask.dim() <= 4, "an attention mask has 2, 3 or 4 dimensions, not ",
              mask.dim());
  if (mask.dim() == 2) return mask.unsqueeze(0).unsqueeze(0);  // (T, S)
  if (mask.dim() == 3) return mask.unsqueeze(1);               // (B, T, S)
  return mask;
}

torch::Tensor both(const torch::Tensor& a, const torch::Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a.logical_and(b) : a;
}

}  // namespace

Mask Mask::causal() {
  Mask mask;
  mask.causal_ = true;
  return mask;
}

Mask Mask::lengths(const torch::Tensor& lengths) {
  Mask mask;
  mask.ends_ = lengths;
  return mask;
}

Mask Mask::causal(const torch::Tensor& offsets) {
  TORCH_CHECK(offsets.defined(), "a mask by offsets needs offsets");
  Mask mask;
  mask.offsets_ = offsets;
  return mask;
}

Mask Mask::keep(const torch::Tensor& mask) {
  Mask result;
  result.keep_ = as_four_dimensions(mask).to(torch::kBool);
  return result;
}

Mask Mask::block(const torch::Tensor& mask) {
  Mask result;
  result.keep_ = as_four_dimensions(mask).to(torch::kBool).logical_not();
  return result;
}

Mask Mask::from(const torch::Tensor& offsets) const {
  if (!causal_) return *this;
  Mask mask = *this;
  mask.causal_ = false;
  mask.materialized_ = nullptr;
  return mask & causal(offsets);
}

Mask Mask::operator&(const Mask& other) const {
  Mask result;
  result.causal_ = causal_ || other.causal_;
  result.offsets_ = offsets_.defined() && other.offsets_.defined() ? torch::minimum(offsets_, other.offsets_)
                    : offsets_.defined()                           ? offsets_
                                                                   : other.offsets_;
  result.ends_ = ends_.defined() && other.ends_.defined() ? torch::minimum(ends_, other.ends_)
                 : ends_.defined()                        ? ends_
                                                          : other.ends_;
  result.keep_ = both(keep_, other.keep_);
  return result;
}

torch::Tensor Mask::visible_pairs(int64_t n_queries, int64_t n_keys, torch::Device device) const {
  torch::Tensor visible = keep_.defined() ? keep_.to(device) : torch::Tensor();
  const auto keys = torch::arange(n_keys, torch::dtype(torch::kInt64).device(device));
  if (offsets_.defined()) {
    const auto columns = torch::arange(n_queries, keys.options()).view({1, 1, n_queries, 1});
    visible = both(visible, keys.le(offsets_.to(device).view({-1, 1, 1, 1}) + columns));
  }
  if (ends_.defined()) visible = both(visible, keys.lt(ends_.to(device).view({-1, 1, 1, 1})));
  if (causal_ && n_queries > 1) {
    const auto queries =
        torch::arange(n_keys - n_queries, n_keys, torch::dtype(torch::kInt64).device(device));
    visible = both(visible, keys.le(queries.unsqueeze(1)).view({1, 1, n_queries, n_keys}));
  }
  return visible;
}

torch::Tensor Mask::materialize(int64_t n_queries, int64_t n_keys, torch::Device device) const {
  if (!materialized_) return visible_pairs(n_queries, n_keys, device);
  auto& made = *materialized_;
  if (made.n_queries != n_queries || made.n_keys != n_keys || made.device != device)
    made = {n_queries, n_keys, device, visible_pairs(n_queries, n_keys, device), torch::Tensor()};
  return made.pairs;
}

torch::Tensor Mask::additive(int64_t n_queries, int64_t n_keys, torch::Device device,
                             torch::ScalarType type) const {
  const auto visible = materialize(n_queries, n_keys, device);
  if (!visible.defined()) return visible;
  if (materialized_ && materialized_->numbers.defined() && materialized_->numbers.scalar_type() == type)
    return materialized_->numbers;
  const auto numbers = torch::zeros(visible.sizes(), visible.options().dtype(type))
                           .masked_fill_(visible.logical_not(), -std::numeric_limits<double>::infinity());
  if (materialized_) materialized_->numbers = numbers;
  return numbers;
}

Mask Mask::shared() const {
  Mask mask = *this;
  mask.materialized_ = std::make_shared<Materialized>();
  return mask;
}

}  // namespace zoo
