#include "layers/kernels/gpu/cross_entropy_kernel.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include <c10/util/Exception.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/kernels/gpu/checked_kernels.h"
#include "layers/kernels/gpu/gpu_program.h"

namespace zoo::embedded {
extern const char cross_entropy_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

constexpr int64_t kThreadsOfARow = 256;  // of a block, as the text has it

std::string function_for(torch::ScalarType type) {
  return type == torch::kFloat  ? "cross_entropy_float"
         : type == torch::kHalf ? "cross_entropy_half"
                                : "cross_entropy_bf16";
}

CrossEntropyKernel kernel_of(const std::shared_ptr<const GpuProgram>& program) {
  return [program](const torch::Tensor& logits, const torch::Tensor& targets, double smoothing,
                   double weight) {
    TORCH_CHECK(logits.is_contiguous() && logits.size(1) <= std::numeric_limits<int>::max(),
                "the kernel needs logits without gaps, not ", logits.sizes());
    const auto indices = targets.contiguous();
    auto losses = torch::empty({logits.size(0)}, logits.options().dtype(torch::kFloat));
    void *rows = logits.mutable_data_ptr(), *sums = losses.mutable_data_ptr();
    const void* classes = indices.const_data_ptr();
    int n_classes = static_cast<int>(logits.size(1));
    auto share = static_cast<float>(smoothing), factor = static_cast<float>(weight);
    program->launch(function_for(logits.scalar_type()), {.blocks = logits.size(0), .threads = kThreadsOfARow},
                    {&rows, const_cast<void**>(&classes), &sums, &n_classes, &share, &factor});
    logits.unsafeGetTensorImpl()->bump_version();
    return losses;
  };
}

/// Whether the kernel gives what LibTorch's operations give: rows that begin at any address, with and without
/// smoothing, in every type.
bool agrees(const CrossEntropyKernel& kernel, const CrossEntropyKernel& reference, c10::Device device) {
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const int64_t n_classes : {3, 1001, 8192}) {
      for (const double smoothing : {0.0, 0.1}) {
        const auto options = torch::dtype(torch::kFloat).device(device);
        const auto values =
            (torch::arange(5 * n_classes, options).mul_(0.37).sin_() * 9).view({5, n_classes}).to(type);
        const auto targets = torch::arange(5, torch::dtype(torch::kLong).device(device)) * 7 % n_classes;
        const auto ours = values.clone(), theirs = values.clone();
        const auto found = kernel(ours, targets, smoothing, 0.5).sum(),
                   wanted = reference(theirs, targets, smoothing, 0.5);
        const auto apart =
            (ours.to(torch::kFloat) - theirs.to(torch::kFloat)).norm() / theirs.to(torch::kFloat).norm();
        const double tolerance = type == torch::kFloat ? 1e-5 : 1e-2;
        // A comparison with NaN is false.
        if (!((found - wanted).abs().item<double>() <= 1e-4 * std::abs(wanted.item<double>()) + 1e-4) ||
            !(apart.item<double>() <= tolerance))
          return false;
      }
    }
  }
  return true;
}

}  // namespace

const CrossEntropyKernel* cross_entropy_kernel(c10::Device device, const CrossEntropyKernel& reference) {
  static CheckedKernels<CrossEntropyKernel> kernels(
      "cross-entropy",
      [](c10::Device where) {
        return std::make_unique<const CrossEntropyKernel>(kernel_of(
            std::make_shared<const GpuProgram>("cross_entropy", embedded::cross_entropy_cuda, where)));
      },
      [reference](const CrossEntropyKernel& kernel, c10::Device where) {
        const torch::NoGradGuard no_grad;
        return agrees(kernel, reference, where);
      });
  return kernels.on(device);
}

}  // namespace zoo
