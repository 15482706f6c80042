#pragma once
// What a file is, by its name, or by its beginning where something else stands in its place.

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace zoo {

/// Whether a name ends in one of these, which are small letters: ".png". Capitals in the name do not matter.
/// Everything that a suffix decides is decided by this function.
bool has_extension(const std::filesystem::path& name, std::initializer_list<std::string_view> extensions);

/// So many bytes from a file's beginning are enough for stray_content().
inline constexpr size_t kStrayHead = 512;

/// What a file with this beginning is, and what to do, if it is empty, a pointer of Git LFS, or a page of
/// HTML; nothing for other files.
std::optional<std::string> stray_content(std::string_view head);

}  // namespace zoo
