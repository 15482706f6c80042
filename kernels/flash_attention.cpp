#include "kernels/flash_attention.h"

#include <tuple>
#include <vector>

#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

using Tensors = std::vector<torch::Tensor>;

/// Where the parts of rows begin in B rows of n columns, for kernels that read sequences without gaps: two
/// parts a row, the first `ends` columns and the others, which are padding. Nothing has to be packed, and the
/// host does not have to know the lengths. (2B + 1) int32
torch::Tensor borders(const torch::Tensor& ends, int64_t n) {
  const auto starts = torch::arange(ends.size(0), ends.options()) * n;
  const auto begin_and_end = torch::stack({starts, starts + ends.clamp(0, n)}, 1).flatten();
  return torch::constant_pad_nd(begin_and_end, {0, 1}, ends.size(0) * n).to(torch::kInt);
}

/// (B, H, T, Dh) → (B, T, H, Dh), whose last dimension has no gaps.
torch::Tensor by_position(const torch::Tensor& x) {
  const auto y = x.transpose(1, 2);
  return y.stride(-1) == 1 ? y : y.contiguous();
}

torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                     const FlashAttentionOptions& options) {
  const int64_t n_rows = q.size(0), n_queries = q.size(2), n_keys = k.size(2);
  // Padding at the end hides nothing from the queries before it.
  const bool has_lengths = options.lengths.defined() && !options.is_causal;
  const auto left = options.window,
             right = options.window && options.is_causal ? std::optional<int64_t>(0) : options.window;
  if (!has_lengths) {
    return std::get<0>(at::_flash_attention_forward(by_position(q), by_position(k), by_position(v),
                                                    std::nullopt, std::nullopt, n_queries, n_keys,
                                                    options.dropout, options.is_causal,
                                                    /*return_debug_mask=*/false, options.scale, left, right))
        .transpose(1, 2);
  }
  const auto ends = options.lengths.to(q.device());
  const auto key_borders = borders(ends, n_keys);
  // All queries of a row see its keys; with a window, which is counted from the end, only as many as there
  // are keys.
  const auto query_borders =
      options.window ? key_borders : borders(torch::full_like(ends, n_queries), n_queries);
  const auto packed = [](const torch::Tensor& x) { return by_position(x).flatten(0, 1); };
  const auto out = std::get<0>(at::_flash_attention_forward(
      packed(q), packed(k), packed(v), query_borders, key_borders, n_queries, n_keys, options.dropout,
      options.is_causal, /*return_debug_mask=*/false, options.scale, left, right));
  return out.unflatten(0, {n_rows, n_queries}).transpose(1, 2);
}

/// The same step by step, in float. Without infinity a query that sees nothing has no gradient that is no
/// number.
torch::Tensor reference(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                        const FlashAttentionOptions& options) {
  const auto all = [&](const torch::Tensor& x) {
    return x.to(torch::kFloat).repeat_interleave(q.size(1) / x.size(1), 1);
  };
  const auto positions = torch::arange(k.size(2), torch::dtype(torch::kLong).device(q.device()));
  const auto distance = positions.narrow(0, 0, q.size(2)).unsqueeze(1) - positions;  // (T, S)
  auto hidden = torch::zeros_like(distance, torch::kBool).expand({q.size(0), 1, -1, -1});
  if (options.is_causal) hidden = hidden.logical_or(distance < 0);
  if (options.window) hidden = hidden.logical_or(distance.abs() > *options.window);
  if (options.lengths.defined()) hidden = hidden.logical_or(positions >= options.lengths.view({-1, 1, 1, 1}));
  const auto scores = (q.to(torch::kFloat) * options.scale).matmul(all(k).mT());
  return scores.masked_fill(hidden, -1e30).softmax(-1).matmul(all(v));
}

/// Whether a call of each kind gives the right output and gradients on this device.
bool agrees(torch::Device device, torch::ScalarType type) {
  const c10::InferenceMode may_record(false);
  const torch::AutoGradMode recording(true);
  const auto numbers = [&](int64_t heads, int64_t n) {
    const auto values = torch::arange(2 * heads * n * 16, torch::kFloat).mul_(0.7).sin_();
    return values.view({2, heads, n, 16}).to(device, type).requires_grad_();
  };
  const auto lengths = torch::tensor({3, 7}, torch::kLong).to(device);
  std::vector<FlashAttentionOptions> kinds(4);
  kinds[0].lengths = kinds[3].lengths = lengths;
  kinds[1] = {.is_causal = true, .window = 2};
  kinds[2].window = kinds[3].window = 2;
  for (auto& kind : kinds) {
    kind.scale = 0.3;
    const Tensors inputs = {numbers(4, 7), numbers(2, 7), numbers(2, 7)};
    // Queries that are padding may get anything.
    const auto counts = torch::arange(7, torch::kLong).to(device).view({1, 1, 7, 1}) <
                        (kind.lengths.defined() ? lengths : torch::full_like(lengths, 7)).view({2, 1, 1, 1});
    const auto results = [&](const torch::Tensor& out) {
      const auto counted = torch::where(counts, out.to(torch::kFloat), torch::zeros({}, device));
      auto all = torch::autograd::grad({counted.square().sum()}, inputs);
      all.push_back(counted.detach());
      return all;
    };
    const auto found = results(attend(inputs[0], inputs[1], inputs[2], kind)),
               wanted = results(reference(inputs[0], inputs[1], inputs[2], kind));
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto difference = (found[i].to(torch::kFloat) - wanted[i].to(torch::kFloat)).norm();
      if (!(difference.item<double>() <= 0.02 * wanted[i].to(torch::kFloat).norm().item<double>()))
        return false;
    }
  }
  return true;
}

/// LibTorch may have been built without these kernels, or for other cards.
bool can_be_used(torch::Device device, torch::ScalarType type) {
  try {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    return agrees(device, type);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

bool has_flash_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  const auto type = q.scalar_type();
  const int64_t width = q.size(-1);
  const bool suits = !q.is_cpu() && (type == torch::kBFloat16 || type == torch::kHalf) &&
                     k.scalar_type() == type && v.scalar_type() == type && v.size(-1) == width &&
                     width % 8 == 0 && width <= 256 && q.numel() > 0 && k.numel() > 0 &&
                     q.size(1) % k.size(1) == 0 && at::globalContext().userEnabledFlashSDP();
  if (!suits) return false;
  static const bool in_bfloat16 = can_be_used(q.device(), torch::kBFloat16),
                    in_half = can_be_used(q.device(), torch::kHalf);
  return type == torch::kHalf ? in_half : in_bfloat16;
}

torch::Tensor flash_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              const FlashAttentionOptions& options) {
  TORCH_CHECK(q.size(2) == k.size(2) || !(options.is_causal || options.window),
              "flash attention aligns queries and keys: ", q.sizes(), " and ", k.sizes());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return attend(q, k, v, options);
}

}  // namespace zoo
