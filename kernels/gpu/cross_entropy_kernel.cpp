#include "kernels/gpu/cross_entropy_kernel.h"

#include <cmath>
#include <limits>
#include <string>

#include <c10/util/Exception.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/gpu/checked_program.h"
#include "kernels/gpu/kernel_calls.h"

namespace zoo::embedded {
extern const char cross_entropy_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

/// Whether the kernel gives what LibTorch's operations give: rows that begin at any address, with and without
/// smoothing, in every type.
bool cross_entropy_agrees(const KernelProgram& program, const CrossEntropyInPlace& reference,
                          c10::Device device) {
  const torch::NoGradGuard no_grad;
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const int64_t n_classes : {3, 1001, 8192}) {
      for (const double smoothing : {0.0, 0.1}) {
        const auto options = torch::dtype(torch::kFloat).device(device);
        const auto values =
            (torch::arange(5 * n_classes, options).mul_(0.37).sin_() * 9).view({5, n_classes}).to(type);
        const auto targets = torch::arange(5, torch::dtype(torch::kLong).device(device)) * 7 % n_classes;
        const auto ours = values.clone(), theirs = values.clone();
        const auto found = cross_entropy_by(program, ours, targets, smoothing, 0.5).sum(),
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

torch::Tensor cross_entropy_by(const KernelProgram& program, const torch::Tensor& logits,
                               const torch::Tensor& targets, double smoothing, double weight) {
  TORCH_CHECK(logits.is_contiguous() && logits.size(1) <= std::numeric_limits<int>::max(),
              "the kernel needs logits without gaps, not ", logits.sizes());
  const auto indices = targets.contiguous();
  const auto losses = torch::empty({logits.size(0)}, logits.options().dtype(torch::kFloat));
  void *rows = data_of(logits), *classes = data_of(indices), *sums = data_of(losses);
  int n_classes = static_cast<int>(logits.size(1));
  auto share = static_cast<float>(smoothing), factor = static_cast<float>(weight);
  program.launch("cross_entropy_" + name_of_type(logits.scalar_type()),
                 {.blocks = logits.size(0), .threads = kBlockThreads},
                 {&rows, &classes, &sums, &n_classes, &share, &factor});
  logits.unsafeGetTensorImpl()->bump_version();
  return losses;
}

const KernelProgram* cross_entropy_program(c10::Device device, const CrossEntropyInPlace& reference) {
  static CheckedProgram programs("cross-entropy", "cross_entropy", embedded::cross_entropy_cuda,
                                 [reference](const KernelProgram& program, c10::Device where) {
                                   return cross_entropy_agrees(program, reference, where);
                                 });
  return programs.on(device);
}

}  // namespace zoo
