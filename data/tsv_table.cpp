// Tab-separated tables.

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/file_lines.h"
#include "data/table_forms.h"
#include "data/text_files.h"

namespace zoo {
namespace {

/// Index of the first of `names` that the header of `path` has.
size_t find_tsv_column(const std::filesystem::path& path, const std::vector<std::string>& header,
                       const ColumnNames& names) {
  if (const auto column = find_column(header, names)) return *column;
  if (header.size() == 1 && header.front().find_first_of(",;") != std::string::npos) {
    throw DataError(
        fmt::format("{}:1: columns are separated by tabs in a .tsv: call the file .csv if commas or "
                    "semicolons separate them: {}",
                    path.string(), excerpt(header.front(), 200)));
  }
  fail_column(path, ":1", names, header);
}

int64_t n_fields(std::string_view line) { return 1 + std::ranges::count(line, '\t'); }

std::vector<std::string_view> tsv_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0;;) {
    const size_t end = line.find('\t', begin);
    fields.push_back(line.substr(begin, end == line.npos ? end : end - begin));
    if (end == line.npos) return fields;
    begin = end + 1;
  }
}

/// The header, which is the first line of `lines`, even if that is blank.
std::vector<std::string> read_header(const std::filesystem::path& path, FileLines& lines) {
  if (!lines.next()) throw DataError(fmt::format("{}: the file is empty", path.string()));
  if (const auto n = n_fields(lines.line()); n > kMostColumns)
    throw DataError(fmt::format("{}:1: {} columns: a table has at most {}", path.string(), n, kMostColumns));
  const auto fields = tsv_fields(lines.line());
  if (lines.line().find('\r') != std::string_view::npos) {
    throw DataError(
        fmt::format("{}:1: its lines end with CR alone, as on old computers: write LF in place of "
                    "it, such as by tr '\\r' '\\n'",
                    path.string()));
  }
  return {fields.begin(), fields.end()};
}

class TsvTable final : public Table {
 public:
  explicit TsvTable(const std::filesystem::path& path)
      : path_(path), lines_(path), header_(read_header(path, lines_)) {}

  std::vector<std::string> columns() override { return header_; }
  std::string hash() const override { return lines_.hash(); }

 private:
  void visit_rows(const std::vector<ColumnNames>& columns, const RowVisitor& visit,
                  const std::vector<size_t>&) override {
    lines_.rewind();
    lines_.next();
    std::vector<size_t> indices;
    for (const auto& names : columns) indices.push_back(find_tsv_column(path_, header_, names));
    while (lines_.next()) {
      if (is_blank(lines_.line())) continue;
      if (const auto n = n_fields(lines_.line()); n != std::ssize(header_)) {
        throw DataError(fmt::format("{}:{}: {} fields, but the header has {}", path_.string(),
                                    lines_.number(), n, header_.size()));
      }
      const auto fields = tsv_fields(lines_.line());
      TableRow row{.number = lines_.number(), .fields = {}};
      for (const size_t index : indices) row.fields.emplace_back(fields[index]);
      visit(std::move(row));
    }
  }

  std::filesystem::path path_;
  FileLines lines_;
  std::vector<std::string> header_;
};

}  // namespace

std::unique_ptr<Table> open_tsv(const std::filesystem::path& path) {
  return std::make_unique<TsvTable>(path);
}

}  // namespace zoo
