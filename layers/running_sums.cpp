#include "layers/running_sums.h"

#include <algorithm>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

/// One step of the recurrence.
RunningSums one_token(const RunningSumsInput& input) {
  const int64_t n_rows = input.k.size(0), n_key_heads = input.k.size(1);
  auto sum = input.k.transpose(-1, -2) * input.v;  // (B, K, M, N)
  if (input.before.defined()) {
    const auto factor =
        input.log_decay.defined() ? input.log_decay.exp().unsqueeze(-1) : torch::ones({}, sum.options());
    sum = sum + factor * input.before;
  }
  const auto output = torch::matmul(input.q.reshape({n_rows, n_key_heads, -1, input.q.size(-1)}), sum);
  return {.output = output.view({n_rows, input.q.size(1), 1, -1}), .sum = sum};
}

/// The sums (B, K, chunks, M, N) of single chunks, added up: the sum before each chunk, and the last one.
struct Carried {
  torch::Tensor before;  // (B, K, chunks, M, N)
  torch::Tensor last;    // (B, K, M, N)
};

Carried carried(const torch::Tensor& sums, const torch::Tensor& first) {
  const auto total = torch::cat({first.unsqueeze(2), sums}, 2).cumsum(2);
  const int64_t n_chunks = sums.size(2);
  return {.before = total.narrow(2, 0, n_chunks), .last = total.select(2, n_chunks)};
}

/// The same where older sums are multiplied by `factors` (B, K, chunks).
Carried carried(const torch::Tensor& sums, const torch::Tensor& first, const torch::Tensor& factors) {
  // unbind() rather than select(): the gradient of each select() would be as large as all chunks.
  const auto added = sums.unbind(2), kept = factors.unsqueeze(-1).unsqueeze(-1).unbind(2);
  std::vector<torch::Tensor> before;
  auto sum = first;
  for (size_t i = 0; i < added.size(); ++i) {
    before.push_back(sum);
    sum = sum * kept[i] + added[i];
  }
  return {.before = torch::stack(before, 2), .last = sum};
}

}  // namespace

torch::Tensor in_chunks(const torch::Tensor& x, int64_t length) {
  const int64_t n = x.size(2), n_chunks = (n + length - 1) / length, missing = n_chunks * length - n;
  std::vector<int64_t> behind(static_cast<size_t>(2 * (x.dim() - 2)), 0);  // from the last dimension on
  behind.back() = missing;
  const auto padded = missing > 0 ? torch::constant_pad_nd(x, behind) : x;
  return padded.unflatten(2, {n_chunks, length});
}

RunningSums running_sums(const RunningSumsInput& input) {
  const int64_t n_tokens = input.q.size(2), n_rows = input.q.size(0), n_heads = input.q.size(1);
  if (n_tokens == 1) return one_token(input);
  const int64_t length = Chunks(n_tokens).length, n_key_heads = input.k.size(1);
  const int64_t group = n_heads / n_key_heads, width = input.k.size(-1), value_width = input.v.size(-1);
  const auto k = in_chunks(input.k, length), v = in_chunks(input.v, length);  // (B, K, chunks, C, …)
  const int64_t n_chunks = k.size(2);
  // The queries of all heads that a key head serves, (B, K, chunks, G, C, M).
  auto q = in_chunks(input.q, length).unflatten(1, {n_key_heads, group}).transpose(2, 3);
  const auto rows = [&](const torch::Tensor& x) { return x.flatten(3, 4); };  // (B, K, chunks, G·C, …)

  auto scores = torch::matmul(rows(q), k.transpose(-1, -2)).unflatten(3, {group, length});
  auto decayed_k = k;
  torch::Tensor factors;
  if (input.log_decay.defined()) {
    const auto decay = in_chunks(input.log_decay, length).cumsum(-1);  // since the chunk's beginning
    const auto between = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).tril().exp();
    scores = scores * between.unsqueeze(3);
    const auto whole = decay.narrow(-1, length - 1, 1);
    decayed_k = k * (whole - decay).exp().unsqueeze(-1);
    q = q * decay.exp().unsqueeze(3).unsqueeze(-1);
    factors = whole.squeeze(-1).exp();
  }
  const auto sums = torch::matmul(decayed_k.transpose(-1, -2), v);
  const auto first = input.before.defined()
                         ? input.before
                         : torch::zeros({n_rows, n_key_heads, width, value_width}, sums.options());
  const auto past = factors.defined() ? carried(sums, first, factors) : carried(sums, first);
  const auto output = torch::matmul(rows(scores.tril()), v) + torch::matmul(rows(q), past.before);
  const auto in_order = output.unflatten(3, {group, length}).transpose(2, 3);  // (B, K, G, chunks, C, N)
  return {
      .output = in_order.reshape({n_rows, n_heads, n_chunks * length, value_width}).narrow(2, 0, n_tokens),
      .sum = past.last};
}

double running_sums_products(const HeadSizes& sizes, int64_t n_tokens, int64_t m, int64_t n) {
  if (n_tokens == 1) return static_cast<double>(sizes.n_heads * m * n);
  const Chunks chunks(n_tokens);
  const int64_t per_query = chunks.length * (m + n) + m * n, per_key = m * n;
  return chunks.tokens() * static_cast<double>(sizes.n_heads * per_query + sizes.n_kv_heads * per_key);
}

}  // namespace zoo
