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
#include <optional>
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

// What a file may ask for; docs/limits.md. A few bytes may stand for any number of rows and for texts of any
// length: values that are the same are stored once.
constexpr int64_t kMostRowsAtOnce = 1024, kBytesAtOnce = int64_t{64} << 20, kMostMemory = int64_t{512} << 20,
                  kFewRows = int64_t{1} << 18, kRowsPerByte = 16, kFewBytes = int64_t{128} << 20,
                  kBytesPerByte = 1000;

void check(const arrow::Status& status, const std::filesystem::path& path) {
  if (status.IsOutOfMemory())
    throw DataError(
        fmt::format("{}: some of its rows need more than {} MiB of memory: write it with fewer or "
                    "shorter values in a page",
                    path.string(), kMostMemory >> 20));
  if (!status.ok())
    throw DataError(fmt::format("cannot read '{}': {}", path.string(), excerpt(status.message(), 200)));
}

template <class Result>
auto value_or_fail(Result&& result, const std::filesystem::path& path) {
  check(result.status(), path);
  return std::forward<Result>(result).ValueOrDie();
}

/// An open file, whose reading takes a bounded amount of memory.
struct ParquetFile {
  explicit ParquetFile(const std::filesystem::path& path) {
    // The file is checked as all files of a corpus are; Arrow takes over the descriptor.
    auto descriptor = open_for_reading(path, Follow::links);
    file = value_or_fail(arrow::io::ReadableFile::Open(descriptor.get()), path);
    descriptor.release();
    n_bytes = value_or_fail(file->GetSize(), path);
    pool.emplace(&own_pool, kMostMemory + n_bytes);
    parquet::ReaderProperties properties(&*pool);
    properties.enable_buffered_stream();
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(file, properties), path);
    builder.memory_pool(&*pool);
    check(builder.Build(&reader), path);
  }

  arrow::ProxyMemoryPool own_pool{arrow::default_memory_pool()};  // counts what this file takes
  std::optional<arrow::CappedMemoryPool> pool;
  std::shared_ptr<arrow::io::ReadableFile> file;
  int64_t n_bytes = 0;
  std::unique_ptr<parquet::arrow::FileReader> reader;
};

/// What is left of the bytes that the rows of a file may hold.
class Allowance {
 public:
  Allowance(const std::filesystem::path& path, int64_t file_bytes)
      : path_(path), left_(kFewBytes + kBytesPerByte * file_bytes) {}
  void take(int64_t bytes) {
    left_ -= bytes;
    if (left_ < 0)
      throw DataError(
          fmt::format("{}: its rows hold more than {} times the bytes of the file: no such file is "
                      "read",
                      path_.string(), kBytesPerByte));
  }

 private:
  const std::filesystem::path& path_;
  int64_t left_;
};

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

/// How many rows are read at once: so many that they hold about kBytesAtOnce, by the sizes in the footer.
/// Throws DataError for more rows than such a file may have.
int64_t rows_at_once(const parquet::FileMetaData& metadata, int64_t file_bytes,
                     const std::filesystem::path& path) {
  const int64_t n_rows = metadata.num_rows(), most = kFewRows + kRowsPerByte * file_bytes;
  if (n_rows < 0 || n_rows > most)
    throw DataError(fmt::format("{}: {} rows in {} bytes: at most {} are read from a file of this size",
                                path.string(), n_rows, file_bytes, most));
  double bytes = 0;
  for (int group = 0; group < metadata.num_row_groups(); ++group)
    bytes += static_cast<double>(metadata.RowGroup(group)->total_byte_size());
  const double per_row = std::max(bytes, 1.0) / static_cast<double>(std::max<int64_t>(n_rows, 1));
  return std::clamp(static_cast<int64_t>(static_cast<double>(kBytesAtOnce) / per_row), int64_t{1},
                    kMostRowsAtOnce);
}

std::string field_at(const arrow::Array& array, int64_t row, const std::filesystem::path& path,
                     Allowance& allowance) {
  const auto scalar = value_or_fail(array.GetScalar(row), path);
  if (!scalar->is_valid) return {};
  if (arrow::is_nested(scalar->type->id())) {
    const auto& values = *static_cast<const arrow::BaseListScalar&>(*scalar).value;
    if (arrow::is_nested(values.type_id()))
      throw DataError(fmt::format("{}: a list of lists is not supported here", path.string()));
    auto list = nlohmann::json::array();
    allowance.take(values.length());
    for (int64_t i = 0; i < values.length(); ++i) list.push_back(field_at(values, i, path, allowance));
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
  allowance.take(std::ssize(text));
  if (find_invalid_utf8(text))
    throw DataError(fmt::format("{}: a text of this file is not UTF-8", path.string()));
  return with_unix_line_ends(std::move(text));
}

class ParquetTable final : public Table {
 public:
  explicit ParquetTable(const std::filesystem::path& path) : path_(path), file_(path) {}

  std::vector<std::string> columns() override { return schema_of(*file_.reader, path_)->field_names(); }
  std::string hash() const override {
    constexpr int64_t piece_bytes = int64_t{1} << 20;
    Sha256 sum;
    for (int64_t offset = 0;; offset += piece_bytes) {
      const auto piece = value_or_fail(file_.file->ReadAt(offset, piece_bytes), path_);
      sum.add(std::string_view(*piece));
      if (piece->size() < piece_bytes) return sum.digest();
    }
  }

 private:
  void visit_rows(const std::vector<ColumnNames>& columns, const RowVisitor& visit,
                  const std::vector<size_t>& lists) override {
    auto& reader = *file_.reader;
    const auto schema = schema_of(reader, path_);
    std::vector<ParquetColumn> found;
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto values = std::ranges::find(lists, i) == lists.end() ? Values::single : Values::lists;
      found.push_back(find_parquet_column(path_, *schema, columns[i], values));
    }
    reader.set_batch_size(rows_at_once(*reader.parquet_reader()->metadata(), file_.n_bytes, path_));
    Allowance allowance(path_, file_.n_bytes);
    std::vector<int> row_groups(static_cast<size_t>(reader.num_row_groups()));
    std::iota(row_groups.begin(), row_groups.end(), 0);
    const auto batches =
        value_or_fail(reader.GetRecordBatchReader(row_groups, leaves_of(reader, found)), path_);
    int64_t number = 0;
    while (const auto batch = value_or_fail(batches->Next(), path_)) {
      std::vector<std::shared_ptr<arrow::Array>> arrays;
      for (const auto& column : found) arrays.push_back(array_at(*batch, column, path_));
      for (int64_t row = 0; row < batch->num_rows(); ++row) {
        TableRow result{.number = ++number, .fields = {}};
        for (const auto& array : arrays) result.fields.push_back(field_at(*array, row, path_, allowance));
        visit(std::move(result));
      }
    }
    if (number == 0) throw DataError(fmt::format("{}: the table has no rows", path_.string()));
  }

  std::filesystem::path path_;
  ParquetFile file_;
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
