#pragma once
// Where tensors live.

#include <cstdint>
#include <string_view>

#include <c10/core/Device.h>

namespace zoo {

/// auto (a GPU if there is one, else the CPU), cpu, cuda or cuda:N; `gpu` is which of them where N is not
/// said. Throws UsageError for another word, SystemError for a GPU that is not there.
c10::Device parse_device(std::string_view text, int64_t gpu = 0);

/// Waits until `device` has done all that it was told to.
void synchronize(c10::Device device);

}  // namespace zoo
