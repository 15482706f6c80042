#include "kernels/gpu_gate.h"

#include <limits>
#include <string>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

#include "kernels/first_derivative.h"
#include "kernels/gpu/checked_program.h"
#include "kernels/gpu/kernel_calls.h"

namespace zoo::embedded {
extern const char gate_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

constexpr int64_t kPackBytes = 16;

std::string function_for(GateFunction function, torch::ScalarType type) {
  const auto name = name_of_type(type);
  switch (function) {
    case GateFunction::silu:
      return "silu_" + name;
    case GateFunction::gelu_exact:
      return "gelu_exact_" + name;
    case GateFunction::gelu_by_tanh:
      return "gelu_by_tanh_" + name;
    case GateFunction::relu:
      return "relu_" + name;
  }
  return "";
}

/// Where the numbers of a call are: gate and up are two tensors, or the halves of one.
struct GateRows {
  int width;         // of a row, in packs
  long long stride;  // from one row of gate and up to the next, in packs
  long long n;       // packs of the result

  GateRows(const torch::Tensor& gate, const torch::Tensor& up) {
    const int64_t size = kPackBytes / static_cast<int64_t>(gate.element_size());
    const int64_t f = up.defined() ? gate.size(-1) : gate.size(-1) / 2;
    width = static_cast<int>(f / size);
    stride = gate.size(-1) / size;
    n = gate.numel() / gate.size(-1) * width;
  }
};

/// The second half of the first row of `both`.
void* second_half(const torch::Tensor& both) {
  return static_cast<char*>(data_of(both)) + both.size(-1) / 2 * static_cast<int64_t>(both.element_size());
}

int64_t packs_of(const torch::Tensor& x) {
  return x.numel() * static_cast<int64_t>(x.element_size()) / kPackBytes;
}

struct GpuGate : torch::autograd::Function<GpuGate> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& any_gate,
                               const std::optional<torch::Tensor>& any_up, GateFunction function,
                               const KernelProgram* program) {
    const auto gate = any_gate.contiguous(), up = any_up ? any_up->contiguous() : torch::Tensor();
    GateRows rows(gate, up);
    auto sizes = gate.sizes().vec();
    if (!up.defined()) sizes.back() /= 2;
    const auto y = torch::empty(sizes, gate.options());
    void *gates = data_of(gate), *ups = up.defined() ? data_of(up) : second_half(gate), *out = data_of(y);
    program->launch(function_for(function, gate.scalar_type()) + "_forward", launch_size_for(rows.n),
                    {&gates, &ups, &out, &rows.n, &rows.width, &rows.stride});
    context->save_for_backward({gate, up});
    context->saved_data["function"] = static_cast<int64_t>(function);
    keep_program(*context, *program);
    return y;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("a gated activation");
    const auto saved = context->get_saved_variables();
    const auto &gate = saved[0], &up = saved[1];
    const auto gradient = gradients[0].contiguous();
    GateRows rows(gate, up);
    const auto gate_gradient = torch::empty_like(gate),
               up_gradient = up.defined() ? torch::empty_like(up) : torch::Tensor();
    void *out = data_of(gradient), *gates = data_of(gate),
         *ups = up.defined() ? data_of(up) : second_half(gate), *to_gates = data_of(gate_gradient),
         *to_ups = up.defined() ? data_of(up_gradient) : second_half(gate_gradient);
    const auto function = static_cast<GateFunction>(context->saved_data["function"].toInt());
    kept_program(*context).launch(
        function_for(function, gate.scalar_type()) + "_backward", launch_size_for(rows.n),
        {&out, &gates, &ups, &to_gates, &to_ups, &rows.n, &rows.width, &rows.stride});
    return {gate_gradient, up_gradient, {}, {}};
  }
};

struct GpuQuickGelu : torch::autograd::Function<GpuQuickGelu> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& any,
                               const KernelProgram* program) {
    const auto x = any.contiguous(), y = torch::empty_like(x);
    int64_t n = packs_of(x);
    void *in = data_of(x), *out = data_of(y);
    program->launch("quick_gelu_" + name_of_type(x.scalar_type()) + "_forward", launch_size_for(n),
                    {&in, &out, &n});
    context->save_for_backward({x});
    keep_program(*context, *program);
    return y;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("an activation");
    const auto x = context->get_saved_variables()[0], gradient = gradients[0].contiguous(),
               x_gradient = torch::empty_like(x);
    int64_t n = packs_of(x);
    void *out = data_of(gradient), *in = data_of(x), *to_x = data_of(x_gradient);
    kept_program(*context).launch("quick_gelu_" + name_of_type(x.scalar_type()) + "_backward",
                                  launch_size_for(n), {&out, &in, &to_x, &n});
    return {x_gradient, {}};
  }
};

torch::Tensor act_by_torch(GateFunction function, const torch::Tensor& x) {
  switch (function) {
    case GateFunction::silu:
      return torch::silu(x);
    case GateFunction::gelu_exact:
      return torch::gelu(x);
    case GateFunction::gelu_by_tanh:
      return torch::gelu(x, "tanh");
    case GateFunction::relu:
      return torch::relu(x);
  }
  return {};
}

torch::Tensor gated_by_torch(GateFunction function, const torch::Tensor& gate, const torch::Tensor& up) {
  return (act_by_torch(function, gate.to(torch::kFloat)) * up.to(torch::kFloat)).to(gate.scalar_type());
}

/// Whether output and gradient of two functions of x are the same.
template <class Ours, class Theirs>
bool agree(const torch::Tensor& x, const torch::Tensor& gradient, const Ours& ours, const Theirs& theirs) {
  const auto run = [&](const auto& function) {
    const auto leaf = x.clone().requires_grad_();
    const auto y = function(leaf);
    return Tensors{y.detach(), torch::autograd::grad({y}, {leaf}, {gradient})[0]};
  };
  const auto found = run(ours), wanted = run(theirs);
  const double tolerance = x.scalar_type() == torch::kFloat ? 1e-5 : 1e-2;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!is_near(found[i], wanted[i], tolerance)) return false;
  return true;
}

/// Each function and type: with two tensors, with one, and without a gate.
bool gate_agrees(const KernelProgram& program, c10::Device device) {
  constexpr int64_t f = 24;
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    const auto both = (wave({5, 2 * f}, 0.37, device) * 4).to(type);
    const auto gradient = wave({5, f}, 0.91, device).to(type);
    for (const auto function :
         {GateFunction::silu, GateFunction::gelu_exact, GateFunction::gelu_by_tanh, GateFunction::relu}) {
      const auto in_one = [&](const auto& x) { return gated_by(program, function, x, {}); };
      const auto in_two = [&](const auto& x) {
        return gated_by(program, function, x.narrow(1, 0, f), x.narrow(1, f, f));
      };
      const auto wanted = [&](const auto& x) {
        return gated_by_torch(function, x.narrow(1, 0, f), x.narrow(1, f, f));
      };
      if (!agree(both, gradient, in_one, wanted) || !agree(both, gradient, in_two, wanted)) return false;
    }
    const auto ours = [&](const auto& x) { return quick_gelu_by(program, x); };
    const auto theirs = [](const auto& x) {
      const auto whole = x.to(torch::kFloat);
      return (whole * torch::sigmoid(1.702 * whole)).to(x.scalar_type());
    };
    if (!agree(both.narrow(1, 0, f), gradient, ours, theirs)) return false;
  }
  return true;
}

/// Whether every row begins at a multiple of 16 bytes.
bool has_whole_packs(const torch::Tensor& x, int64_t width) {
  return width * static_cast<int64_t>(x.element_size()) % kPackBytes == 0 &&
         (!x.is_contiguous() || reinterpret_cast<uintptr_t>(x.const_data_ptr()) % kPackBytes == 0);
}

const KernelProgram* program_on(c10::Device device) {
  static CheckedProgram programs("activations", "gate", embedded::gate_cuda, gate_agrees);
  return programs.on(device);
}

}  // namespace

torch::Tensor gated_by(const KernelProgram& program, GateFunction function, const torch::Tensor& gate,
                       const torch::Tensor& up) {
  return GpuGate::apply(gate, up.defined() ? std::make_optional(up) : std::nullopt, function, &program);
}

torch::Tensor quick_gelu_by(const KernelProgram& program, const torch::Tensor& x) {
  return GpuQuickGelu::apply(x, &program);
}

std::optional<torch::Tensor> gpu_gated(GateFunction function, const torch::Tensor& gate,
                                       const torch::Tensor& up) {
  if (!has_kernels(gate.device()) || gate.numel() == 0 || !has_kernels(gate.scalar_type()))
    return std::nullopt;
  const bool suits = up.defined()
                         ? up.sizes() == gate.sizes() && up.scalar_type() == gate.scalar_type() &&
                               has_whole_packs(gate, gate.size(-1)) && has_whole_packs(up, up.size(-1))
                         : gate.size(-1) % 2 == 0 && has_whole_packs(gate, gate.size(-1) / 2);
  if (!suits) return std::nullopt;
  const auto* const program = program_on(gate.device());
  return program ? std::optional(gated_by(*program, function, gate, up)) : std::nullopt;
}

std::optional<torch::Tensor> gpu_quick_gelu(const torch::Tensor& x) {
  if (!has_kernels(x.device()) || x.dim() == 0 || x.numel() == 0 || !has_kernels(x.scalar_type()) ||
      !has_whole_packs(x, x.size(-1)))
    return std::nullopt;
  const auto* const program = program_on(x.device());
  return program ? std::optional(quick_gelu_by(*program, x)) : std::nullopt;
}

}  // namespace zoo
