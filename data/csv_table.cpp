// Tables whose columns commas or semicolons separate, with quotation marks (RFC 4180).

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/file_lines.h"
#include "data/table_forms.h"
#include "data/text_files.h"

namespace zoo {
namespace {

/// The rows of a file. A field in quotation marks may have line breaks, separators, and quotation marks that
/// are written twice.
class CsvRows {
 public:
  explicit CsvRows(const std::filesystem::path& path) : path_(path), lines_(path) {}

  /// Goes on to the next row that is not blank; whether there was one.
  bool next() {
    do {
      if (!lines_.next()) return false;
    } while (is_blank(lines_.line()));
    number_ = lines_.number();
    fields_.clear();
    std::string_view rest = lines_.line();
    if (separator_ == '\0') separator_ = separator_of(rest);
    for (bool more = true; more;) more = take_field(rest);
    return true;
  }
  const std::vector<std::string>& fields() const { return fields_; }
  void rewind() { lines_.rewind(); }
  std::string hash() const { return lines_.hash(); }
  /// The line at which the row begins.
  int64_t number() const { return number_; }

  [[noreturn]] void fail(std::string_view problem) const {
    throw DataError(fmt::format("{}:{}: {}", path_.string(), number_, problem));
  }

 private:
  /// The separator that occurs most in a header, outside of quotation marks.
  static char separator_of(std::string_view header) {
    constexpr std::array<char, 3> separators{',', ';', '\t'};
    std::array<int64_t, 3> counts{};
    bool quoted = false;
    for (const char c : header) {
      quoted ^= c == '"';
      const auto* const found = std::ranges::find(separators, c);
      if (!quoted && found != separators.end()) ++counts[static_cast<size_t>(found - separators.begin())];
    }
    return separators[static_cast<size_t>(std::ranges::max_element(counts) - counts.begin())];
  }

  /// Takes a field from the beginning of `rest`, which is the rest of the current line; whether others
  /// follow.
  bool take_field(std::string_view& rest) {
    if (std::ssize(fields_) == kMostColumns)
      fail(fmt::format("a table has at most {} columns", kMostColumns));
    auto& field = fields_.emplace_back();
    if (!rest.starts_with('"')) {
      field = rest.substr(0, rest.find(separator_));
      rest.remove_prefix(field.size());
    } else {
      rest.remove_prefix(1);
      take_quoted(rest, field);
    }
    if (rest.empty()) return false;
    if (rest.front() != separator_)
      fail(fmt::format(
          "after a field in quotation marks stands {}; a quotation mark within such a field is written "
          "twice",
          excerpt(rest, 20)));
    rest.remove_prefix(1);
    return true;
  }

  /// The field up to its closing quotation mark, behind which `rest` begins.
  void take_quoted(std::string_view& rest, std::string& field) {
    for (;;) {
      const size_t mark = rest.find('"');
      field.append(rest.substr(0, mark));
      if (field.size() > kMostLineBytes)
        fail(fmt::format("a field of more than {} MiB", kMostLineBytes >> 20));
      if (mark == rest.npos) {
        if (!lines_.next()) fail("a field begins with a quotation mark and has no other one at its end");
        field += '\n';
        rest = lines_.line();
        continue;
      }
      rest.remove_prefix(mark + 1);
      if (!rest.starts_with('"')) return;
      field += '"';
      rest.remove_prefix(1);
    }
  }

  std::filesystem::path path_;
  FileLines lines_;
  char separator_ = '\0';  // not yet known
  std::vector<std::string> fields_;
  int64_t number_ = 0;
};

std::vector<std::string> read_header(const std::filesystem::path& path, CsvRows& rows) {
  if (!rows.next()) throw DataError(fmt::format("{}: the file is empty", path.string()));
  return rows.fields();
}

class CsvTable final : public Table {
 public:
  explicit CsvTable(const std::filesystem::path& path)
      : path_(path), rows_(path), header_(read_header(path, rows_)) {}

  std::vector<std::string> columns() override { return header_; }
  std::string hash() const override { return rows_.hash(); }

 private:
  void visit_rows(const std::vector<ColumnNames>& columns, const RowVisitor& visit,
                  const std::vector<size_t>&) override {
    rows_.rewind();
    rows_.next();
    std::vector<size_t> indices;
    for (const auto& names : columns) {
      const auto column = find_column(header_, names);
      if (!column) fail_column(path_, ":1", names, header_);
      indices.push_back(*column);
    }
    while (rows_.next()) {
      const auto& fields = rows_.fields();
      if (fields.size() != header_.size())
        rows_.fail(
            fmt::format("{} fields, but the header has {}; a field with a separator in it stands in "
                        "quotation marks",
                        fields.size(), header_.size()));
      TableRow row{.number = rows_.number(), .fields = {}};
      for (const size_t index : indices) row.fields.push_back(fields[index]);
      visit(std::move(row));
    }
  }

  std::filesystem::path path_;
  CsvRows rows_;
  std::vector<std::string> header_;
};

}  // namespace

std::unique_ptr<Table> open_csv(const std::filesystem::path& path) {
  return std::make_unique<CsvTable>(path);
}

}  // namespace zoo
