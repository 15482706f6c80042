#include "kernels/gpu_rotary.h"

#include <string>
#include <vector>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

#include "kernels/first_derivative.h"
#include "kernels/gpu/checked_program.h"
#include "kernels/gpu/kernel_calls.h"

namespace zoo::embedded {
extern const char rotary_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

enum class Turn { forth, back };

/// cos, sin: (T, R/2) or (B, 1, T, R/2), contiguous.
torch::Tensor turned(const KernelProgram& program, const torch::Tensor& any, const RotaryAngles& angles,
                     Turn turn) {
  const auto x = any.stride(-1) == 1 ? any : any.contiguous();
  const auto y = torch::empty_like(x);
  int n_heads = static_cast<int>(x.size(1)), n_positions = static_cast<int>(x.size(2)),
      head_dim = static_cast<int>(x.size(3)), pairs = static_cast<int>(angles.cos.size(-1));
  long long n = x.size(0) * x.size(1) * x.size(2) * (x.size(3) - angles.cos.size(-1));
  long long x_batch = x.stride(0), x_head = x.stride(1), x_position = x.stride(2), y_batch = y.stride(0),
            y_head = y.stride(1), y_position = y.stride(2),
            angles_batch = angles.cos.dim() == 4 ? angles.cos.stride(0) : 0;
  float sign = turn == Turn::forth ? 1 : -1;
  void *from = data_of(x), *cosines = data_of(angles.cos), *sines = data_of(angles.sin), *to = data_of(y);
  program.launch((angles.layout == RotaryLayout::half ? "rotary_half_" : "rotary_interleaved_") +
                     name_of_type(x.scalar_type()),
                 launch_size_for(n),
                 {&from, &cosines, &sines, &to, &n, &n_heads, &n_positions, &head_dim, &pairs, &x_batch,
                  &x_head, &x_position, &y_batch, &y_head, &y_position, &angles_batch, &sign});
  return y;
}

struct GpuRotary : torch::autograd::Function<GpuRotary> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& cos,
                               const torch::Tensor& sin, RotaryLayout layout, const KernelProgram* program) {
    context->save_for_backward({cos, sin});
    context->saved_data["layout"] = static_cast<int64_t>(layout);
    keep_program(*context, *program);
    return turned(*program, x, {cos, sin, layout}, Turn::forth);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("a rotary position");
    const auto saved = context->get_saved_variables();
    const auto layout = static_cast<RotaryLayout>(context->saved_data["layout"].toInt());
    return {turned(kept_program(*context), gradients[0], {saved[0], saved[1], layout}, Turn::back),
            {},
            {},
            {},
            {}};
  }
};

/// The same by LibTorch's operations, in float.
torch::Tensor turned_by_torch(const torch::Tensor& x, const RotaryAngles& angles) {
  const int64_t pairs = angles.cos.size(-1), width = 2 * pairs;
  const auto whole = x.to(torch::kFloat), rest = whole.narrow(-1, width, x.size(-1) - width);
  const bool half = angles.layout == RotaryLayout::half;
  const auto part = whole.narrow(-1, 0, width)
                        .unflatten(-1, half ? at::IntArrayRef({2, pairs}) : at::IntArrayRef({pairs, 2}));
  const auto a = part.select(half ? -2 : -1, 0), b = part.select(half ? -2 : -1, 1);
  const auto both =
      torch::stack({a * angles.cos - b * angles.sin, b * angles.cos + a * angles.sin}, half ? -2 : -1);
  return torch::cat({both.flatten(-2), rest}, -1).to(x.scalar_type());
}

/// Output and gradient, for each type and layout, a part of a head and a whole one, angles for all rows and
/// for each.
bool rotary_agrees(const KernelProgram& program, c10::Device device) {
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const auto layout : {RotaryLayout::half, RotaryLayout::interleaved}) {
      for (const int64_t pairs : {4, 3}) {
        for (const bool by_row : {false, true}) {
          const auto sizes = by_row ? std::vector<int64_t>{2, 1, 5, pairs} : std::vector<int64_t>{5, pairs};
          const auto angle = wave(sizes, 0.7, device) * 3;
          const RotaryAngles angles = {angle.cos(), angle.sin(), layout};
          // As projections give them: (B, T, H, Dh) in memory.
          const auto values = wave({2, 5, 3, 8}, 0.37, device).to(type).transpose(1, 2);
          const auto gradient = wave({2, 3, 5, 8}, 0.91, device).to(type);
          const auto run = [&](const auto& rotary) {
            const auto x = values.detach().requires_grad_();
            const auto y = rotary(x);
            return Tensors{y.detach(), torch::autograd::grad({y}, {x}, {gradient})[0]};
          };
          const auto found = run([&](const auto& x) { return rotary_by(program, x, angles); }),
                     wanted = run([&](const auto& x) { return turned_by_torch(x, angles); });
          const double tolerance = type == torch::kFloat ? 1e-5 : 1e-2;
          for (size_t i = 0; i < wanted.size(); ++i)
            if (!is_near(found[i], wanted[i], tolerance)) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

torch::Tensor rotary_by(const KernelProgram& program, const torch::Tensor& x, const RotaryAngles& angles) {
  return GpuRotary::apply(x, angles.cos, angles.sin, angles.layout, &program);
}

std::optional<torch::Tensor> gpu_rotary(const torch::Tensor& x, const RotaryAngles& angles) {
  const bool suits = has_kernels(x.device()) && x.dim() == 4 && x.numel() > 0 &&
                     has_kernels(x.scalar_type()) && angles.cos.scalar_type() == torch::kFloat &&
                     angles.cos.is_contiguous() && angles.sin.is_contiguous() &&
                     (angles.cos.dim() == 2 || angles.cos.size(0) == x.size(0));
  if (!suits) return std::nullopt;
  static CheckedProgram programs("rotary positions", "rotary", embedded::rotary_cuda, rotary_agrees);
  const auto* const program = programs.on(x.device());
  return program ? std::optional(rotary_by(*program, x, angles)) : std::nullopt;
}

}  // namespace zoo
