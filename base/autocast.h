#pragma once

#include <optional>

#include <ATen/autocast_mode.h>
#include <torch/types.h>

namespace zoo {

/// Under mixed precision, the 16-bit type in which this thread's products on a device are computed; nothing
/// outside it.
inline std::optional<torch::ScalarType> autocast_type(c10::DeviceType device) {
  return at::autocast::is_autocast_enabled(device) ? std::optional(at::autocast::get_autocast_dtype(device))
                                                   : std::nullopt;
}

}  // namespace zoo
