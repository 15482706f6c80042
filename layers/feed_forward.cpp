#include "layers/feed_forward.h"

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "kernels/gpu_gate.h"
#include "kernels/swiglu.h"
#include "layers/weights/description.h"

namespace zoo {

bool is_gated(Activation activation) {
  switch (activation) {
    case Activation::swiglu:
    case Activation::geglu:
    case Activation::geglu_tanh:
    case Activation::reglu:
    case Activation::swiglu_clamped:
      return true;
    default:
      return false;
  }
}

torch::Tensor activate(Activation activation, const torch::Tensor& x) {
  switch (activation) {
    case Activation::relu:
    case Activation::reglu:
      return torch::relu(x);
    case Activation::gelu:
    case Activation::geglu:
      return gelu(x, Phi::exact);
    case Activation::gelu_tanh:
    case Activation::geglu_tanh:
      return gelu(x, Phi::by_tanh);
    case Activation::silu:
    case Activation::swiglu:
      return torch::silu(x);
    case Activation::quick_gelu:
      return x * torch::sigmoid(1.702 * x);
    case Activation::swiglu_clamped:
      return (*clamped_swiglu({}))(x);
  }
  C10_THROW_ERROR(ValueError, "unknown Activation");
}

namespace {

class LibraryActivation : public ActivationFunction {
 public:
  explicit LibraryActivation(Activation kind) : kind_(kind) {}
  std::string_view name() const override { return name_of(kind_); }
  bool is_gated() const override { return zoo::is_gated(kind_); }
  torch::Tensor operator()(const torch::Tensor& x) const override { return activate(kind_, x); }

 private:
  Activation kind_;
};

/// Its backward pass also needs the sigmoid. It is one pass on a GPU.
class QuickGelu final : public LibraryActivation {
 public:
  QuickGelu() : LibraryActivation(Activation::quick_gelu) {}
  torch::Tensor operator()(const torch::Tensor& x) const override {
    const auto y = gpu_quick_gelu(x);
    return y ? *y : LibraryActivation::operator()(x);
  }
  int64_t n_kept() const override { return 3; }
};

/// SwiGLU computes its gradient in place, and does not need silu(gate) for it.
class SwiGlu final : public LibraryActivation {
 public:
  SwiGlu() : LibraryActivation(Activation::swiglu) {}
  torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& up) const override {
    return swiglu(gate, up);
  }
  torch::Tensor gated_halves(const torch::Tensor& both) const override { return swiglu(both); }
  int64_t n_kept() const override { return 3; }
};

/// GEGLU and ReGLU, which are one pass on a GPU.
class OnePassGate final : public LibraryActivation {
 public:
  OnePassGate(Activation kind, GateFunction function) : LibraryActivation(kind), function_(function) {}
  torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& up) const override {
    const auto y = gpu_gated(function_, gate, up);
    return y ? *y : LibraryActivation::gated(gate, up);
  }
  torch::Tensor gated_halves(const torch::Tensor& both) const override {
    const auto y = gpu_gated(function_, both);
    return y ? *y : LibraryActivation::gated_halves(both);
  }

 private:
  GateFunction function_;
};

class ClampedSwiGlu final : public LibraryActivation {
 public:
  explicit ClampedSwiGlu(const ClampedSwiGluOptions& options)
      : LibraryActivation(Activation::swiglu_clamped), options_(options) {}
  torch::Tensor operator()(const torch::Tensor& x) const override {
    const auto g = x.clamp_max(options_.limit);
    return g * torch::sigmoid(options_.alpha * g);
  }
  torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& up) const override {
    return (*this)(gate) * (up.clamp(-options_.limit, options_.limit) + 1);
  }
  int64_t n_kept() const override { return 6; }

 private:
  ClampedSwiGluOptions options_;
};

}  // namespace

std::shared_ptr<const ActivationFunction> clamped_swiglu(const ClampedSwiGluOptions& options) {
  return std::make_shared<ClampedSwiGlu>(options);
}

std::shared_ptr<const ActivationFunction> activation_function(Activation kind) {
  if (kind == Activation::quick_gelu) return std::make_shared<QuickGelu>();
  if (kind == Activation::swiglu) return std::make_shared<SwiGlu>();
  if (kind == Activation::swiglu_clamped) return clamped_swiglu({});
  if (kind == Activation::geglu) return std::make_shared<OnePassGate>(kind, GateFunction::gelu_exact);
  if (kind == Activation::geglu_tanh) return std::make_shared<OnePassGate>(kind, GateFunction::gelu_by_tanh);
  if (kind == Activation::reglu) return std::make_shared<OnePassGate>(kind, GateFunction::relu);
  return std::make_shared<LibraryActivation>(kind);
}

FeedForwardImpl::FeedForwardImpl(const FeedForwardOptions& options_) : options(options_) {
  const int64_t d_model = options.d_model(), d_ff = options.d_ff();
  const auto map = [&](const LinearOptions& map_options) {
    return Linear(LinearOptions(map_options).bias(options.bias()));
  };
  const bool gated = options.activation()->is_gated();
  if (gated && options.gate() == GateProjection::fused) {
    gate_up = register_module(
        "gate_up", map({d_model, {{.n_outputs = d_ff, .name = "gate"}, {.n_outputs = d_ff, .name = "up"}}}));
  } else {
    if (gated) gate = register_module("gate", map({d_model, d_ff}));
    up = register_module("up", map({d_model, d_ff}));
  }
  down = register_module("down", map(linear_options(d_ff, d_model, WeightUse::residual_output)));
}

torch::Tensor FeedForwardImpl::inner(const torch::Tensor& x) {
  const auto& activation = *options.activation();
  if (gate_up) return activation.gated_halves(gate_up(x));
  return gate ? activation.gated(gate(x), up(x)) : activation(up(x));
}

torch::Tensor FeedForwardImpl::forward(const torch::Tensor& x) {
  return down(dropout(inner(x), is_training() ? options.dropout() : 0.0));
}

void FeedForwardImpl::pretty_print(std::ostream& stream) const {
  stream << Description("FeedForward")
                .add("d_model", options.d_model())
                .add("d_ff", options.d_ff())
                .add("activation", options.activation()->name())
                .add("dropout", options.dropout());
}

void count_feed_forward(CostAccount& account, std::string name, const FeedForwardOptions& options,
                        double n_tokens) {
  const int64_t d_model = options.d_model(), d_ff = options.d_ff();
  const auto& activation = *options.activation();
  const int64_t n_in = activation.is_gated() ? 2 : 1;
  account.add({.name = std::move(name),
               .kind = "feed-forward",
               .shape = account.text("{} → {} → {}, {}", d_model, d_ff, d_model, activation.name()),
               .flops = 2 * n_tokens * static_cast<double>((n_in + 1) * d_model * d_ff),
               .activation_bytes = bytes_of(n_tokens, activation.n_kept() * d_ff + d_model)});
}

}  // namespace zoo
