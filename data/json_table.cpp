// Lines of JSON, an object for each row.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/file_lines.h"
#include "data/table_forms.h"
#include "data/text_files.h"
#include "io/json_document.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

Json object_of(const std::filesystem::path& path, const FileLines& lines) {
  Json object;
  try {
    object = parse_json(lines.line());
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}:{}: {}", path.string(), lines.number(), error.what()));
  }
  if (!object.is_object())
    throw DataError(fmt::format("{}:{}: a line is a JSON object with the columns as keys, but this one is {}",
                                path.string(), lines.number(), excerpt(lines.line(), 60)));
  return object;
}

/// The value of a key, or of keys in each other that dots separate; null if there is none.
const Json* find_value(const Json& object, std::string_view name) {
  if (const auto found = object.find(name); found != object.end()) return &*found;
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    const auto outer = object.find(name.substr(0, dot));
    if (outer == object.end() || !outer->is_object()) continue;
    if (const auto* const value = find_value(*outer, name.substr(dot + 1))) return value;
  }
  return nullptr;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

/// For each of `columns` the first of its names that the object of the first row has.
std::vector<std::string> names_in(const std::filesystem::path& path, const Json& object,
                                  const std::vector<ColumnNames>& columns) {
  std::vector<std::string> result;
  for (const auto& names : columns) {
    const auto found =
        std::ranges::find_if(names, [&](const auto& name) { return find_value(object, name) != nullptr; });
    if (found == names.end()) fail_column(path, "", names, keys_of(object));
    result.push_back(*found);
  }
  return result;
}

TableRow row_of(const std::filesystem::path& path, const Json& object, int64_t line,
                const std::vector<std::string>& names, const std::vector<size_t>& lists) {
  TableRow row{.number = line, .fields = {}};
  for (const auto& name : names) {
    const auto* const value = find_value(object, name);
    const bool may_be_list = std::ranges::find(lists, row.fields.size()) != lists.end();
    if (value && value->is_structured() && !(may_be_list && value->is_array()))
      throw DataError(fmt::format("{}:{}: \"{}\" is {}, not a text", path.string(), line, name,
                                  value->is_array() ? "a list" : "an object"));
    row.fields.push_back(!value || value->is_null() ? std::string()
                         : value->is_string()       ? with_unix_line_ends(value->get<std::string>())
                                                    : value->dump());
  }
  return row;
}

class JsonLinesTable final : public Table {
 public:
  explicit JsonLinesTable(const std::filesystem::path& path) : path_(path), lines_(path) { first_row(); }

  std::vector<std::string> columns() override {
    first_row();
    return keys_of(object_of(path_, lines_));
  }
  std::string hash() const override { return lines_.hash(); }

 private:
  void first_row() {
    lines_.rewind();
    if (!next_row())
      throw DataError(fmt::format("{}: the file is empty, or has only blanks", path_.string()));
  }

  bool next_row() {
    while (lines_.next()) {
      if (!is_blank(lines_.line())) return true;
    }
    return false;
  }

  void visit_rows(const std::vector<ColumnNames>& columns, const RowVisitor& visit,
                  const std::vector<size_t>& lists) override {
    std::vector<std::string> names;
    bool is_first = true;
    first_row();
    do {
      const auto object = object_of(path_, lines_);
      if (std::exchange(is_first, false)) names = names_in(path_, object, columns);
      visit(row_of(path_, object, lines_.number(), names, lists));
    } while (next_row());
  }

  std::filesystem::path path_;
  FileLines lines_;
};

}  // namespace

std::unique_ptr<Table> open_json_lines(const std::filesystem::path& path) {
  return std::make_unique<JsonLinesTable>(path);
}

}  // namespace zoo
