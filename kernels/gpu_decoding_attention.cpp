#include "kernels/gpu_decoding_attention.h"

#include <string>
#include <vector>

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/gpu/checked_program.h"
#include "kernels/gpu/kernel_calls.h"

namespace zoo::embedded {
extern const char decoding_attention_call_cuda[];
extern const char decoding_attention_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

constexpr int64_t kLaneBytes = 16;  // of a key, which the lanes of one warp share

int64_t column_parts(int64_t n_columns) { return (n_columns + kColumnsOfABlock - 1) / kColumnsOfABlock; }

const float* float_numbers(const torch::Tensor& tensor) { return static_cast<const float*>(data_of(tensor)); }

std::string attention_function(torch::ScalarType type, int64_t group) {
  return "decoding_attention_" + name_of_type(type) + (group == 1 ? "_1" : group <= 4 ? "_4" : "_8");
}

torch::Tensor normalised_heads_of(const torch::Tensor& heads, const torch::Tensor& gain,
                                  const DecodingAttentionPlan& plan) {
  if (!gain.defined()) return heads;
  return heads * (heads.square().mean(-1, /*keepdim=*/true) + plan.norm_eps).rsqrt() *
         (gain + plan.gain_offset);
}

/// heads (N, 1, Dh) of one row, turned by its angles.
torch::Tensor turned_heads(const torch::Tensor& heads, const RotaryAngles& angles, int64_t row) {
  if (!angles.cos.defined()) return heads;
  const int64_t pairs = angles.cos.size(-1), width = heads.size(-1);
  const auto of_row = [&](const torch::Tensor& x) { return x.view({-1, pairs})[x.dim() == 2 ? 0 : row]; };
  const auto c = of_row(angles.cos), s = of_row(angles.sin);
  const bool half = angles.layout == RotaryLayout::half;
  const auto part = half ? heads.narrow(-1, 0, 2 * pairs).unflatten(-1, {2, pairs}).transpose(-1, -2)
                         : heads.narrow(-1, 0, 2 * pairs).unflatten(-1, {pairs, 2});
  const auto a = part.select(-1, 0), b = part.select(-1, 1);
  const auto first = a * c - b * s, second = b * c + a * s;
  const auto both = half ? torch::cat({first, second}, -1) : torch::stack({first, second}, -1).flatten(-2);
  return torch::cat({both, heads.narrow(-1, 2 * pairs, width - 2 * pairs)}, -1);
}

/// The same by LibTorch's operations, row by row, in the numbers' own type between its roundings.
torch::Tensor attention_by_torch(const torch::Tensor& heads, const DecodingAttentionPlan& plan) {
  const auto type = plan.keys.scalar_type();
  const int64_t h = plan.n_heads, k = plan.n_kv_heads, width = plan.keys.size(3);
  const auto rounded = [&](const torch::Tensor& x) { return x.to(type).to(torch::kFloat); };
  std::vector<torch::Tensor> rows;
  for (int64_t b = 0; b < heads.size(0); ++b) {
    const auto parts = heads[b].to(torch::kFloat).view({h + 2 * k, width}).split_with_sizes({h, k, k});
    const auto q =
        rounded(turned_heads(rounded(normalised_heads_of(parts[0], plan.query_gain, plan)), plan.angles, b));
    const auto key =
        rounded(turned_heads(rounded(normalised_heads_of(parts[1], plan.key_gain, plan)), plan.angles, b));
    const int64_t column = plan.positions.defined() ? plan.positions[b].item<int64_t>() : plan.position;
    plan.keys[b].select(1, column).copy_(key);
    plan.values[b].select(1, column).copy_(parts[2]);
    const auto all = [&](const torch::Tensor& cache) {
      return cache[b].narrow(1, 0, column + 1).to(torch::kFloat).repeat_interleave(h / k, 0);  // (H, S, Dh)
    };
    auto scores = all(plan.keys).matmul(q.unsqueeze(-1)).squeeze(-1) * plan.scale;  // (H, S)
    if (plan.softcap) scores = (scores / *plan.softcap).tanh() * *plan.softcap;
    if (plan.sinks.defined()) scores = torch::cat({scores, plan.sinks.unsqueeze(-1)}, -1);
    const auto weights = scores.softmax(-1).narrow(-1, 0, column + 1);
    rows.push_back(weights.unsqueeze(1).matmul(all(plan.values)).reshape({1, h * width}));
  }
  return torch::stack(rows).to(type);
}

/// Every function: with few and many heads that share keys, over one part and several, with all that may
/// stand before.
bool attention_agrees(const KernelProgram& program, c10::Device device) {
  constexpr int64_t width = 16, n_rows = 2;
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const auto& [n_heads, n_kv_heads] :
         std::vector<std::pair<int64_t, int64_t>>{{2, 2}, {6, 2}, {10, 1}}) {
      for (const int64_t n_columns : {20, 300}) {
        const auto cache = wave({2, n_rows, n_kv_heads, n_columns, width}, 0.7, device).to(type);
        const auto heads = (wave({n_rows, 1, (n_heads + 2 * n_kv_heads) * width}, 0.37, device) * 2).to(type);
        const auto angles = wave({n_rows, 1, 1, 6}, 0.9, device);
        const auto gain = wave({width}, 0.41, device);
        const auto last = torch::tensor({n_columns - 1, int64_t{3}}, torch::kInt64).to(device);
        std::vector<DecodingAttentionPlan> plans(3);
        plans[0].position = n_columns - 2;
        plans[1].positions = last;
        plans[1].angles = {angles, angles.cos(), RotaryLayout::half};
        plans[1].query_gain = plans[1].key_gain = gain;
        plans[1].gain_offset = 1;
        plans[1].norm_eps = 1e-6;
        plans[2].positions = last;
        plans[2].angles = {angles.narrow(0, 0, 1).view({1, 6}), angles.narrow(0, 1, 1).view({1, 6}),
                           RotaryLayout::interleaved};
        plans[2].softcap = 5;
        plans[2].sinks = wave({n_heads}, 0.61, device);
        for (auto& plan : plans) {
          plan.n_heads = n_heads;
          plan.n_kv_heads = n_kv_heads;
          plan.scale = 0.6;
          const auto run = [&](const auto& attend) {
            const auto own = cache.clone();
            plan.keys = own[0];
            plan.values = own[1];
            const auto y = attend();
            return std::vector{y, own};
          };
          const auto found = run([&] { return decoding_attention_by(program, heads, plan); });
          const auto wanted = run([&] { return attention_by_torch(heads, plan); });
          const double tolerance = type == torch::kFloat ? 1e-5 : 0.01;
          for (size_t i = 0; i < found.size(); ++i)
            if (!is_near(found[i], wanted[i], tolerance)) return false;
        }
      }
    }
  }
  return true;
}

CheckedProgram& attention_programs() {
  static CheckedProgram programs(
      "attention in decoding", "decoding_attention",
      std::string(embedded::decoding_attention_call_cuda) + embedded::decoding_attention_cuda,
      attention_agrees);
  return programs;
}

}  // namespace

bool has_gpu_decoding_attention(const DecodingAttentionPlan& plan) {
  const auto& keys = plan.keys;
  if (!has_kernels(keys.device()) || !has_kernels(keys.scalar_type()) ||
      plan.values.scalar_type() != keys.scalar_type())
    return false;
  const int64_t bytes = keys.size(3) * static_cast<int64_t>(keys.element_size());
  const auto is_whole = [&](const torch::Tensor& x) { return x.stride(3) == 1 && x.stride(2) == x.size(3); };
  return plan.values.sizes() == keys.sizes() && plan.values.strides() == keys.strides() && is_whole(keys) &&
         bytes % kLaneBytes == 0 && bytes <= kLaneBytes * kWarpThreads &&
         attention_programs().on(keys.device());
}

torch::Tensor decoding_attention_by(const KernelProgram& program, const torch::Tensor& heads,
                                    const DecodingAttentionPlan& plan) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const torch::NoGradGuard no_grad;
  const auto& keys = plan.keys;
  const int64_t n_rows = heads.size(0), n_heads = plan.n_heads, n_kv_heads = plan.n_kv_heads,
                width = keys.size(3);
  const int64_t n_columns = plan.positions.defined() ? keys.size(2) : plan.position + 1,
                n_parts = column_parts(n_columns);
  const int64_t group = n_heads / n_kv_heads, n_chunks = (group + kQueriesOfABlock - 1) / kQueriesOfABlock;
  const auto x = heads.contiguous();
  const auto y = torch::empty({n_rows, 1, n_heads * width}, x.options());
  torch::Tensor parts, n_done;
  if (n_parts > 1) {
    parts = torch::empty({n_rows, n_heads, n_parts, width + 2}, x.options().dtype(torch::kFloat));
    n_done = torch::zeros({n_rows * n_kv_heads * n_chunks}, x.options().dtype(torch::kInt32));
  }
  const auto cos = plan.angles.cos.defined() ? plan.angles.cos.contiguous() : plan.angles.cos,
             sin = plan.angles.sin.defined() ? plan.angles.sin.contiguous() : plan.angles.sin;
  DecodingAttentionCall call;
  call.heads = data_of(x);
  call.keys = data_of(keys);
  call.values = data_of(plan.values);
  call.row_stride = keys.stride(0);
  call.head_stride = keys.stride(1);
  call.positions = static_cast<const long long*>(data_of(plan.positions));
  call.cosines = float_numbers(cos);
  call.sines = float_numbers(sin);
  call.query_gain = float_numbers(plan.query_gain);
  call.key_gain = float_numbers(plan.key_gain);
  call.sinks = float_numbers(plan.sinks);
  call.outputs = data_of(y);
  call.parts = static_cast<float*>(data_of(parts));
  call.n_done = static_cast<unsigned*>(data_of(n_done));
  call.position = static_cast<int>(plan.position);
  call.n_heads = static_cast<int>(n_heads);
  call.n_kv_heads = static_cast<int>(n_kv_heads);
  call.head_dim = static_cast<int>(width);
  if (cos.defined()) {
    call.pairs = static_cast<int>(cos.size(-1));
    call.angles_stride = cos.dim() == 2 ? 0 : call.pairs;
    call.pairs_are_neighbours = plan.angles.layout == RotaryLayout::interleaved ? 1 : 0;
  }
  call.n_parts = static_cast<int>(n_parts);
  call.scale = static_cast<float>(plan.scale);
  call.softcap = static_cast<float>(plan.softcap.value_or(0));
  call.norm_eps = static_cast<float>(plan.norm_eps);
  call.gain_offset = static_cast<float>(plan.gain_offset);
  program.launch(attention_function(keys.scalar_type(), group),
                 {.blocks = n_rows * n_kv_heads * n_chunks * n_parts, .threads = kBlockThreads}, {&call});
  return y;
}

torch::Tensor gpu_decoding_attention(const torch::Tensor& heads, const DecodingAttentionPlan& plan) {
  return decoding_attention_by(*attention_programs().on(heads.device()), heads, plan);
}

}  // namespace zoo
