#include "layers/feed_forward.h"

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "layers/kernels/dropout.h"
#include "layers/kernels/gelu.h"
#include "layers/kernels/linear.h"
#include "layers/kernels/swiglu.h"

namespace zoo {

bool is_gated(Activation activation) {
  switch (activation) {
    case Activation::swiglu:
    case Activation::geglu:
    case Activation::geglu_tanh:
    case Activation::reglu:
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
  }
  C10_THROW_ERROR(ValueError, "unknown Activation");
}

FeedForwardImpl::FeedForwardImpl(const FeedForwardOptions& options_) : options(options_) {
  const auto make = [&](int64_t from, int64_t to) {
    return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(options.bias()));
  };
  const bool gated = is_gated(options.activation());
  if (gated && options.gate() == GateProjection::fused) {
    gate_up = register_module("gate_up", make(options.d_model(), 2 * options.d_ff()));
  } else {
    if (gated) gate = register_module("gate", make(options.d_model(), options.d_ff()));
    up = register_module("up", make(options.d_model(), options.d_ff()));
  }
  down = register_module("down", make(options.d_ff(), options.d_model()));
}

torch::Tensor FeedForwardImpl::inner(const torch::Tensor& x) {
  const auto activation = options.activation();
  const bool is_swiglu = activation == Activation::swiglu;
  if (gate_up) {
    const auto both = linear(gate_up, x);
    if (is_swiglu) return swiglu(both);
    const auto halves = both.chunk(2, -1);
    return activate(activation, halves[0]) * halves[1];
  }
  if (gate) {
    if (is_swiglu) return swiglu(linear(gate, x), linear(up, x));
    return activate(activation, linear(gate, x)) * linear(up, x);
  }
  return activate(activation, linear(up, x));
}

torch::Tensor FeedForwardImpl::forward(const torch::Tensor& x) {
  return linear(down, dropout(inner(x), is_training() ? options.dropout() : 0.0));
}

}  // namespace zoo
