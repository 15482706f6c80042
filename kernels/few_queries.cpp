#include "kernels/few_queries.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/grain.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

constexpr int64_t kMostQueries = 7;

/// Room for the scores of a group, and the keys that it sees.
struct Scratch {
  std::vector<float> scores;     // (queries, S)
  std::vector<int64_t> visible;  // in ascending order
};

/// The numbers of the keys that are seen.
void keep_visible(std::vector<int64_t>& keys, const bool* seen, int64_t stride) {
  size_t n = 0;
  for (int64_t s = 0; s < std::ssize(keys); ++s) {
    keys[n] = s;
    n += seen[s * stride] ? 1 : 0;
  }
  keys.resize(n);
}

/// A tensor (B or 1, H or 1, T, S) with the strides of (B, H, T, S); undefined: none.
torch::Tensor expanded(const torch::Tensor& x, at::IntArrayRef sizes) {
  return x.defined() ? x.expand(sizes) : x;
}

bool is_plain(const torch::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat && x.dim() == 4 && x.stride(3) == 1 &&
         !(torch::GradMode::is_enabled() && x.requires_grad());
}

/// One head of the blocks of row b.
template <class Number>
void take_head(std::vector<HeadBlock<Number>>& to, const ColumnBlocks& keys, int64_t b, int64_t head) {
  const auto n = static_cast<size_t>((keys.lengths[b] + kBlockColumns - 1) / kBlockColumns);
  const auto* const blocks = keys.blocks.data() + keys.first_blocks[b];
  to.resize(n);
  const auto numbers = [&](const StoredHeads& x) {
    return reinterpret_cast<const Number*>(x.numbers) + head * x.head_stride;
  };
  const auto scales = [&](const StoredHeads& x) {
    return x.scales ? x.scales + head * x.scale_head_stride : nullptr;
  };
  for (size_t i = 0; i < n; ++i) {
    const auto& [k, v] = blocks[i];
    to[i] = {.keys = numbers(k), .values = numbers(v), .key_scales = scales(k), .value_scales = scales(v)};
  }
}

template <class Number>
torch::Tensor attention_over(const torch::Tensor& q, const ColumnBlocks& keys,
                             const FewQueriesOptions& options, AttendKernel<Number> attend) {
  const int64_t n_rows = q.size(0), n_heads = q.size(1), n_queries = q.size(2), n_keys = keys.n_columns;
  const auto visible = expanded(options.visible, {n_rows, n_heads, n_queries, n_keys});
  const auto bias = expanded(options.bias, {n_rows, n_heads, n_queries, n_keys});
  auto output = torch::empty({n_rows, n_queries, n_heads, keys.value_width}, q.options());

  // Heads that share keys form a group, unless each sees other keys, or there are fewer groups than threads.
  const int64_t sharing = n_heads / keys.n_heads;
  const bool alike = !visible.defined() || visible.stride(1) == 0;
  const bool grouped = alike && n_rows * keys.n_heads >= at::get_num_threads();
  const int64_t group_size = grouped ? sharing : 1, n_groups = n_heads / group_size;

  const auto work = [&](int64_t task, std::vector<HeadBlock<Number>>& blocks, Scratch& scratch) {
    const int64_t b = task / n_groups, head = task % n_groups * group_size;
    take_head(blocks, keys, b, head / sharing);
    for (int64_t t = 0; t < n_queries; ++t) {
      scratch.visible.resize(static_cast<size_t>(std::min(n_keys, keys.lengths[b])));
      if (visible.defined()) {
        const bool* const seen = visible.const_data_ptr<bool>() + b * visible.stride(0) +
                                 head * visible.stride(1) + t * visible.stride(2);
        keep_visible(scratch.visible, seen, visible.stride(3));
      } else {
        std::iota(scratch.visible.begin(), scratch.visible.end(), 0);
      }
      scratch.scores.resize(static_cast<size_t>(group_size) * scratch.visible.size());
      const QueryGroup group{
          .queries = q.const_data_ptr<float>() + b * q.stride(0) + head * q.stride(1) + t * q.stride(2),
          .bias = bias.defined() ? bias.const_data_ptr<float>() + b * bias.stride(0) + head * bias.stride(1) +
                                       t * bias.stride(2)
                                 : nullptr,
          .outputs = output.mutable_data_ptr<float>() + b * output.stride(0) + t * output.stride(1) +
                     head * output.stride(2),
          .n_queries = group_size,
          .query_stride = q.stride(1),
          .key_stride = keys.key_stride,
          .value_stride = keys.value_stride,
          .bias_stride = bias.defined() ? bias.stride(1) : 0,
          .key_bias_stride = bias.defined() ? bias.stride(3) : 0,
          .key_width = keys.key_width,
          .value_width = keys.value_width,
          .scale = static_cast<float>(options.scale),
          .softcap = static_cast<float>(options.softcap.value_or(0))};
      attend(group, blocks.data(), scratch.visible.data(), std::ssize(scratch.visible),
             scratch.scores.data());
    }
  };
  const int64_t numbers_of_a_task = std::max<int64_t>(1, n_keys * group_size * n_queries * q.size(3));
  at::parallel_for(0, n_rows * n_groups, grain_rows(numbers_of_a_task), [&](int64_t first, int64_t last) {
    std::vector<HeadBlock<Number>> blocks;
    Scratch scratch;
    for (int64_t task = first; task < last; ++task) work(task, blocks, scratch);
  });
  return output.transpose(1, 2);
}

/// The blocks of plain tensors (B, K, S, D).
ColumnBlocks blocks_of(const torch::Tensor& k, const torch::Tensor& v) {
  ColumnBlocks result{.n_heads = k.size(1),
                      .key_width = k.size(3),
                      .value_width = v.size(3),
                      .n_columns = k.size(2),
                      .key_stride = k.stride(2),
                      .value_stride = v.stride(2)};
  for (int64_t b = 0; b < k.size(0); ++b) result.add_row(heads_of_row(k, b), heads_of_row(v, b), k.size(2));
  return result;
}

}  // namespace

bool are_few_queries(const torch::Tensor& q) {
  return is_plain(q) && q.size(2) <= kMostQueries && !at::autocast::is_autocast_enabled(at::kCPU);
}

bool has_few_queries_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  return are_few_queries(q) && is_plain(k) && is_plain(v) && q.size(0) == k.size(0) && k.size(1) > 0 &&
         q.size(1) % k.size(1) == 0 && q.size(3) == k.size(3) &&
         k.sizes().slice(0, 3) == v.sizes().slice(0, 3);
}

torch::Tensor few_queries_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                    const FewQueriesOptions& options) {
  TORCH_CHECK(has_few_queries_attention(q, k, v), "few_queries_attention does not support queries ",
              q.sizes(), " over keys ", k.sizes(), ": check has_few_queries_attention() first");
  return attention_over(q, blocks_of(k, v), options, kernels().attend_fp32);
}

torch::Tensor few_queries_attention(const torch::Tensor& q, const ColumnBlocks& keys,
                                    const FewQueriesOptions& options) {
  TORCH_CHECK(are_few_queries(q) && q.size(0) == std::ssize(keys.lengths) && keys.n_heads > 0 &&
                  q.size(1) % keys.n_heads == 0 && q.size(3) == keys.key_width,
              "few_queries_attention does not support queries ", q.sizes(), " over ", keys.lengths.size(),
              " rows of ", keys.n_heads, " x ", keys.key_width, " numbers");
  switch (keys.format) {
    case CacheFormat::bf16:
      return attention_over(q, keys, options, kernels().attend_bf16);
    case CacheFormat::int8:
      return attention_over(q, keys, options, kernels().attend_int8);
    case CacheFormat::fp32:
      break;
  }
  return attention_over(q, keys, options, kernels().attend_fp32);
}

}  // namespace zoo
