#pragma once
// The names of tensors in an adapter of PEFT.

#include <string>
#include <string_view>

namespace zoo {

/// Stands before the names of the base.
inline constexpr std::string_view kAdapterPrefix = "base_model.model.";

/// The base's name of a tensor of an adapter that begins with kAdapterPrefix: without it, and without the
/// modules of PEFT that stand around those of the base.
inline std::string name_in_base(std::string name) {
  name.erase(0, kAdapterPrefix.size());
  for (const std::string_view part : {".base_layer", ".modules_to_save"}) {
    if (const auto at = name.find(std::string(part) + "."); at != name.npos) name.erase(at, part.size());
  }
  return name;
}

}  // namespace zoo
