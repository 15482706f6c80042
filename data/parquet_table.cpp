// Parquet files, read by Apache Arrow in batches of rows.

#include <fmt/format.h>

#include "base/error.h"
#include "data/table_forms.h"
#include "data/text_files.h"

#ifdef ZOO_PARQUET
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/json_document.h"
#include "io/open_file.h"
#include "io/sha256.h"
#endif

namespace zoo {

#ifdef ZOO_PARQUET
namespace {

constexpr int64_t kRowsAtOnce = 1024;

void check(const arrow::Status& status, const std::filesystem::path& path) {
  if (!status.ok())
    throw DataError(fmt::format("cannot read '{}': {}", path.string(), excerpt(status.message(), 200)));
}

template <class Result>
auto value_or_fail(Result&& result, const std::filesystem::path& path) {
  check(result.status(), path);
  return std::forward<Result>(result).ValueOrDie();
}

/// The names that lead to a column: one, or several for a member of a struct, from the outer column inwards.
using ParquetColumn = std::vector<std::string>;

ParquetColumn split_at_dots(const std::string& name) {
  ParquetColumn keys;
  for (size_t begin = 0;;) {
    const size_t dot = name.find('.', begin);
    keys.push_back(name.substr(begin, dot == name.npos ? dot : dot - begin));
    if (dot == name.npos) return keys;
    begin = dot + 1;
  }
}

/// The type of the member that `keys` lead to; null if there is none.
std::shared_ptr<arrow::DataType> type_at(const arrow::Schema& schema, const ParquetColumn& keys) {
  auto field = schema.GetFieldByName(keys.front());
  for (size_t i = 1; field && i < keys.size(); ++i) {
    if (field->type()->id() != arrow::Type::STRUCT) return nullptr;
    field = static_cast<const arrow::StructType&>(*field->type()).GetFieldByName(keys[i]);
  }
  return field ? field->type() : nullptr;
}

std::shared_ptr<arrow::Schema> schema_of(parquet::arrow::FileReader& reader,
                                         const std::filesystem::path& path) {
  std::shared_ptr<arrow::Schema> schema;
  check(reader.GetSchema(&schema), path);
  return schema;
}

/// Whether a column may have lists.
enum class Values { single, lists };

ParquetColumn find_parquet_column(const std::filesystem::path& path, const arrow::Schema& schema,
                                  const ColumnNames& names, Values values) {
  for (const auto& name : names) {
    auto column = schema.GetFieldByName(name) ? ParquetColumn{name} : split_at_dots(name);
    const auto type = type_at(schema, column);
    if (!type) continue;
    const bool is_list = type->id() == arrow::Type::LIST || type->id() == arrow::Type::LARGE_LIST;
    if (arrow::is_nested(type->id()) && !(is_list && values == Values::lists))
      throw DataError(fmt::format("{}: \"{}\" is {}, not a text", path.string(), name, type->ToString()));
    return column;
  }
  fail_column(path, "", names, schema.field_names());
}

std::shared_ptr<arrow::Array> array_at(const arrow::RecordBatch& batch, const ParquetColumn& column,
                                       const std::filesystem::path& path) {
  auto array = batch.GetColumnByName(column.front());
  for (size_t i = 1; array && i < column.size(); ++i)
    array = value_or_fail(static_cast<const arrow::StructArray&>(*array).GetFlattenedField(
                              static_cast<const arrow::StructType&>(*array->type()).GetFieldIndex(column[i])),
                          path);
  return array;
}

/// The columns in the file, which has one for each member of a struct, to which `columns` belong.
std::vector<int> leaves_of(const parquet::arrow::FileReader& reader,
                           const std::vector<ParquetColumn>& columns) {
  const auto* const schema = reader.parquet_reader()->metadata()->schema();
  std::vector<int> leaves;
  for (int i = 0; i < schema->num_columns(); ++i) {
    const auto is_outer = [&](const auto& column) {
      return column.front() == schema->GetColumnRoot(i)->name();
    };
    if (std::ranges::any_of(columns, is_outer)) leaves.push_back(i);
  }
  return leaves;
}

std::string field_at(const arrow::Array& array, int64_t row, const std::filesystem::path& path) {
  const auto scalar = value_or_fail(array.GetScalar(row), path);
  if (!scalar->is_valid) return {};
  if (arrow::is_nested(scalar->type->id())) {
    const auto& values = *static_cast<const arrow::BaseListScalar&>(*scalar).value;
    if (arrow::is_nested(values.type_id()))
      throw DataError(fmt::format("{}: a list of lists is not supported here", path.string()));
    auto list = nlohmann::json::array();
    for (int64_t i = 0; i < values.length(); ++i) list.push_back(field_at(values, i, path));
    return json_text(list);
  }
  std::string text;
  if (scalar->type->id() == arrow::Type::DICTIONARY) {
    text = value_or_fail(static_cast<const arrow::DictionaryScalar&>(*scalar).GetEncodedValue(), path)
               ->ToString();
  } else if (arrow::is_base_binary_like(scalar->type->id()) ||
             arrow::is_binary_view_like(scalar->type->id())) {
    text = static_cast<const arrow::BaseBinaryScalar&>(*scalar).view();
  } else {
    text = scalar->ToString();
  }
  if (find_invalid_utf8(text))
    throw DataError(fmt::format("{}: a text of this file is not UTF-8", path.string()));
  return with_unix_line_ends(std::move(text));
}

class ParquetTable final : public Table {
 public:
  explicit ParquetTable(const std::filesystem::path& path) : path_(path), file_(opened(path)) {
    reader_ = value_or_fail(parquet::arrow::OpenFile(file_, arrow::default_memory_pool()), path);
  }

  std::vector<std::string> columns() override { return schema_of(*reader_, path_)->field_names(); }
  std::string hash() const override {
    constexpr int64_t piece_bytes = int64_t{1} << 20;
    Sha256 sum;
    for (int64_t offset = 0;; offset += piece_bytes) {
      const auto piece = value_or_fail(file_->ReadAt(offset, piece_bytes), path_);
      sum.add(std::string_view(*piece));
      if (piece->size() < piece_bytes) return sum.digest();
    }
  }

 private:
  /// The file is checked as all files of a corpus are; Arrow takes over the descriptor.
  static std::shared_ptr<arrow::io::ReadableFile> opened(const std::filesystem::path& path) {
    auto descriptor = open_for_reading(path, Follow::links);
    auto file = value_or_fail(arrow::io::ReadableFile::Open(descriptor.get()), path);
    descriptor.release();
    return file;
  }

  void visit_rows(const std::vector<ColumnNames>& columns, const RowVisitor& visit,
                  const std::vector<size_t>& lists) override {
    const auto schema = schema_of(*reader_, path_);
    std::vector<ParquetColumn> found;
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto values = std::ranges::find(lists, i) == lists.end() ? Values::single : Values::lists;
      found.push_back(find_parquet_column(path_, *schema, columns[i], values));
    }
    reader_->set_batch_size(kRowsAtOnce);
    std::vector<int> row_groups(static_cast<size_t>(reader_->num_row_groups()));
    std::iota(row_groups.begin(), row_groups.end(), 0);
    const auto batches =
        value_or_fail(reader_->GetRecordBatchReader(row_groups, leaves_of(*reader_, found)), path_);
    int64_t number = 0;
    while (const auto batch = value_or_fail(batches->Next(), path_)) {
      std::vector<std::shared_ptr<arrow::Array>> arrays;
      for (const auto& column : found) arrays.push_back(array_at(*batch, column, path_));
      for (int64_t row = 0; row < batch->num_rows(); ++row) {
        TableRow result{.number = ++number, .fields = {}};
        for (const auto& array : arrays) result.fields.push_back(field_at(*array, row, path_));
        visit(std::move(result));
      }
    }
    if (number == 0) throw DataError(fmt::format("{}: the table has no rows", path_.string()));
  }

  std::filesystem::path path_;
  std::shared_ptr<arrow::io::ReadableFile> file_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
};

}  // namespace

std::unique_ptr<Table> open_parquet(const std::filesystem::path& path) {
  return std::make_unique<ParquetTable>(path);
}

#else

std::unique_ptr<Table> open_parquet(const std::filesystem::path& path) {
  throw DataError(
      fmt::format("{}: this build reads no Parquet, because Arrow was not found: pip install pyarrow into "
                  "the Python that CMake "
                  "finds, and build again (docs/data.md)",
                  path.string()));
}

#endif

}  // namespace zoo
