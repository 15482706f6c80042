#include "analysis/attention_rollout.h"

namespace zoo {
namespace {

torch::Tensor mean_of_heads(const AttentionLayer& layer) { return layer.weights.to(torch::kFloat64).mean(0); }

/// Rows divided by their sums. Sums of float weights are off by 1e-7, an error that grows in a deep stack.
torch::Tensor normalized(const torch::Tensor& weights) { return weights / weights.sum(-1, /*keepdim=*/true); }

torch::Tensor with_residual(const AttentionLayer& layer) {
  const auto mean = mean_of_heads(layer);
  return normalized(0.5 * mean + 0.5 * torch::eye(mean.size(0), torch::kFloat64));
}

}  // namespace

std::vector<Rollout> attention_rollout(const AttentionReport& report) {
  std::vector<Rollout> rollouts;
  torch::Tensor memory;  // (S, S): roll-out of the encoder's last layer
  for (const auto kind : {AttentionKind::encoder, AttentionKind::decoder}) {
    torch::Tensor product;
    for (const auto& layer : report.layers) {
      if (layer.kind != kind) continue;
      const auto step = with_residual(layer);
      product = product.defined() ? step.matmul(product) : step;
      rollouts.push_back({kind, layer.layer, product});
    }
    if (kind == AttentionKind::encoder) memory = product;
  }
  const AttentionLayer* last = nullptr;
  for (const auto& layer : report.layers) {
    if (layer.kind == AttentionKind::cross) last = &layer;
  }
  if (last && memory.defined())
    rollouts.push_back({last->kind, last->layer, normalized(mean_of_heads(*last)).matmul(memory)});
  return rollouts;
}

}  // namespace zoo
