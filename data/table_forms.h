#pragma once
// The forms of tables, one file each. See data/tables.h.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tables.h"

namespace zoo {

/// The columns that a header may have; docs/limits.md.
inline constexpr int64_t kMostColumns = 1 << 14;

using RowVisitor = std::function<void(TableRow row)>;

std::unique_ptr<Table> open_tsv(const std::filesystem::path& path);
std::unique_ptr<Table> open_csv(const std::filesystem::path& path);
std::unique_ptr<Table> open_json_lines(const std::filesystem::path& path);
/// Throws DataError, too, if the build has no Arrow.
std::unique_ptr<Table> open_parquet(const std::filesystem::path& path);

/// The number of the first of `names` that `header` has.
std::optional<size_t> find_column(const std::vector<std::string>& header, const ColumnNames& names);

/// Throws DataError: none of `names` is among the columns `there` of the table. `line`: of the header, such
/// as ":1".
[[noreturn]] void fail_column(const std::filesystem::path& path, std::string_view line,
                              const ColumnNames& names, const std::vector<std::string>& there);

}  // namespace zoo
