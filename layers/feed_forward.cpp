#include "layers/feed_forward.h"

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "layers/kernels/dropout.h"
#include "layers/kernels/gelu.h"
#include "layers/kernels/swiglu.h"
#include "layers/weights/description.h"

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
  const int64_t d_model = options.d_model(), d_ff = options.d_ff();
  const auto map = [&](const LinearOptions& map_options) {
    return Linear(LinearOptions(map_options).bias(options.bias()));
  };
  const bool gated = is_gated(options.activation());
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
  const auto activation = options.activation();
  const bool is_swiglu = activation == Activation::swiglu;
  if (gate_up) {
    // SwiGLU takes both halves as one tensor and computes its gradient in place.
    if (is_swiglu) return swiglu(gate_up(x));
    const auto parts = gate_up->forward_parts(x);
    return activate(activation, parts[0]) * parts[1];
  }
  if (gate) {
    if (is_swiglu) return swiglu(gate(x), up(x));
    return activate(activation, gate(x)) * up(x);
  }
  return activate(activation, up(x));
}

torch::Tensor FeedForwardImpl::forward(const torch::Tensor& x) {
  return down(dropout(inner(x), is_training() ? options.dropout() : 0.0));
}

void FeedForwardImpl::pretty_print(std::ostream& stream) const {
  stream << Description("FeedForward")
                .add("d_model", options.d_model())
                .add("d_ff", options.d_ff())
                .add("activation", options.activation())
                .add("dropout", options.dropout());
}

void count_feed_forward(CostAccount& account, std::string name, const FeedForwardOptions& options,
                        double n_tokens) {
  const int64_t d_model = options.d_model(), d_ff = options.d_ff();
  const int64_t n_in = is_gated(options.activation()) ? 2 : 1;
  // Inputs and outputs of the activation are kept, but SwiGLU's own backward pass does not need silu(gate).
  const int64_t n_kept = options.activation() == Activation::swiglu ? 3 : 2 * n_in;
  account.add(
      {.name = std::move(name),
       .kind = "feed-forward",
       .shape = account.text("{} → {} → {}, {}", d_model, d_ff, d_model, name_of(options.activation())),
       .flops = 2 * n_tokens * static_cast<double>((n_in + 1) * d_model * d_ff),
       .activation_bytes = bytes_of(n_tokens, n_kept * d_ff + d_model)});
}

}  // namespace zoo
