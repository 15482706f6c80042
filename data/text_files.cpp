#include "data/text_files.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"

namespace zoo {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";

/// Index of the first of `names` that the header line of `path` has.
size_t find_column(const std::filesystem::path& path, const std::vector<std::string_view>& header,
                   const ColumnNames& names) {
  for (const auto& name : names) {
    const auto found = std::ranges::find(header, name);
    if (found != header.end()) return static_cast<size_t>(found - header.begin());
  }
  if (header.size() == 1 && header.front().find_first_of(",;") != std::string_view::npos) {
    throw DataError(fmt::format("{}:1: columns are separated by tabs, not by commas or semicolons: {}",
                                path.string(), excerpt(header.front(), 200)));
  }
  throw DataError(fmt::format("{}:1: no column \"{}\" in the header; there are: {}", path.string(),
                              fmt::join(names, "\" or \""),
                              excerpt(fmt::format("{}", fmt::join(header, ", ")), 200)));
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0;;) {
    const size_t end = line.find('\t', begin);
    fields.push_back(line.substr(begin, end == line.npos ? end : end - begin));
    if (end == line.npos) return fields;
    begin = end + 1;
  }
}

}  // namespace

std::string cleaned_text(std::string text, std::string_view name) {
  if (const auto offset = find_invalid_utf8(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(*offset), '\n');
    throw DataError(fmt::format("{}:{}: not UTF-8 at byte {}: {}", name, line, *offset,
                                excerpt(std::string_view(text).substr(*offset), 16)));
  }
  text.erase(0, text.size() - without_byte_order_mark(text).size());
  if (text.find('\r') != text.npos) {
    std::string unix_text;
    unix_text.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') unix_text += text[i];
    }
    text = std::move(unix_text);
  }
  if (is_blank(text)) throw DataError(fmt::format("{}: the file is empty", name));
  return text;
}

std::string read_text(const std::filesystem::path& path) {
  return cleaned_text(read_file(path, Follow::links), path.string());
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

void read_table(const std::filesystem::path& path, const std::vector<ColumnNames>& columns,
                const std::function<void(size_t line, std::vector<std::string> row)>& visit) {
  const std::string content = read_text(path);
  const auto lines = lines_of(content);
  const auto header = fields_of(lines.front());
  std::vector<size_t> indices;
  for (const auto& names : columns) indices.push_back(find_column(path, header, names));
  for (size_t i = 1; i < lines.size(); ++i) {
    if (is_blank(lines[i])) continue;
    const auto fields = fields_of(lines[i]);
    if (fields.size() != header.size()) {
      throw DataError(fmt::format("{}:{}: {} fields, but the header has {}", path.string(), i + 1,
                                  fields.size(), header.size()));
    }
    std::vector<std::string> row;
    for (const size_t index : indices) row.emplace_back(without_blanks_at_end(fields[index]));
    visit(i + 1, std::move(row));
  }
}

}  // namespace zoo
