#pragma once
// Where tensors live.

#include <string_view>

#include <c10/core/Device.h>

namespace zoo {

/// auto (the first GPU if there is one, else the CPU), cpu, cuda or cuda:N. Throws UsageError for another
/// word, SystemError for a GPU that is not there.
c10::Device parse_device(std::string_view text);

}  // namespace zoo
