#include "data/text_files.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"

namespace zoo {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";

}  // namespace

std::string checked_text(std::string text, std::string_view name) {
  if (const auto offset = find_invalid_utf8(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(*offset), '\n');
    throw DataError(fmt::format("{}:{}: not UTF-8 at byte {}: {}", name, line, *offset,
                                excerpt(std::string_view(text).substr(*offset), 16)));
  }
  text.erase(0, text.size() - without_byte_order_mark(text).size());
  return with_unix_line_ends(std::move(text));
}

std::string read_text(const std::filesystem::path& path,
                      const std::function<void(std::string_view content)>& look) {
  auto content = read_file(path, Follow::links);
  if (look) look(content);
  auto text = checked_text(std::move(content), path.string());
  if (is_blank(text))
    throw DataError(fmt::format("{}: the file is empty, or has only blanks", path.string()));
  return text;
}

std::string with_unix_line_ends(std::string text) {
  if (text.find('\r') == text.npos) return text;
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') result += text[i];
  }
  return result;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(kBlanks) == text.npos; }

std::string_view without_blanks_at_end(std::string_view text) {
  const size_t last = text.find_last_not_of(kBlanks);
  return text.substr(0, last == text.npos ? 0 : last + 1);
}

}  // namespace zoo
