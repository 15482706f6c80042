// Parquet files, read by Apache Arrow in batches of rows.

#include <fmt/format.h>

#include "base/error.h"
#include "data/files/table_forms.h"

#ifdef ZOO_PARQUET
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "data/files/text_files.h"
#include "io/open_file.h"
#endif

namespace zoo {

#ifdef ZOO_PARQUET
namespace {

constexpr int64_t kRowsAtOnce = 1024;

template <class Result>
auto value_or_fail(Result&& result, const std::filesystem::path& path) {
  if (!result.ok())
    throw DataError(
        fmt::format("cannot read '{}': {}", path.string(), excerpt(result.status().message(), 200)));
  return std::forward<Result>(result).ValueOrDie();
}

void check(const arrow::Status& status, const std::filesystem::path& path) {
  if (!status.ok())
    throw DataError(fmt::format("cannot read '{}': {}", path.string(), excerpt(status.message(), 200)));
}

std::unique_ptr<parquet::arrow::FileReader> open_parquet(const std::filesystem::path& path) {
  // The file is checked as all files of a corpus are; Arrow takes over the descriptor.
  auto descriptor = open_for_reading(path, Follow::links);
  const auto file = value_or_fail(arrow::io::ReadableFile::Open(descriptor.get()), path);
  descriptor.release();
  return value_or_fail(parquet::arrow::OpenFile(file, arrow::default_memory_pool()), path);
}

/// A column, or a member of a struct in a column.
struct ParquetColumn {
  std::string name;
  std::vector<std::string> keys;  // from the outer column inwards
};

std::vector<std::string> split_at_dots(const std::string& name) {
  std::vector<std::string> keys;
  for (size_t begin = 0;;) {
    const size_t dot = name.find('.', begin);
    keys.push_back(name.substr(begin, dot == name.npos ? dot : dot - begin));
    if (dot == name.npos) return keys;
    begin = dot + 1;
  }
}

/// The type of the member that `keys` lead to; null if there is none.
std::shared_ptr<arrow::DataType> type_at(const arrow::Schema& schema, const std::vector<std::string>& keys) {
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

ParquetColumn find_parquet_column(const std::filesystem::path& path, const arrow::Schema& schema,
                                  const ColumnNames& names) {
  for (const auto& name : names) {
    ParquetColumn column{.name = name, .keys = {name}};
    if (!schema.GetFieldByName(name)) column.keys = split_at_dots(name);
    const auto type = type_at(schema, column.keys);
    if (!type) continue;
    const bool is_nested = arrow::is_nested(type->id());
    if (is_nested)
      throw DataError(fmt::format("{}: \"{}\" is {}, not a text", path.string(), name, type->ToString()));
    return column;
  }
  fail_column(path, "", names, schema.field_names());
}

std::shared_ptr<arrow::Array> array_at(const arrow::RecordBatch& batch, const ParquetColumn& column,
                                       const std::filesystem::path& path) {
  auto array = batch.GetColumnByName(column.keys.front());
  for (size_t i = 1; array && i < column.keys.size(); ++i)
    array = value_or_fail(static_cast<const arrow::StructArray&>(*array).Flatten(nullptr), path)
                .at(static_cast<size_t>(
                    static_cast<const arrow::StructType&>(*array->type()).GetFieldIndex(column.keys[i])));
  return array;
}

std::string field_of(const arrow::Array& array, int64_t row, const std::filesystem::path& path) {
  const auto scalar = value_or_fail(array.GetScalar(row), path);
  if (!scalar->is_valid) return {};
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
  for (size_t at = text.find("\r\n"); at != text.npos; at = text.find("\r\n", at)) text.erase(at, 1);
  return std::string(without_blanks_at_end(text));
}

}  // namespace

void read_parquet(const std::filesystem::path& path, const std::vector<ColumnNames>& columns,
                  const RowVisitor& visit) {
  const auto reader = open_parquet(path);
  const auto schema = schema_of(*reader, path);
  std::vector<ParquetColumn> found;
  for (const auto& names : columns) found.push_back(find_parquet_column(path, *schema, names));
  reader->set_batch_size(kRowsAtOnce);
  const auto batches = value_or_fail(reader->GetRecordBatchReader(), path);
  int64_t number = 0;
  while (const auto batch = value_or_fail(batches->Next(), path)) {
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    for (const auto& column : found) arrays.push_back(array_at(*batch, column, path));
    for (int64_t row = 0; row < batch->num_rows(); ++row) {
      TableRow result{.number = ++number, .fields = {}};
      for (const auto& array : arrays) result.fields.push_back(field_of(*array, row, path));
      visit(std::move(result));
    }
  }
  if (number == 0) throw DataError(fmt::format("{}: the table has no rows", path.string()));
}

std::vector<std::string> columns_of_parquet(const std::filesystem::path& path) {
  return schema_of(*open_parquet(path), path)->field_names();
}

#else

namespace {

[[noreturn]] void fail_without_arrow(const std::filesystem::path& path) {
  throw DataError(
      fmt::format("{}: this build reads no Parquet, because Arrow was not found: pip install pyarrow into "
                  "the Python that CMake "
                  "finds, and build again (docs/data.md)",
                  path.string()));
}

}  // namespace

void read_parquet(const std::filesystem::path& path, const std::vector<ColumnNames>&, const RowVisitor&) {
  fail_without_arrow(path);
}

std::vector<std::string> columns_of_parquet(const std::filesystem::path& path) { fail_without_arrow(path); }

#endif

}  // namespace zoo
