// The sums of running_sums.h and delta_rule.h: chunks, the recurrence and the definition token by token give
// the same outputs, sums and gradients.

#include "layers/running_sums.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/delta_rule.h"

namespace zoo {
namespace {

constexpr int64_t kSumRows = 2, kQueryHeads = 4, kFeatureWidth = 5, kValueWidth = 3;
constexpr int64_t kLengths[] = {1, 2, 63, 64, 65, 130};  // around the boundaries of chunks

using Tensors = std::vector<torch::Tensor>;

/// A form of a sum: inputs to {output, last sum}.
using SumForm = std::function<Tensors(const Tensors& inputs)>;

/// Outputs, and the gradients of all inputs for upstream gradients that depend on the position only.
Tensors results_of(const SumForm& form, const Tensors& inputs) {
  Tensors leaves;
  for (const auto& input : inputs) leaves.push_back(input.detach().clone().requires_grad_());
  auto results = form(leaves);
  Tensors upstream;
  for (const auto& result : results)
    upstream.push_back(torch::sin(torch::arange(result.numel(), result.options().requires_grad(false)))
                           .view(result.sizes()));
  torch::autograd::backward(results, upstream);
  for (const auto& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

void expect_same_results(const SumForm& a, const SumForm& b, const Tensors& inputs, double tolerance) {
  const auto ours = results_of(a, inputs), theirs = results_of(b, inputs);
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_TRUE(ours[i].defined() && theirs[i].defined()) << "tensor " << i;
    const double scale = std::max(1.0, theirs[i].abs().max().item<double>());
    EXPECT_LE((ours[i] - theirs[i]).abs().max().item<double>(), tolerance * scale) << "tensor " << i;
  }
}

void for_each_length_and_type(
    const std::function<void(int64_t n, const torch::TensorOptions& type, double tolerance)>& check) {
  for (const int64_t n : kLengths) {
    SCOPED_TRACE(std::to_string(n) + " tokens");
    check(n, torch::dtype(torch::kFloat32), 1e-4);
    check(n, torch::dtype(torch::kFloat64), 1e-9);
  }
}

// ---- running sums

RunningSumsInput running_input(const Tensors& x) {
  return {
      .q = x[0], .k = x[1], .v = x[2], .log_decay = x.size() > 4 ? x[4] : torch::Tensor(), .before = x[3]};
}

Tensors in_chunks_form(const Tensors& x) {
  const auto result = running_sums(running_input(x));
  return {result.output, result.sum};
}

/// One call for each token, which goes on from the sum of the last.
Tensors step_form(const Tensors& x) {
  auto input = running_input(x);
  Tensors outputs;
  for (int64_t t = 0; t < x[0].size(2); ++t) {
    auto step = input;
    for (auto* const part : {&step.q, &step.k, &step.v}) *part = part->narrow(2, t, 1);
    if (step.log_decay.defined()) step.log_decay = step.log_decay.narrow(2, t, 1);
    const auto result = running_sums(step);
    outputs.push_back(result.output);
    input.before = result.sum;
  }
  return {torch::cat(outputs, 2), input.before};
}

/// The definition: weights of all pairs of tokens.
Tensors pairs_form(const Tensors& x) {
  const int64_t n = x[0].size(2), group = x[0].size(1) / x[1].size(1);
  const auto k = x[1].repeat_interleave(group, 1), v = x[2].repeat_interleave(group, 1);
  const auto decay =
      x.size() > 4 ? x[4].cumsum(-1) : torch::zeros({x[1].size(0), x[1].size(1), n}, x[1].options());
  const auto between = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).tril().exp().repeat_interleave(group, 1);
  const auto weights = (torch::matmul(x[0], k.transpose(-1, -2)) * between).tril();
  const auto since_start = decay.exp().unsqueeze(-1);
  const auto of_start =
      torch::matmul(x[0] * since_start.repeat_interleave(group, 1), x[3].repeat_interleave(group, 1));
  const auto whole = decay.narrow(-1, n - 1, 1);
  const auto kept = x[1] * (whole - decay).exp().unsqueeze(-1);
  return {torch::matmul(weights, v) + of_start,
          torch::matmul(kept.transpose(-1, -2), x[2]) + x[3] * whole.exp().unsqueeze(-1)};
}

Tensors running_inputs(int64_t n, int64_t n_key_heads, bool decays, const torch::TensorOptions& type) {
  Tensors inputs{torch::randn({kSumRows, kQueryHeads, n, kFeatureWidth}, type),
                 torch::randn({kSumRows, n_key_heads, n, kFeatureWidth}, type),
                 torch::randn({kSumRows, n_key_heads, n, kValueWidth}, type),
                 torch::randn({kSumRows, n_key_heads, kFeatureWidth, kValueWidth}, type)};
  if (decays) inputs.push_back(-0.3 * torch::rand({kSumRows, n_key_heads, n}, type));
  return inputs;
}

TEST(RunningSums, ChunksEqualStepsAndPairs) {
  for_each_length_and_type([](int64_t n, const torch::TensorOptions& type, double tolerance) {
    for (const int64_t n_key_heads : {kQueryHeads, int64_t{2}, int64_t{1}}) {
      for (const bool decays : {false, true}) {
        SCOPED_TRACE(std::to_string(n_key_heads) + (decays ? " key heads, decaying" : " key heads"));
        const auto inputs = running_inputs(n, n_key_heads, decays, type);
        expect_same_results(in_chunks_form, pairs_form, inputs, tolerance);
        expect_same_results(in_chunks_form, step_form, inputs, tolerance);
      }
    }
  });
}

TEST(RunningSums, StrongDecayOverflowsNowhere) {
  auto inputs = running_inputs(130, 2, true, torch::dtype(torch::kFloat32));
  inputs[4] = inputs[4] * 1000;
  expect_same_results(in_chunks_form, step_form, inputs, 1e-4);
}

// ---- the delta rule

DeltaRuleInput delta_input(const Tensors& x) {
  return {.q = x[0],
          .k = x[1],
          .v = x[2],
          .beta = x[3],
          .log_alpha = x.size() > 5 ? x[5] : torch::Tensor(),
          .before = x[4]};
}

Tensors delta_chunks(const Tensors& x) {
  const auto result = delta_rule(delta_input(x));
  return {result.output, result.sum};
}

Tensors delta_steps(const Tensors& x) {
  auto input = delta_input(x);
  Tensors outputs;
  for (int64_t t = 0; t < x[0].size(2); ++t) {
    auto step = input;
    for (auto* const part : {&step.q, &step.k, &step.v, &step.beta}) *part = part->narrow(2, t, 1);
    if (step.log_alpha.defined()) step.log_alpha = step.log_alpha.narrow(2, t, 1);
    const auto result = delta_rule(step);
    outputs.push_back(result.output);
    input.before = result.sum;
  }
  return {torch::cat(outputs, 2), input.before};
}

/// The definition with the matrix I - β k kᵀ.
Tensors delta_matrices(const Tensors& x) {
  auto sum = x[4];
  const auto identity = torch::eye(x[1].size(-1), x[1].options());
  Tensors outputs;
  for (int64_t t = 0; t < x[0].size(2); ++t) {
    const auto at = [&](const torch::Tensor& heads) { return heads.select(2, t).unsqueeze(-1); };
    const auto k = at(x[1]), v = at(x[2]), beta = at(x[3]).unsqueeze(-1);
    const auto alpha = x.size() > 5 ? at(x[5]).unsqueeze(-1).exp() : torch::ones_like(beta);
    sum = alpha * torch::matmul(identity - beta * torch::matmul(k, k.transpose(-1, -2)), sum) +
          beta * torch::matmul(k, v.transpose(-1, -2));
    outputs.push_back(torch::matmul(sum.transpose(-1, -2), at(x[0])).squeeze(-1));
  }
  return {torch::stack(outputs, 2), sum};
}

Tensors delta_inputs(int64_t n, bool gated, const torch::TensorOptions& type) {
  const auto unit = [&](const torch::Tensor& x) { return x / x.norm(2, -1, true); };
  Tensors inputs{torch::randn({kSumRows, kQueryHeads, n, kFeatureWidth}, type),
                 unit(torch::randn({kSumRows, kQueryHeads, n, kFeatureWidth}, type)),
                 torch::randn({kSumRows, kQueryHeads, n, kValueWidth}, type),
                 torch::rand({kSumRows, kQueryHeads, n}, type),
                 torch::randn({kSumRows, kQueryHeads, kFeatureWidth, kValueWidth}, type)};
  if (gated) inputs.push_back(-0.5 * torch::rand({kSumRows, kQueryHeads, n}, type));
  return inputs;
}

TEST(DeltaRule, ChunksEqualStepsAndTheDefinition) {
  for_each_length_and_type([](int64_t n, const torch::TensorOptions& type, double tolerance) {
    for (const bool gated : {false, true}) {
      SCOPED_TRACE(gated ? "gated" : "not gated");
      const auto inputs = delta_inputs(n, gated, type);
      expect_same_results(delta_chunks, delta_matrices, inputs, tolerance);
      expect_same_results(delta_chunks, delta_steps, inputs, tolerance);
    }
  });
}

}  // namespace
}  // namespace zoo
