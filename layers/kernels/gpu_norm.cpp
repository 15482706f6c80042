#include "layers/kernels/gpu_norm.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/autocast.h"
#include "layers/kernels/first_derivative.h"
#include "layers/kernels/gpu/checked_program.h"
#include "layers/kernels/gpu/kernel_calls.h"

namespace zoo::embedded {
extern const char norm_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

constexpr int64_t kMostBlocks = 512;  // of a backward pass, each with sums of its own for γ and β

std::string function_for(NormCentre centre, torch::ScalarType in, torch::ScalarType out) {
  return std::string(centre == NormCentre::mean ? "layer_norm_" : "rms_norm_") + name_of_type(in) + "_" +
         name_of_type(out);
}

struct GpuNorm : torch::autograd::Function<GpuNorm> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& any, const torch::Tensor& gain,
                               const std::optional<torch::Tensor>& bias, const NormCall& call) {
    const auto x = any.contiguous();
    int width = static_cast<int>(x.size(-1));
    const int64_t n_rows = x.numel() / width;
    const auto y = torch::empty(x.sizes(), x.options().dtype(call.out)),
               scales = torch::empty({n_rows}, x.options().dtype(torch::kFloat)),
               means = call.centre == NormCentre::mean ? torch::empty_like(scales) : torch::Tensor();
    void *in = data_of(x), *gains = data_of(gain), *biases = bias ? data_of(*bias) : nullptr,
         *out = data_of(y), *means_data = data_of(means), *scales_data = data_of(scales);
    auto eps = static_cast<float>(call.eps);
    call.program->launch(function_for(call.centre, x.scalar_type(), call.out) + "_forward",
                         {.blocks = n_rows, .threads = kBlockThreads},
                         {&in, &gains, &biases, &out, &means_data, &scales_data, &width, &eps});
    context->save_for_backward({x, gain, means, scales});
    keep_program(*context, *call.program);
    context->saved_data["has_bias"] = bias.has_value();
    return y;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("a norm");
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &gain = saved[1], &means = saved[2], &scales = saved[3];
    const auto gradient = gradients[0].contiguous();
    int width = static_cast<int>(x.size(-1)), n_rows = static_cast<int>(scales.numel());
    const int64_t n_blocks = std::min<int64_t>(n_rows, kMostBlocks);
    const auto x_gradient = torch::empty_like(x);
    const auto sums = torch::zeros({2, n_blocks, width}, gain.options());
    const auto gain_sums = sums[0],
               bias_sums = context->saved_data["has_bias"].toBool() ? sums[1] : torch::Tensor();
    void *out = data_of(gradient), *in = data_of(x), *gains = data_of(gain), *means_data = data_of(means),
         *scales_data = data_of(scales), *to_x = data_of(x_gradient), *to_gain = data_of(gain_sums),
         *to_bias = data_of(bias_sums);
    const auto centre = means.defined() ? NormCentre::mean : NormCentre::zero;
    kept_program(*context).launch(
        function_for(centre, x.scalar_type(), gradient.scalar_type()) + "_backward",
        {.blocks = n_blocks, .threads = kBlockThreads},
        {&out, &in, &gains, &means_data, &scales_data, &to_x, &to_gain, &to_bias, &n_rows, &width});
    const auto totals = sums.sum(1);
    return {x_gradient, totals[0], bias_sums.defined() ? totals[1] : torch::Tensor(), {}};
  }
};

/// Output and gradients of both norms, in each pair of types and at widths below and above a block's.
bool norm_agrees(const KernelProgram& program, c10::Device device) {
  const auto numbers = [&](at::IntArrayRef sizes, double step) { return wave(sizes, step, device); };
  for (const auto out : {torch::kBFloat16, torch::kHalf}) {
    for (const auto in : {torch::kFloat, out}) {
      for (const auto centre : {NormCentre::mean, NormCentre::zero}) {
        for (const int64_t width : {5, 1000}) {
          const auto values = (numbers({3, width}, 0.37) + 0.5).to(in);
          const auto gradient = numbers({3, width}, 0.91).to(out);
          const auto run = [&](const auto& norm) {
            const Tensors leaves = {values.clone().requires_grad_(), numbers({width}, 0.53).requires_grad_(),
                                    numbers({width}, 0.71).requires_grad_()};
            const auto y = norm(leaves[0], leaves[1], leaves[2]);
            auto results = torch::autograd::grad({y}, {leaves[0], leaves[1]}, {gradient.to(y.scalar_type())});
            results.push_back(y.detach());
            return results;
          };
          const auto found = run([&](const auto& x, const auto& gain, const auto& bias) {
            return norm_by({&program, centre, out, 1e-5}, x, gain,
                           centre == NormCentre::mean ? bias : torch::Tensor());
          });
          const auto wanted = run([&](const auto& x, const auto& gain, const auto& bias) {
            const auto whole = x.to(torch::kFloat);
            return centre == NormCentre::mean ? torch::layer_norm(whole, {width}, gain, bias, 1e-5)
                                              : torch::rms_norm(whole, {width}, gain, 1e-5);
          });
          for (size_t i = 0; i < wanted.size(); ++i)
            if (!is_near(found[i], wanted[i], 0.01)) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

torch::Tensor norm_by(const NormCall& call, const torch::Tensor& x, const torch::Tensor& gain,
                      const torch::Tensor& bias) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return GpuNorm::apply(x, gain, bias.defined() ? std::make_optional(bias) : std::nullopt, call);
}

std::optional<torch::Tensor> gpu_norm(const torch::Tensor& x, const torch::Tensor& gain,
                                      const torch::Tensor& bias, double eps, NormCentre centre) {
  const auto out = autocast_type(x.device().type());
  if (!has_kernels(x.device().type()) || x.numel() == 0 || !out) return std::nullopt;
  const auto in = x.scalar_type();
  const bool suits = (out == torch::kBFloat16 || out == torch::kHalf) && (in == torch::kFloat || in == out) &&
                     gain.scalar_type() == torch::kFloat &&
                     (!bias.defined() || bias.scalar_type() == torch::kFloat) &&
                     x.numel() / x.size(-1) <= std::numeric_limits<int>::max();
  if (!suits) return std::nullopt;
  static CheckedProgram programs("norms", "norm", embedded::norm_cuda, norm_agrees);
  const auto* const program = programs.on(x.device());
  return program ? std::optional(norm_by({program, centre, *out, eps}, x, gain, bias)) : std::nullopt;
}

}  // namespace zoo
