#pragma once
// Directories of models that are not in a form that is read here.

#include <filesystem>
#include <optional>
#include <string>

namespace zoo {

/// What a directory without weights that are read holds instead, and what to do: "weights of TensorFlow …".
/// Nothing if it holds nothing that is known.
std::optional<std::string> other_kind_of(const std::filesystem::path& dir);

}  // namespace zoo
