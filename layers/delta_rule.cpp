#include "layers/delta_rule.h"

#include <algorithm>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "layers/running_sums.h"

namespace zoo {
namespace {

torch::Tensor sum_before(const DeltaRuleInput& input) {
  if (input.before.defined()) return input.before;
  return torch::zeros({input.k.size(0), input.k.size(1), input.k.size(-1), input.v.size(-1)},
                      input.v.options());
}

DeltaRuleResult one_token(const DeltaRuleInput& input) {
  auto sum = sum_before(input);
  if (input.log_alpha.defined()) sum = sum * input.log_alpha.exp().unsqueeze(-1);
  const auto written = (input.v - torch::matmul(input.k, sum)) * input.beta.unsqueeze(-1);  // (B, H, 1, Dv)
  sum = sum + input.k.transpose(-1, -2) * written;
  return {.output = torch::matmul(input.q, sum), .sum = sum};
}

}  // namespace

// Within a chunk let g_t = exp(Σ log α) from the chunk's beginning to t, and S the sum before the chunk.
// Token t writes k_t u_tᵀ with u_t = β_t (v_t - g_t Sᵀk_t - Σ_{s<t} (g_t/g_s)(k_s·k_t) u_s). These are
// triangular systems (I + A)(U, W) = (βV, βgK): the chunk writes U - W S.
DeltaRuleResult delta_rule(const DeltaRuleInput& input) {
  const int64_t n_tokens = input.q.size(2);
  if (n_tokens == 1) return one_token(input);
  const int64_t length = std::min(kChunkLength, n_tokens), value_width = input.v.size(-1);
  auto q = in_chunks(input.q, length), k = in_chunks(input.k, length);  // (B, H, chunks, C, …)
  const auto v = in_chunks(input.v, length), beta = in_chunks(input.beta, length).unsqueeze(-1);
  const auto keys_to_keys = torch::matmul(k * beta, k.transpose(-1, -2)).tril(-1);
  const auto queries_to_keys = torch::matmul(q, k.transpose(-1, -2)).tril();
  auto system = keys_to_keys, within = queries_to_keys, read = k * beta, kept = k;
  torch::Tensor factors;  // (B, H, chunks, 1, 1)
  if (input.log_alpha.defined()) {
    const auto decay = in_chunks(input.log_alpha, length).cumsum(-1);
    const auto between = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).tril().exp();
    const auto from_start = decay.exp().unsqueeze(-1), whole = decay.narrow(-1, length - 1, 1);
    system = system * between;
    within = within * between;
    read = read * from_start;
    q = q * from_start;
    kept = k * (whole - decay).exp().unsqueeze(-1);
    factors = whole.exp().unsqueeze(-1);
  }
  const auto solved = torch::linalg_solve_triangular(system, torch::cat({v * beta, read}, -1),
                                                     /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
  // unbind() rather than select(): the gradient of each select() would be as large as all chunks.
  const auto values = solved.narrow(-1, 0, value_width).unbind(2);
  const auto reads = solved.narrow(-1, value_width, k.size(-1)).unbind(2);
  const auto writes = kept.transpose(-1, -2).unbind(2), queries = q.unbind(2), pairs = within.unbind(2);
  const auto decays = factors.defined() ? factors.unbind(2) : std::vector<torch::Tensor>();

  auto sum = sum_before(input);
  std::vector<torch::Tensor> outputs;
  for (size_t i = 0; i < queries.size(); ++i) {
    const auto written = values[i] - torch::matmul(reads[i], sum);
    outputs.push_back(torch::matmul(queries[i], sum) + torch::matmul(pairs[i], written));
    if (factors.defined()) sum = sum * decays[i];
    sum = sum + torch::matmul(writes[i], written);
  }
  return {.output = torch::cat(outputs, 2).narrow(2, 0, n_tokens), .sum = sum};
}

}  // namespace zoo
