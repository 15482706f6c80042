#pragma once
// The forms of tables, one file each. See data/tables.h.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tables.h"

namespace zoo {

// Fields are as they stand: read_table() cuts them. In JSON and Parquet lines within a text end with "\n".

/// The columns that a header may have; docs/limits.md.
inline constexpr int64_t kMostColumns = 1 << 14;

using RowVisitor = std::function<void(TableRow row)>;

void read_tsv(const std::filesystem::path& path, const std::vector<ColumnNames>& columns,
              const RowVisitor& visit);
std::vector<std::string> columns_of_tsv(const std::filesystem::path& path);

void read_csv(const std::filesystem::path& path, const std::vector<ColumnNames>& columns,
              const RowVisitor& visit);
std::vector<std::string> columns_of_csv(const std::filesystem::path& path);

void read_json_lines(const std::filesystem::path& path, const std::vector<ColumnNames>& columns,
                     const RowVisitor& visit, const std::vector<size_t>& lists);
std::vector<std::string> columns_of_json_lines(const std::filesystem::path& path);

/// Both throw DataError if the build has no Arrow.
void read_parquet(const std::filesystem::path& path, const std::vector<ColumnNames>& columns,
                  const RowVisitor& visit, const std::vector<size_t>& lists);
std::vector<std::string> columns_of_parquet(const std::filesystem::path& path);

/// Throws DataError: none of `names` is among the columns `there` of the table. `line`: of the header, such
/// as ":1".
[[noreturn]] void fail_column(const std::filesystem::path& path, std::string_view line,
                              const ColumnNames& names, const std::vector<std::string>& there);

}  // namespace zoo
