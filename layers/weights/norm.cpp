#include "layers/weights/norm.h"

#include <cmath>

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/dropout.h"
#include "kernels/gpu_norm.h"
#include "kernels/rms_norm.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {

namespace {

/// Whether x is to be normalised in its own 16 bits: on a GPU, whose kernels compute in float within, and
/// take x and weights of one type. On the CPU they take weights in float.
bool stays_rounded(const torch::Tensor& x, const torch::Tensor& gain) {
  return !x.is_cpu() && (x.scalar_type() == torch::kBFloat16 || x.scalar_type() == torch::kHalf) &&
         gain.scalar_type() == torch::kFloat;
}

torch::Tensor as(const torch::Tensor& weight, torch::ScalarType type) {
  return weight.defined() ? weight.to(type) : weight;
}

torch::Tensor centred(const torch::Tensor& x) { return x - x.mean(-1, /*keepdim=*/true); }

class LayerNorm final : public NormFormula {
 public:
  std::string_view name() const override { return name_of(NormKind::layer_norm); }
  bool is_centred() const override { return true; }
  torch::Tensor operator()(const torch::Tensor& x, const NormWeights& weights, double eps) const override {
    if (!stays_rounded(x, weights.gain))
      return torch::layer_norm(x, weights.gain.sizes(), weights.gain, weights.bias, eps);
    if (auto y = gpu_norm(x, weights.gain, weights.bias, eps, NormCentre::mean)) return *y;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const auto type = x.scalar_type();
    return torch::layer_norm(x, weights.gain.sizes(), as(weights.gain, type), as(weights.bias, type), eps);
  }
  torch::Tensor for_products(const torch::Tensor& x, const NormWeights& weights, double eps) const override {
    auto y = gpu_norm(x, weights.gain, weights.bias, eps, NormCentre::mean);
    return y ? *y : (*this)(x, weights, eps);
  }
  NormedSum of_sum(const PendingSum& pending, const NormWeights& weights, double eps,
                   NormReader reader) const override {
    const auto both = gpu_normed_sum(pending, weights.gain, weights.bias, eps, NormCentre::mean, reader);
    return both ? *both : NormFormula::of_sum(pending, weights, eps, reader);
  }
  torch::Tensor divisor(const torch::Tensor& x, double eps) const override {
    return (x.var(-1, /*unbiased=*/false, /*keepdim=*/true) + eps).sqrt();
  }
};

class AnnotatedLayerNorm final : public NormFormula {
 public:
  std::string_view name() const override { return name_of(NormKind::layer_norm_annotated); }
  bool is_centred() const override { return true; }
  torch::Tensor operator()(const torch::Tensor& x, const NormWeights& weights, double eps) const override {
    const auto y = weights.gain * centred(x) / divisor(x, eps);
    return weights.bias.defined() ? y + weights.bias : y;
  }
  torch::Tensor divisor(const torch::Tensor& x, double eps) const override {
    return x.std(-1, /*unbiased=*/true, /*keepdim=*/true) + eps;
  }
};

class RmsNorm final : public NormFormula {
 public:
  std::string_view name() const override { return name_of(NormKind::rms_norm); }
  bool is_centred() const override { return false; }
  torch::Tensor operator()(const torch::Tensor& x, const NormWeights& weights, double eps) const override {
    if (!stays_rounded(x, weights.gain)) return rms_norm(x, weights.gain, eps);
    if (auto y = gpu_norm(x, weights.gain, {}, eps, NormCentre::zero)) return *y;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    return rms_norm(x, as(weights.gain, x.scalar_type()), eps);
  }
  torch::Tensor for_products(const torch::Tensor& x, const NormWeights& weights, double eps) const override {
    auto y = gpu_norm(x, weights.gain, {}, eps, NormCentre::zero);
    return y ? *y : (*this)(x, weights, eps);
  }
  NormedSum of_sum(const PendingSum& pending, const NormWeights& weights, double eps,
                   NormReader reader) const override {
    const auto both = gpu_normed_sum(pending, weights.gain, {}, eps, NormCentre::zero, reader);
    return both ? *both : NormFormula::of_sum(pending, weights, eps, reader);
  }
  torch::Tensor divisor(const torch::Tensor& x, double eps) const override {
    return (x.square().mean(-1, /*keepdim=*/true) + eps).sqrt();
  }
};

class RmsNormOutside final : public NormFormula {
 public:
  std::string_view name() const override { return name_of(NormKind::rms_norm_outside); }
  bool is_centred() const override { return false; }
  torch::Tensor operator()(const torch::Tensor& x, const NormWeights& weights, double eps) const override {
    return weights.gain * x / divisor(x, eps);
  }
  torch::Tensor divisor(const torch::Tensor& x, double eps) const override {
    // The gradient of norm() is finite where x is all zeros; the gradient of a square root is not.
    return x.norm(2, -1, /*keepdim=*/true) / std::sqrt(x.size(-1)) + eps;
  }
};

class PlainLayerNorm final : public NormFormula {
 public:
  std::string_view name() const override { return name_of(NormKind::layer_norm_plain); }
  bool is_centred() const override { return true; }
  bool has_gain() const override { return false; }
  torch::Tensor operator()(const torch::Tensor& x, const NormWeights&, double eps) const override {
    return torch::layer_norm(x, {x.size(-1)}, {}, {}, eps);
  }
  torch::Tensor divisor(const torch::Tensor& x, double eps) const override {
    return (x.var(-1, /*unbiased=*/false, /*keepdim=*/true) + eps).sqrt();
  }
};

}  // namespace

NormedSum NormFormula::of_sum(const PendingSum& pending, const NormWeights& weights, double eps,
                              NormReader reader) const {
  const auto sum = add_dropout(pending.x, pending.y, pending.p);
  return {.sum = sum,
          .normed =
              reader == NormReader::products ? for_products(sum, weights, eps) : (*this)(sum, weights, eps)};
}

std::shared_ptr<const NormFormula> norm_formula(NormKind kind) {
  static const auto formulas = std::to_array<std::shared_ptr<const NormFormula>>(
      {std::make_shared<LayerNorm>(), std::make_shared<AnnotatedLayerNorm>(), std::make_shared<RmsNorm>(),
       std::make_shared<RmsNormOutside>(), std::make_shared<PlainLayerNorm>()});
  return formulas.at(static_cast<size_t>(kind));
}

NormImpl::NormImpl(const NormOptions& options_) : options(options_) {
  const auto& formula = *options.formula();
  TORCH_CHECK(formula.name() != name_of(NormKind::layer_norm_annotated) || options.size() > 1,
              "layer_norm_annotated needs a size of at least 2: one number has no standard deviation");
  if (formula.has_gain())
    weight = register_parameter("weight", torch::empty({options.size()}, parameter_options()));
  if (formula.is_centred() && formula.has_gain() && options.bias())
    bias = register_parameter("bias", torch::empty({options.size()}, parameter_options()));
  for (const auto& [name, initial] : formula.own_weights(options.size()))
    own_.push_back(register_parameter(name, torch::empty(initial.sizes(), parameter_options())));
  reset_parameters();
}

void NormImpl::reset_parameters() {
  const torch::NoGradGuard no_grad;
  if (weight.defined()) weight.fill_(options.unit_offset() ? 0.0 : 1.0);
  if (bias.defined()) bias.zero_();
  const auto initial = options.formula()->own_weights(options.size());
  for (size_t i = 0; i < own_.size(); ++i) own_[i].copy_(initial[i].initial);
}

NormWeights NormImpl::weights() const {
  const auto gain = weight.defined() && options.unit_offset() ? weight + 1.0 : weight;
  return {.gain = gain, .bias = bias, .own = own_};
}

torch::Tensor NormImpl::forward(const torch::Tensor& x) {
  return (*options.formula())(x, weights(), options.eps());
}

torch::Tensor NormImpl::for_products(const torch::Tensor& x) {
  return options.formula()->for_products(x, weights(), options.eps());
}

NormedSum NormImpl::of_sum(const PendingSum& pending, NormReader reader) {
  return options.formula()->of_sum(pending, weights(), options.eps(), reader);
}

void NormImpl::pretty_print(std::ostream& stream) const {
  stream << Description("Norm")
                .add("size", options.size())
                .add("kind", options.formula()->name())
                .add("eps", options.eps())
                .add("bias", bias.defined());
}

void count_norms(CostAccount& account, std::string name, const NormOptions& options, int64_t count,
                 double n_tokens) {
  account.add({.name = std::move(name),
               .kind = "norm",
               .shape = count == 1 ? account.text("{}", options.size())
                                   : account.text("{} × {}", count, options.size()),
               .activation_bytes = bytes_of(n_tokens, count * options.size())});
}

}  // namespace zoo
