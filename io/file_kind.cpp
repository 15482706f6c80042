#include "io/file_kind.h"

#include <algorithm>

#include "base/text.h"

namespace zoo {
bool has_extension(const std::filesystem::path& name, std::initializer_list<std::string_view> extensions) {
  return std::ranges::find(extensions, ascii_lower(name.extension().string())) != extensions.end();
}

std::optional<std::string> stray_content(std::string_view head) {
  if (head.empty()) return "the file is empty: download it again";
  if (head.starts_with("version https://git-lfs"))
    return "only a pointer of Git LFS, not the file itself: run `git lfs pull` in its directory, or download "
           "the file";
  auto text = without_byte_order_mark(head.substr(0, kStrayHead));
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  constexpr size_t length_of_start = 14;
  const auto start = ascii_lower(text.substr(0, length_of_start));
  if (start.starts_with("<!doctype html") || start.starts_with("<html"))
    return "a page of HTML in place of the file: take the address under `resolve`, not `blob`, or log in, "
           "and "
           "download it again";
  return std::nullopt;
}

}  // namespace zoo
