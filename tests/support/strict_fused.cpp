#include "tests/support/strict_fused.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

namespace zoo::testing {
namespace {

using torch::jit::Stack;

c10::OperatorHandle operation(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

/// Keys or values (B, K, S, Dh) for H heads of queries.
torch::Tensor for_heads(const torch::Tensor& tensor, int64_t n_heads) {
  return tensor.repeat_interleave(n_heads / tensor.size(1), 1);
}
/// The sum over the H/K heads that share one.
torch::Tensor of_shared_heads(const torch::Tensor& gradient, const torch::Tensor& tensor) {
  return gradient.unflatten(1, {tensor.size(1), -1}).sum(2);
}

void attend(Stack& stack) {
  const auto a = torch::jit::pop(stack, 8);
  const auto q = a[0].toTensor(), k = a[1].toTensor(), v = a[2].toTensor();
  Stack call = {q, for_heads(k, q.size(1)), for_heads(v, q.size(1)), a[4], a[5], a[3], a[7]};
  operation("aten::_scaled_dot_product_flash_attention_for_cpu").callBoxed(&call);
  const auto none = torch::zeros({}, torch::kLong);
  stack.insert(stack.end(), {call[0], call[1], torch::Tensor(), torch::Tensor(), q.size(2), k.size(2), none,
                             none.clone(), torch::Tensor()});
}

void attend_backward(Stack& stack) {
  const auto a = torch::jit::pop(stack, 17);
  const auto q = a[1].toTensor(), k = a[2].toTensor(), v = a[3].toTensor();
  const auto bias = a[4].isTensor() && a[4].toTensor().defined() ? a[4] : c10::IValue();
  Stack call = {a[0], q,    for_heads(k, q.size(1)), for_heads(v, q.size(1)), a[6], a[7], a[12], a[13],
                bias, a[16]};
  operation("aten::_scaled_dot_product_flash_attention_for_cpu_backward").callBoxed(&call);
  stack.insert(stack.end(), {call[0], of_shared_heads(call[1].toTensor(), k),
                             of_shared_heads(call[2].toTensor(), v), torch::Tensor()});
}

// ---- flash attention

torch::Tensor tensor_in(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor() : torch::Tensor();
}

/// The arguments that forward and backward pass share. Tensors are (B, T, H, Dh), or (tokens, H, Dh) with
/// borders.
struct Flash {
  torch::Tensor q, k, v, query_borders, key_borders;
  bool is_causal;
  double scale, dropout;
  std::optional<int64_t> left, right;
};

/// One sequence of a call, in float: (H, T, Dh).
struct Sequence {
  torch::Tensor q, k, v;
};

/// The part of `x` that is sequence i.
torch::Tensor part(const torch::Tensor& x, const torch::Tensor& borders, int64_t i) {
  if (!borders.defined()) return x[i];
  const int64_t begin = borders[i].item<int64_t>();
  return x.narrow(0, begin, borders[i + 1].item<int64_t>() - begin);
}

Sequence sequence(const Flash& call, int64_t i) {
  const auto heads = [&](const torch::Tensor& x, const torch::Tensor& borders) {
    const auto values = part(x, borders, i).transpose(0, 1).to(torch::kFloat);  // (K, T, Dh)
    return values.repeat_interleave(call.q.size(-2) / values.size(0), 0);
  };
  return {heads(call.q, call.query_borders), heads(call.k, call.key_borders),
          heads(call.v, call.key_borders)};
}

int64_t n_sequences(const Flash& call) {
  return call.query_borders.defined() ? call.query_borders.size(0) - 1 : call.q.size(0);
}

/// The weights of a sequence (H, T, S); zeros where nothing is visible. The last query stands at the last
/// key.
torch::Tensor weights_of(const Flash& call, const Sequence& s) {
  const int64_t n_queries = s.q.size(1), n_keys = s.k.size(1);
  const auto distance =
      (torch::arange(n_queries) + (n_keys - n_queries)).unsqueeze(1) - torch::arange(n_keys);
  auto hidden = torch::zeros_like(distance, torch::kBool);
  const auto right = call.is_causal ? std::optional<int64_t>(0) : call.right;
  if (call.left) hidden = hidden.logical_or(distance > *call.left);
  if (right) hidden = hidden.logical_or(distance < -*right);
  const auto scores = s.q.matmul(s.k.mT()) * call.scale;
  return scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()).softmax(-1).nan_to_num(0);
}

torch::Tensor kept(const Flash& call, const torch::Tensor& draws, const torch::Tensor& weights, int64_t i) {
  if (call.dropout == 0) return torch::ones_like(weights);
  const auto mask = draws[i % draws.size(0)].slice(0, 0, weights.size(0)).slice(1, 0, weights.size(1));
  return mask.slice(2, 0, weights.size(2)) / (1 - call.dropout);
}

void flash(const c10::OperatorHandle& op, Stack& stack) {
  const auto a = torch::jit::pop(stack, op.schema().arguments().size());
  const Flash call{a[0].toTensor(),
                   a[1].toTensor(),
                   a[2].toTensor(),
                   tensor_in(a[3]),
                   tensor_in(a[4]),
                   a[8].toBool(),
                   a[10].toDouble(),
                   a[7].toDouble(),
                   a[11].toOptional<int64_t>(),
                   a[12].toOptional<int64_t>()};
  for (const auto& borders : {call.query_borders, call.key_borders})
    TORCH_CHECK(!borders.defined() || (borders.scalar_type() == torch::kInt && borders.is_contiguous()),
                "cu_seqlens must be contiguous int32");
  for (const auto& x : {call.q, call.k, call.v})
    TORCH_CHECK((x.scalar_type() == torch::kHalf || x.scalar_type() == torch::kBFloat16) && x.stride(-1) == 1,
                "FlashAttention only supports fp16 and bf16 data type, without gaps in the last dimension");
  const auto draws =
      torch::empty({call.dropout > 0 ? n_sequences(call) : 0, call.q.size(-2), a[5].toInt(), a[6].toInt()})
          .bernoulli_(1 - call.dropout);
  const auto out = torch::zeros_like(call.q, torch::MemoryFormat::Contiguous);
  for (int64_t i = 0; i < n_sequences(call); ++i) {
    const auto s = sequence(call, i);
    if (s.q.size(1) == 0 || s.k.size(1) == 0) continue;
    const auto weights = weights_of(call, s);
    part(out, call.query_borders, i)
        .copy_((weights * kept(call, draws, weights, i)).matmul(s.v).transpose(0, 1));
  }
  const auto none = torch::zeros({1});
  stack.insert(stack.end(), {out, none, draws, none.clone(), torch::empty({0})});
}

void flash_backward(const c10::OperatorHandle& op, Stack& stack) {
  const auto a = torch::jit::pop(stack, op.schema().arguments().size());
  const Flash call{a[1].toTensor(),
                   a[2].toTensor(),
                   a[3].toTensor(),
                   tensor_in(a[6]),
                   tensor_in(a[7]),
                   a[11].toBool(),
                   a[14].toDouble(),
                   a[10].toDouble(),
                   a[15].toOptional<int64_t>(),
                   a[16].toOptional<int64_t>()};
  const auto gradient = a[0].toTensor(), draws = a[12].toTensor();
  const auto dq = torch::zeros_like(call.q), dk = torch::zeros_like(call.k), dv = torch::zeros_like(call.v);
  for (int64_t i = 0; i < n_sequences(call); ++i) {
    const auto s = sequence(call, i);
    if (s.q.size(1) == 0 || s.k.size(1) == 0) continue;
    const auto weights = weights_of(call, s), factors = kept(call, draws, weights, i);
    const auto d_out = part(gradient, call.query_borders, i).transpose(0, 1).to(torch::kFloat);
    const auto d_weights = d_out.matmul(s.v.mT()) * factors;
    const auto d_scores =
        weights * (d_weights - (d_weights * weights).sum(-1, /*keepdim=*/true)) * call.scale;
    const auto add = [&](const torch::Tensor& to, const torch::Tensor& borders, const torch::Tensor& values) {
      const auto heads = values.unflatten(0, {to.size(-2), -1}).sum(1);  // over those that share one
      part(to, borders, i).copy_(heads.transpose(0, 1));
    };
    add(dq, call.query_borders, d_scores.matmul(s.k));
    add(dk, call.key_borders, d_scores.mT().matmul(s.q));
    add(dv, call.key_borders, (weights * factors).mT().matmul(d_out));
  }
  stack.insert(stack.end(), {dq, dk, dv});
}

}  // namespace

bool compute_fused(const c10::OperatorHandle& op, Stack& stack) {
  const auto& name = op.schema().name();
  if (name == "aten::_scaled_dot_product_fused_attention_overrideable") {
    attend(stack);
  } else if (name == "aten::_scaled_dot_product_fused_attention_overrideable_backward") {
    attend_backward(stack);
  } else if (name == "aten::_flash_attention_forward") {
    flash(op, stack);
  } else if (name == "aten::_flash_attention_backward") {
    flash_backward(op, stack);
  } else {
    return false;
  }
  return true;
}

}  // namespace zoo::testing
