#pragma once
// Text files that are checked: UTF-8 without a byte order mark, with "\n" line ends. Whole, and in lines.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// The most that is read of a list of inputs that a user gives: 1 GiB.
inline constexpr int64_t kMostInputBytes = int64_t{1} << 30;

/// Checks that a text is UTF-8. Removes a byte order mark; makes line ends "\n". Throws
/// DataError (with line and byte), which calls the text `name`.
std::string checked_text(std::string text, std::string_view name);
/// The same for a file, which must not be blank. `look` is called with its bytes as they are.
std::string read_text(const std::filesystem::path& path,
                      const std::function<void(std::string_view content)>& look = {});

/// `text` with "\n" for "\r\n".
std::string with_unix_line_ends(std::string text);

/// The lines of a text. A line end at the end of the text does not start another line.
std::vector<std::string_view> lines_of(std::string_view text);

bool is_blank(std::string_view text);
/// `text` as the functions of this file return fields: without blanks at its end.
std::string_view without_blanks_at_end(std::string_view text);

}  // namespace zoo
