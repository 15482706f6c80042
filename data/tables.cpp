#include "data/tables.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "data/table_forms.h"
#include "data/text_files.h"
#include "io/file_kind.h"

namespace zoo {

TableForm table_form(const std::filesystem::path& path) {
  if (has_extension(path, {".csv"})) return TableForm::csv;
  if (has_extension(path, {".jsonl", ".ndjson"})) return TableForm::json_lines;
  return has_extension(path, {".parquet"}) ? TableForm::parquet : TableForm::tsv;
}

bool is_table(const std::filesystem::path& path) {
  return has_extension(path, {".tsv", ".tab"}) || table_form(path) != TableForm::tsv;
}

std::unique_ptr<Table> open_table(const std::filesystem::path& path) {
  switch (table_form(path)) {
    case TableForm::tsv:
      return open_tsv(path);
    case TableForm::csv:
      return open_csv(path);
    case TableForm::json_lines:
      return open_json_lines(path);
    case TableForm::parquet:
      return open_parquet(path);
  }
  throw std::invalid_argument("unknown TableForm");
}

void Table::read(const std::vector<ColumnNames>& columns, const std::function<void(TableRow row)>& visit,
                 const ColumnUses& uses) {
  const auto finish = [&](TableRow row) {
    for (size_t i = 0; i < row.fields.size(); ++i) {
      if (std::ranges::find(uses.texts, i) != uses.texts.end()) continue;
      row.fields[i].resize(without_blanks_at_end(row.fields[i]).size());
    }
    visit(std::move(row));
  };
  visit_rows(columns, finish, uses.lists);
}

void read_table(const std::filesystem::path& path, const std::vector<ColumnNames>& columns,
                const std::function<void(TableRow row)>& visit, const ColumnUses& uses) {
  open_table(path)->read(columns, visit, uses);
}

std::optional<size_t> find_column(const std::vector<std::string>& header, const ColumnNames& names) {
  for (const auto& name : names) {
    const auto found = std::ranges::find(header, name);
    if (found != header.end()) return static_cast<size_t>(found - header.begin());
  }
  return std::nullopt;
}

void fail_column(const std::filesystem::path& path, std::string_view line, const ColumnNames& names,
                 const std::vector<std::string>& there) {
  throw DataError(fmt::format("{}{}: no column \"{}\"{}; there are: {}", path.string(), line,
                              fmt::join(names, "\" or \""), line.empty() ? "" : " in the header",
                              excerpt(fmt::format("{}", fmt::join(there, ", ")), 200)));
}

}  // namespace zoo
