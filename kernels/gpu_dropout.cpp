#include "kernels/gpu_dropout.h"

#include <string>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

#include "kernels/dropout.h"
#include "kernels/first_derivative.h"
#include "kernels/gpu/checked_program.h"
#include "kernels/gpu/kernel_calls.h"

namespace zoo::embedded {
extern const char dropout_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

std::string function_for(torch::ScalarType x, torch::ScalarType y) {
  return "add_dropout_" + name_of_type(x) + "_" + name_of_type(y);
}

struct GpuAddDropout : torch::autograd::Function<GpuAddDropout> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& any_x,
                               const torch::Tensor& any_y, double p, const torch::Tensor& seed,
                               const KernelProgram* program) {
    const auto x = in_packs(any_x), y = in_packs(any_y), sum = torch::empty_like(x);
    auto [threshold, scale] = dropout_rule(p);
    int64_t n = x.numel() / kDroppedTogether;
    void *in = data_of(x), *addends = data_of(y), *out = data_of(sum), *seeds = data_of(seed);
    program->launch(function_for(x.scalar_type(), y.scalar_type()) + "_forward", launch_size_for(n),
                    {&in, &addends, &out, &seeds, &threshold, &scale, &n});
    context->save_for_backward({seed});
    context->saved_data["p"] = p;
    context->saved_data["y_type"] = static_cast<int64_t>(y.scalar_type());
    keep_program(*context, *program);
    return sum;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("dropout");
    const auto seed = context->get_saved_variables()[0], gradient = in_packs(gradients[0]);
    const auto y_type = static_cast<torch::ScalarType>(context->saved_data["y_type"].toInt());
    const auto y_gradient = torch::empty(gradient.sizes(), gradient.options().dtype(y_type));
    auto [threshold, scale] = dropout_rule(context->saved_data["p"].toDouble());
    int64_t n = gradient.numel() / kDroppedTogether;
    void *out = data_of(gradient), *to_y = data_of(y_gradient), *seeds = data_of(seed);
    kept_program(*context).launch(function_for(gradient.scalar_type(), y_type) + "_backward",
                                  launch_size_for(n), {&out, &to_y, &seeds, &threshold, &scale, &n});
    return {gradient, y_gradient, {}, {}, {}};
  }
};

/// Sums and gradients of y, whose elements must be those that the processor drops.
bool dropout_agrees(const KernelProgram& program, c10::Device device) {
  constexpr double p = 0.3;
  constexpr int64_t n = 5000;
  constexpr int64_t number = 0x1234567887654321;
  const auto seed = torch::full({1}, number, torch::dtype(torch::kLong).device(device));
  const auto factors = dropout_factors(n, p, number).to(device);
  for (const auto x_type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const auto y_type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
      if (x_type != torch::kFloat && x_type != y_type) continue;
      const auto x = wave({n}, 0.37, device).to(x_type), gradient = wave({n}, 0.53, device).to(x_type);
      const auto y = (wave({n}, 0.91, device) * 2).to(y_type).requires_grad_();
      const auto found = add_dropout_by(program, x, y, p, seed);
      const auto slopes = torch::autograd::grad({found}, {y}, {gradient})[0];
      const double tolerance = x_type == torch::kFloat && y_type == torch::kFloat ? 1e-5 : 1e-2;
      if (!is_near(found, x.to(torch::kFloat) + y.to(torch::kFloat) * factors, tolerance) ||
          !is_near(slopes, gradient.to(torch::kFloat) * factors, tolerance))
        return false;
    }
  }
  return true;
}

}  // namespace

torch::Tensor dropout_factors(int64_t n, double p, uint64_t seed) {
  constexpr int64_t counters = 16;  // whose words the processor's kernel draws together, word by word
  constexpr int64_t block = counters * kDroppedTogether;
  const torch::NoGradGuard no_grad;
  const auto blocks = dropout(torch::ones({1, (n + block - 1) / block * block}), p, RowSeed{.seed = seed});
  return blocks.view({-1, 2, 4, counters}).permute({0, 3, 2, 1}).reshape(-1).narrow(0, 0, n);
}

torch::Tensor add_dropout_by(const KernelProgram& program, const torch::Tensor& x, const torch::Tensor& y,
                             double p, const torch::Tensor& seed) {
  return GpuAddDropout::apply(x, y, p, seed, &program);
}

std::optional<torch::Tensor> gpu_add_dropout(const torch::Tensor& x, const torch::Tensor& y, double p) {
  const bool suits = has_kernels(x.device()) && y.device() == x.device() && x.sizes() == y.sizes() &&
                     x.numel() > 0 && x.numel() % kDroppedTogether == 0 && has_kernels(x.scalar_type()) &&
                     has_kernels(y.scalar_type()) &&
                     (x.scalar_type() == torch::kFloat || x.scalar_type() == y.scalar_type());
  if (!suits) return std::nullopt;
  static CheckedProgram programs("dropout", "dropout", embedded::dropout_cuda, dropout_agrees);
  const auto* const program = programs.on(x.device());
  if (program == nullptr) return std::nullopt;
  return add_dropout_by(*program, x, y, p, drawn_seed(x.device()));
}

}  // namespace zoo
