#include "models/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/types.h>

namespace zoo {
namespace {

bool is_bf16_faster(c10::Device device, int64_t d_model) {
  if (device.is_cpu()) {
#if defined(__x86_64__) && defined(__GNUC__)
    constexpr int64_t narrowest = 384;
    return d_model >= narrowest && __builtin_cpu_supports("avx512bf16");  // CPUs with AMX have this, too
#else
    return false;
#endif
  }
  // This hook, which is about cuDNN's convolutions, is true from compute capability 8 on.
  return at::globalContext().hasCUDA() && at::detail::getCUDAHooks().supportsBFloat16ConvolutionWithCuDNNv8();
}

}  // namespace

Precision resolve(Precision precision, c10::Device device, int64_t d_model) {
  if (precision != Precision::automatic) return precision;
  return is_bf16_faster(device, d_model) ? Precision::bf16 : Precision::fp32;
}

std::optional<torch::ScalarType> rounded_type(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return torch::kBFloat16;
    case Precision::fp16:
      return torch::kHalf;
    case Precision::automatic:
    case Precision::fp32:
      return std::nullopt;
  }
  C10_THROW_ERROR(ValueError, "unknown Precision");
}

PrecisionScope::PrecisionScope(Precision precision, c10::DeviceType device)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      had_cache_(at::autocast::is_autocast_cache_enabled()),
      former_type_(at::autocast::get_autocast_dtype(device)) {
  const auto type = rounded_type(precision);
  if (!type) return;
  at::autocast::set_autocast_enabled(device, true);
  at::autocast::set_autocast_dtype(device, *type);
  // All threads share LibTorch's cache of rounded weights. The cached tensors have an autograd history, which
  // would connect the separate graphs of the threads.
  at::autocast::set_autocast_cache_enabled(false);
}

PrecisionScope::~PrecisionScope() {
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, former_type_);
  at::autocast::set_autocast_cache_enabled(had_cache_);
}

LossScale LossScale::for_precision(Precision precision) {
  return {.value = precision == Precision::fp16 ? initial : 1.0};
}

void LossScale::update(Overflow overflow) {
  if (overflow == Overflow::yes) {
    value *= backoff;
    good_steps = 0;
    ++skipped;
  } else if (++good_steps == growth_interval) {
    value *= growth;
    good_steps = 0;
  }
}

}  // namespace zoo
