#include "base/device.h"

#include <algorithm>
#include <charconv>

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include "base/error.h"

namespace zoo {

c10::Device parse_device(std::string_view text, int64_t gpu) {
  if (text == "cpu") return torch::kCPU;
  const int64_t n_gpus{torch::cuda::device_count()};
  if (text == "auto" && n_gpus == 0) return torch::kCPU;

  int64_t index = gpu;
  bool known = text == "cuda" || text == "auto";
  if (text.starts_with("cuda:")) {
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data() + 5, end, index);
    known = result.ec == std::errc() && result.ptr == end && index >= 0;
  }
  if (!known) throw UsageError(fmt::format("unknown device '{}': use auto, cpu, cuda or cuda:N", text));
  if (index >= n_gpus) {
    throw UsageError(n_gpus == 0
                         ? fmt::format("no device '{}': LibTorch sees no GPU here; use cpu", text)
                         : fmt::format("no device '{}': there are {} GPUs, from cuda:0 on", text, n_gpus));
  }
  return {torch::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

void synchronize(c10::Device device) {
  if (!device.is_cpu())
    c10::impl::VirtualGuardImpl(device.type())
        .synchronizeDevice(std::max<c10::DeviceIndex>(device.index(), 0));
}

void set_float_products(FloatProducts products) {
  const auto precision =
      products == FloatProducts::tf32 ? at::Float32Precision::TF32 : at::Float32Precision::IEEE;
  for (const auto op : {at::Float32Op::CONV, at::Float32Op::RNN, at::Float32Op::MATMUL})
    at::globalContext().setFloat32Precision(at::Float32Backend::CUDA, op, precision);
}

}  // namespace zoo
