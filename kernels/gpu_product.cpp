#include "kernels/gpu_product.h"

#include <algorithm>
#include <string>

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/gpu/checked_program.h"
#include "kernels/gpu/kernel_calls.h"

namespace zoo::embedded {
extern const char product_call_cuda[];
extern const char product_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

constexpr int64_t kProductPackBytes = 16, kProductGroup = 32;
constexpr int64_t kMostProductBlocks = 256;  // more than a card has room for at once
constexpr size_t kMostMatrices = std::size(ProductCall{}.matrices);

bool is_whole(const torch::Tensor& numbers) { return numbers.scalar_type() == torch::kInt8; }

/// The function for so many rows.
std::string product_function(const ProductPlan& plan, int64_t n_rows) {
  const auto& numbers = plan.matrices.front().numbers;
  return "product_" + name_of_type(plan.type) + "_" +
         (is_whole(numbers) ? "whole" : name_of_type(numbers.scalar_type())) +
         (n_rows == 1   ? "_1"
          : n_rows <= 4 ? "_4"
                        : "_8");
}

const float* floats_of(const torch::Tensor& tensor) { return static_cast<const float*>(data_of(tensor)); }

int is_float(const torch::Tensor& tensor) { return tensor.scalar_type() == torch::kFloat ? 1 : 0; }

bool is_float_or(const torch::Tensor& tensor, torch::ScalarType type) {
  return tensor.scalar_type() == torch::kFloat || tensor.scalar_type() == type;
}

bool product_serves(const torch::Tensor& x, const ProductPlan& plan) {
  if (!has_kernels(x.device()) || x.dim() == 0 || x.numel() == 0 || x.numel() > kMostProductRows * x.size(-1))
    return false;
  if (torch::GradMode::is_enabled() && x.requires_grad()) return false;
  return is_float_or(x, plan.type) && std::ranges::all_of(plan.matrices, [&](const StoredMatrix& matrix) {
           return has_gpu_product(matrix, plan.type) &&
                  !(torch::GradMode::is_enabled() && matrix.numbers.requires_grad());
         });
}

/// The same by LibTorch's operations, in float between its roundings.
torch::Tensor product_by_torch(const torch::Tensor& x, const ProductPlan& plan) {
  const auto rounded = [&](const torch::Tensor& y) { return y.to(plan.type).to(torch::kFloat); };
  auto inputs = x.to(torch::kFloat);
  if (plan.norm != ProductNorm::none) {
    if (plan.norm == ProductNorm::mean) inputs = inputs - inputs.mean(-1, /*keepdim=*/true);
    inputs = inputs * (inputs.square().mean(-1, /*keepdim=*/true) + plan.eps).rsqrt() *
             (plan.gain + plan.gain_offset);
    if (plan.norm_bias.defined()) inputs = inputs + plan.norm_bias;
  }
  inputs = rounded(inputs);
  if (is_whole(plan.matrices.front().numbers)) inputs = rounded_by_groups(inputs);
  std::vector<torch::Tensor> outputs;
  for (const auto& [numbers, scales, bias] : plan.matrices) {
    auto matrix = numbers.to(torch::kFloat);
    if (scales.defined()) matrix = matrix * scales.repeat_interleave(matrix.size(1) / scales.size(1), 1);
    const auto y = inputs.matmul(matrix.t());
    outputs.push_back(bias.defined() ? y + bias.to(torch::kFloat) : y);
  }
  auto y = rounded(torch::cat(outputs, -1));
  const auto halves = plan.gate == ProductGate::none ? std::vector{y} : y.chunk(2, -1);
  switch (plan.act) {
    case ProductAct::none:
      y = halves[0];
      break;
    case ProductAct::relu:
      y = torch::relu(halves[0]);
      break;
    case ProductAct::gelu_exact:
      y = torch::gelu(halves[0]);
      break;
    case ProductAct::gelu_by_tanh:
      y = torch::gelu(halves[0], "tanh");
      break;
    case ProductAct::silu:
      y = torch::silu(halves[0]);
      break;
    case ProductAct::quick_gelu:
      y = halves[0] * torch::sigmoid(1.702 * halves[0]);
      break;
  }
  if (plan.gate != ProductGate::none) y = y * halves[1];
  if (!plan.residual.defined()) return y.to(plan.type);
  return (y + plan.residual.to(torch::kFloat)).to(plan.residual.scalar_type());
}

/// A matrix of any numbers in the format: floats, 16 bits, or whole numbers with the given number of scales a
/// row.
StoredMatrix any_matrix(int64_t n_rows, int64_t width, torch::ScalarType stored, int64_t n_scales,
                        c10::Device device) {
  const auto values = wave({n_rows, width}, 0.37 + 0.01 * static_cast<double>(n_rows), device);
  const auto bias = wave({n_rows}, 0.71, device);
  if (stored != torch::kInt8) return {values.to(stored), {}, bias.to(stored)};
  return {(values * 100).round().to(torch::kInt8), (wave({n_rows, n_scales}, 0.53, device) + 1.5) / 400,
          bias};
}

/// Every function, with a norm and without, with a gate, with a residual, for several matrices and for one.
bool product_agrees(const KernelProgram& program, c10::Device device) {
  constexpr int64_t width = 96, n_outputs = 20;
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const int64_t n_scales : {int64_t{0}, int64_t{1}, width / kProductGroup}) {
      for (const int64_t n_rows : {1, 3, 8}) {
        const auto stored = n_scales == 0 ? type : torch::kInt8;
        const auto x = wave({n_rows, width}, 0.9, device);
        const auto residual = wave({n_rows, n_outputs}, 0.31, device);
        const auto one = any_matrix(n_outputs, width, stored, n_scales, device),
                   other = any_matrix(n_outputs, width, stored, n_scales, device),
                   both = any_matrix(2 * n_outputs, width, stored, n_scales, device);
        const auto gain = wave({width}, 0.43, device), bias = wave({width}, 0.57, device);
        const std::vector<ProductPlan> plans = {
            {.matrices = {one}, .type = type, .act = ProductAct::gelu_by_tanh},
            {.matrices = {one, other, one},
             .type = type,
             .norm = ProductNorm::mean,
             .gain = gain,
             .norm_bias = bias,
             .eps = 1e-5},
            {.matrices = {both},
             .type = type,
             .norm = ProductNorm::zero,
             .gain = gain,
             .gain_offset = 1,
             .eps = 1e-6,
             .act = ProductAct::silu,
             .gate = ProductGate::first_is_gate},
            {.matrices = {one, other},
             .type = type,
             .act = ProductAct::gelu_exact,
             .gate = ProductGate::first_is_gate,
             .residual = residual},
            {.matrices = {one}, .type = type, .residual = residual.to(type)}};
        for (const auto& plan : plans) {
          const double tolerance = type == torch::kFloat ? 1e-4 : 0.02;
          for (const auto& inputs : {x, x.to(type)}) {
            if (!is_near(product_by(program, inputs, plan), product_by_torch(inputs, plan), tolerance))
              return false;
          }
        }
      }
    }
  }
  return true;
}

}  // namespace

torch::Tensor rounded_by_groups(const torch::Tensor& x) {
  const int64_t n = x.size(-1), missing = (kProductGroup - n % kProductGroup) % kProductGroup;
  const auto groups = torch::constant_pad_nd(x, {0, missing}).unflatten(-1, {-1, kProductGroup});
  const auto range = groups.abs().amax(-1, /*keepdim=*/true);
  constexpr double least = 1e-30;  // smaller numbers are zero
  const auto inverse = torch::where(range >= least, 127 / range, torch::zeros_like(range));
  return ((groups * inverse).round() * (range / 127)).flatten(-2).narrow(-1, 0, n);
}

bool has_gpu_product(const StoredMatrix& matrix, torch::ScalarType type) {
  const auto& [numbers, scales, bias] = matrix;
  if (!numbers.is_contiguous() || !has_kernels(type)) return false;
  const int64_t width = numbers.size(1);
  const bool fits = is_whole(numbers)
                        ? scales.defined() && scales.is_contiguous() && width % kProductGroup == 0
                        : numbers.scalar_type() == type;
  return fits && width * static_cast<int64_t>(numbers.element_size()) % kProductPackBytes == 0 &&
         (!bias.defined() || (is_float_or(bias, type) && bias.is_contiguous()));
}

torch::Tensor product_by(const KernelProgram& program, const torch::Tensor& any, const ProductPlan& plan) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const torch::NoGradGuard no_grad;
  TORCH_CHECK(!plan.matrices.empty() && plan.matrices.size() <= kMostMatrices,
              "a product has one to three matrices");
  const auto x = any.contiguous(),
             residual = plan.residual.defined() ? plan.residual.contiguous() : plan.residual;
  ProductCall call;
  int n_outputs = 0;
  for (size_t i = 0; i < plan.matrices.size(); ++i) {
    const auto& [numbers, scales, bias] = plan.matrices[i];
    call.matrices[i] = {.numbers = data_of(numbers),
                        .scales = floats_of(scales),
                        .bias = data_of(bias),
                        .n_outputs = static_cast<int>(numbers.size(0))};
    if (scales.defined() && scales.size(1) > 1) call.scales_are_of_groups = 1;
    if (bias.defined()) call.biases_are_float = is_float(bias);
    n_outputs += static_cast<int>(numbers.size(0));
  }
  if (plan.gate != ProductGate::none) n_outputs /= 2;
  auto sizes = x.sizes().vec();
  sizes.back() = n_outputs;
  const auto y =
      torch::empty(sizes, x.options().dtype(residual.defined() ? residual.scalar_type() : plan.type));
  call.inputs = data_of(x);
  call.gain = floats_of(plan.gain);
  call.norm_bias = floats_of(plan.norm_bias);
  call.residual = data_of(residual);
  call.outputs = data_of(y);
  call.eps = static_cast<float>(plan.eps);
  call.gain_offset = static_cast<float>(plan.gain_offset);
  call.width = static_cast<int>(x.size(-1));
  call.n_rows = static_cast<int>(x.numel() / x.size(-1));
  call.n_outputs = n_outputs;
  call.inputs_are_float = is_float(x);
  call.outputs_are_float = is_float(y);
  call.gated = plan.gate == ProductGate::none ? 0 : 1;
  call.norm = plan.norm;
  call.act = plan.act;
  constexpr int64_t warps = kBlockThreads / kWarpThreads;
  program.launch(
      product_function(plan, call.n_rows),
      {.blocks = std::min((n_outputs + warps - 1) / warps, kMostProductBlocks), .threads = kBlockThreads},
      {&call});
  return y;
}

std::optional<torch::Tensor> gpu_product(const torch::Tensor& x, const ProductPlan& plan) {
  if (!product_serves(x, plan)) return std::nullopt;
  static CheckedProgram programs("products of few rows", "product",
                                 std::string(embedded::product_call_cuda) + embedded::product_cuda,
                                 product_agrees);
  const auto* const program = programs.on(x.device());
  return program ? std::optional(product_by(*program, x, plan)) : std::nullopt;
}

}  // namespace zoo
