#include "kernels/gpu_norm.h"

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
#include "kernels/dropout.h"
#include "kernels/first_derivative.h"
#include "kernels/gpu/checked_program.h"
#include "kernels/gpu/kernel_calls.h"
#include "kernels/gpu_dropout.h"

namespace zoo::embedded {
extern const char norm_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

constexpr int64_t kMostBlocks = 512;  // of a backward pass, each with sums of its own for γ and β

/// `addend`: the type of y. Without y the functions are those for any y.
std::string function_for(NormCentre centre, torch::ScalarType in, torch::ScalarType addend,
                         torch::ScalarType out) {
  return std::string(centre == NormCentre::mean ? "layer_norm_" : "rms_norm_") + name_of_type(in) + "_" +
         name_of_type(addend) + "_" + name_of_type(out);
}

/// How elements of y are dropped.
struct AddendDropout {
  torch::Tensor seed;  // undefined: none is
  double p = 0;

  /// x as the kernels read it.
  torch::Tensor readable(const torch::Tensor& x) const {
    return seed.defined() ? in_packs(x) : x.contiguous();
  }
};

/// Of x, or of x + y.
struct GpuNorm : torch::autograd::Function<GpuNorm> {
  /// The norm, and the sum if there is a y.
  static Tensors forward(AutogradContext* context, const torch::Tensor& any_x,
                         const std::optional<torch::Tensor>& any_y, const torch::Tensor& gain,
                         const std::optional<torch::Tensor>& bias, const NormCall& call,
                         const AddendDropout& dropout) {
    const auto x = dropout.readable(any_x), y = any_y ? dropout.readable(*any_y) : torch::Tensor(),
               sum = any_y ? torch::empty_like(x) : torch::Tensor();
    int width = static_cast<int>(x.size(-1));
    const int64_t n_rows = x.numel() / width;
    const auto normed = torch::empty(x.sizes(), x.options().dtype(call.out)),
               scales = torch::empty({n_rows}, x.options().dtype(torch::kFloat)),
               means = call.centre == NormCentre::mean ? torch::empty_like(scales) : torch::Tensor();
    const auto y_type = any_y ? y.scalar_type() : call.out;
    void *in = data_of(x), *addends = data_of(y), *sums = data_of(sum), *gains = data_of(gain),
         *biases = bias ? data_of(*bias) : nullptr, *out = data_of(normed), *means_data = data_of(means),
         *scales_data = data_of(scales), *seed = data_of(dropout.seed);
    auto [threshold, kept_scale] = dropout_rule(dropout.p);
    auto eps = static_cast<float>(call.eps);
    call.program->launch(function_for(call.centre, x.scalar_type(), y_type, call.out) + "_forward",
                         {.blocks = n_rows, .threads = kBlockThreads},
                         {&in, &addends, &sums, &seed, &threshold, &kept_scale, &gains, &biases, &out,
                          &means_data, &scales_data, &width, &eps});
    context->save_for_backward({any_y ? sum : x, gain, means, scales, dropout.seed});
    context->saved_data["p"] = dropout.p;
    keep_program(*context, *call.program);
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["y_type"] = static_cast<int64_t>(y_type);
    context->saved_data["out_type"] = static_cast<int64_t>(call.out);
    context->set_materialize_grads(false);
    return any_y ? Tensors{normed, sum} : Tensors{normed};
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("a norm");
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &gain = saved[1], &means = saved[2], &scales = saved[3];
    const bool is_sum = gradients.size() == 2;
    // An output that nobody has read has no gradient.
    const auto out_type = static_cast<torch::ScalarType>(context->saved_data["out_type"].toInt());
    const auto gradient = gradients[0].defined() ? gradients[0].contiguous()
                                                 : torch::zeros(x.sizes(), x.options().dtype(out_type));
    const auto sum_gradient = is_sum && gradients[1].defined() ? gradients[1].contiguous() : torch::Tensor();
    const auto y_type = static_cast<torch::ScalarType>(context->saved_data["y_type"].toInt());
    const AddendDropout dropout = {.seed = saved[4], .p = context->saved_data["p"].toDouble()};
    // The gradients of x and y.
    const bool are_same = y_type == x.scalar_type() && !dropout.seed.defined();
    const auto x_gradient = torch::empty_like(x),
               y_gradient =
                   is_sum && !are_same ? torch::empty(x.sizes(), x.options().dtype(y_type)) : torch::Tensor();
    int width = static_cast<int>(x.size(-1)), n_rows = static_cast<int>(scales.numel());
    const int64_t n_blocks = std::min<int64_t>(n_rows, kMostBlocks);
    const auto sums = torch::zeros({2, n_blocks, width}, gain.options());
    const auto gain_sums = sums[0],
               bias_sums = context->saved_data["has_bias"].toBool() ? sums[1] : torch::Tensor();
    void *out = data_of(gradient), *of_sum = data_of(sum_gradient), *in = data_of(x), *gains = data_of(gain),
         *means_data = data_of(means), *scales_data = data_of(scales), *to_x = data_of(x_gradient),
         *to_y = data_of(y_gradient), *to_gain = data_of(gain_sums), *to_bias = data_of(bias_sums),
         *seed = data_of(dropout.seed);
    auto [threshold, kept_scale] = dropout_rule(dropout.p);
    const auto centre = means.defined() ? NormCentre::mean : NormCentre::zero;
    kept_program(*context).launch(function_for(centre, x.scalar_type(), y_type, out_type) + "_backward",
                                  {.blocks = n_blocks, .threads = kBlockThreads},
                                  {&out, &of_sum, &in, &gains, &means_data, &scales_data, &to_x, &to_y, &seed,
                                   &threshold, &kept_scale, &to_gain, &to_bias, &n_rows, &width});
    const auto totals = sums.sum(1);
    return {x_gradient,      is_sum && are_same ? x_gradient : y_gradient,
            totals[0],       bias_sums.defined() ? totals[1] : torch::Tensor(),
            torch::Tensor(), torch::Tensor()};
  }
};

Tensors norm_outputs(const NormCall& call, const torch::Tensor& x, const std::optional<torch::Tensor>& y,
                     const torch::Tensor& gain, const torch::Tensor& bias, const AddendDropout& dropout) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return GpuNorm::apply(x, y, gain, bias.defined() ? std::make_optional(bias) : std::nullopt, call, dropout);
}

/// The types and the width for which a norm is compared.
struct NormCase {
  NormCentre centre;
  torch::ScalarType in;
  std::optional<torch::ScalarType> y;  // nothing: the norm of x alone
  torch::ScalarType out;
  int64_t width;
  double p = 0;  // of dropout of y
};

constexpr int64_t kComparedRows = 3, kComparedSeed = 0x1234567887654321;

Tensors outputs_by_torch(const NormCase& of, const torch::Tensor& x, const torch::Tensor& y,
                         const torch::Tensor& gain, const torch::Tensor& bias) {
  const auto dropped = [&] {
    return y * dropout_factors(y.numel(), of.p, kComparedSeed).to(y.device()).view(y.sizes()).to(of.in);
  };
  const auto sum = !of.y ? x : of.p == 0 ? x + y : (x + dropped()).to(of.in);
  const auto whole = sum.to(torch::kFloat);
  const auto normed = of.centre == NormCentre::mean ? torch::layer_norm(whole, {of.width}, gain, bias, 1e-5)
                                                    : torch::rms_norm(whole, {of.width}, gain, 1e-5);
  return of.y ? Tensors{normed, sum} : Tensors{normed};
}

/// Whether outputs and gradients are those of LibTorch's operations.
bool agrees_on(const NormCase& of, const KernelProgram& program, c10::Device device) {
  const auto numbers = [&](double step, torch::ScalarType type) {
    return wave({kComparedRows, of.width}, step, device).to(type);
  };
  const auto run = [&](const auto& outputs_of) {
    Tensors leaves = {numbers(0.37, of.in) + 0.5, wave({of.width}, 0.53, device)};
    if (of.y) leaves.push_back(numbers(0.83, *of.y));
    if (of.centre == NormCentre::mean) leaves.push_back(wave({of.width}, 0.71, device));
    for (auto& leaf : leaves) leaf.requires_grad_();
    const auto outputs = outputs_of(leaves[0], of.y ? leaves[2] : torch::Tensor(), leaves[1],
                                    of.centre == NormCentre::mean ? leaves.back() : torch::Tensor());
    Tensors slopes = {numbers(0.91, of.out).to(outputs[0].scalar_type())};
    if (of.y) slopes.push_back(numbers(0.67, of.in));
    auto results = torch::autograd::grad(outputs, leaves, slopes);
    for (const auto& output : outputs) results.push_back(output.detach());
    return results;
  };
  AddendDropout dropout = {.seed = {}, .p = of.p};
  if (of.p > 0) dropout.seed = torch::full({1}, kComparedSeed, torch::dtype(torch::kLong).device(device));
  const auto found = run([&](const auto& x, const auto& y, const auto& gain, const auto& bias) {
    return norm_outputs({&program, of.centre, of.out, 1e-5}, x, of.y ? std::make_optional(y) : std::nullopt,
                        gain, bias, dropout);
  });
  const auto wanted = run([&](const auto& x, const auto& y, const auto& gain, const auto& bias) {
    return outputs_by_torch(of, x, y, gain, bias);
  });
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!is_near(found[i], wanted[i], 0.01)) return false;
  return true;
}

/// Both norms of types, at widths below and above a block's, and of a sum with dropout.
bool types_agree(torch::ScalarType in, std::optional<torch::ScalarType> y, torch::ScalarType out,
                 const KernelProgram& program, c10::Device device) {
  for (const auto centre : {NormCentre::mean, NormCentre::zero}) {
    for (const int64_t width : {5, 1000})
      if (!agrees_on({centre, in, y, out, width}, program, device)) return false;
    if (y && !agrees_on({centre, in, y, out, 1000, 0.3}, program, device)) return false;
  }
  return true;
}

bool norm_agrees(const KernelProgram& program, c10::Device device) {
  for (const auto rounded : {torch::kBFloat16, torch::kHalf}) {
    for (const auto in : {torch::kFloat, rounded}) {
      for (const auto y : {std::optional<torch::ScalarType>(), std::optional(rounded), std::optional(in)})
        if (!types_agree(in, y, rounded, program, device)) return false;
    }
    if (!types_agree(torch::kFloat, rounded, torch::kFloat, program, device)) return false;
  }
  return types_agree(torch::kFloat, torch::kFloat, torch::kFloat, program, device);
}

/// Nothing where the kernel does not serve.
std::optional<NormCall> call_for(const torch::Tensor& x, const torch::Tensor& gain, const torch::Tensor& bias,
                                 double eps, NormCentre centre) {
  const auto out = autocast_type(x.device().type());
  if (!has_kernels(x.device()) || x.numel() == 0 || !out) return std::nullopt;
  const auto in = x.scalar_type();
  const bool suits = (out == torch::kBFloat16 || out == torch::kHalf) && (in == torch::kFloat || in == out) &&
                     gain.scalar_type() == torch::kFloat &&
                     (!bias.defined() || bias.scalar_type() == torch::kFloat) &&
                     x.numel() / x.size(-1) <= std::numeric_limits<int>::max();
  if (!suits) return std::nullopt;
  static CheckedProgram programs("norms", "norm", embedded::norm_cuda, norm_agrees);
  const auto* const program = programs.on(x.device());
  return program ? std::optional(NormCall{program, centre, *out, eps}) : std::nullopt;
}

}  // namespace

torch::Tensor norm_by(const NormCall& call, const torch::Tensor& x, const torch::Tensor& gain,
                      const torch::Tensor& bias) {
  return norm_outputs(call, x, std::nullopt, gain, bias, {})[0];
}

NormedSum normed_sum_by(const NormCall& call, const PendingSum& pending, const torch::Tensor& gain,
                        const torch::Tensor& bias, const torch::Tensor& seed) {
  const auto outputs = norm_outputs(call, pending.x, pending.y, gain, bias, {.seed = seed, .p = pending.p});
  return {.sum = outputs[1], .normed = outputs[0]};
}

std::optional<torch::Tensor> gpu_norm(const torch::Tensor& x, const torch::Tensor& gain,
                                      const torch::Tensor& bias, double eps, NormCentre centre) {
  const auto call = call_for(x, gain, bias, eps, centre);
  return call ? std::optional(norm_by(*call, x, gain, bias)) : std::nullopt;
}

std::optional<NormedSum> gpu_normed_sum(const PendingSum& pending, const torch::Tensor& gain,
                                        const torch::Tensor& bias, double eps, NormCentre centre,
                                        NormReader reader) {
  const auto& [x, y, p] = pending;
  auto call = call_for(x, gain, bias, eps, centre);
  const bool suits = call && (p == 0 || x.size(-1) % kDroppedTogether == 0) && y.device() == x.device() &&
                     y.sizes() == x.sizes() &&
                     (y.scalar_type() == x.scalar_type() || y.scalar_type() == call->out);
  if (!suits) return std::nullopt;
  if (reader == NormReader::any) call->out = x.scalar_type();
  return normed_sum_by(*call, pending, gain, bias, p == 0 ? torch::Tensor() : drawn_seed(x.device()));
}

}  // namespace zoo
