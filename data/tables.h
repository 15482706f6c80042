#pragma once
// Tables of texts: rows with named columns, in four forms.
//
//   NAME.tsv      tab-separated, with a header, without quoting (as in GLUE); also NAME.tab
//   NAME.csv      separated by commas or semicolons, with a header, with quoting (RFC 4180)
//   NAME.jsonl    lines of JSON: an object for each row; the keys of the first are the columns;
//                 also NAME.ndjson
//   NAME.parquet  Apache Parquet, if the build has found Arrow (docs/data.md)
//
// A column of a column, such as "de" of "translation", is "translation.de". Files are read in pieces.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zoo {

enum class TableForm { tsv, csv, json_lines, parquet };

/// The form of a table with this name; other names are read as TableForm::tsv.
TableForm table_form(const std::filesystem::path& path);
/// Whether the file's name ends in .tsv, .tab, .csv, .jsonl, .ndjson or .parquet.
bool is_table(const std::filesystem::path& path);

/// Alternative names of a column. The first one that the table has is used.
using ColumnNames = std::vector<std::string>;

/// Numbers of those of the columns asked for that are read in another way.
struct ColumnUses {
  /// A list of texts and numbers may stand there. Its field is the list in JSON.
  std::vector<size_t> lists = {};
  /// The field is the text as it stands, with the blanks at its end.
  std::vector<size_t> texts = {};
};

struct TableRow {
  int64_t number;                   // line of a text file, else row; both from 1 on
  std::vector<std::string> fields;  // of the columns asked for
};

/// A table that is open: its file is opened once for all that is asked of it.
class Table {
 public:
  virtual ~Table() = default;
  /// The names of the columns, of JSON lines those of the first line.
  virtual std::vector<std::string> columns() = 0;
  /// As read_table(), as often as it is called.
  void read(const std::vector<ColumnNames>& columns, const std::function<void(TableRow row)>& visit,
            const ColumnUses& uses = {});
  /// The SHA-256 of the file.
  virtual std::string hash() const = 0;

 private:
  /// Fields are as they stand: read() cuts them. In JSON and Parquet lines within a text end with "\n".
  virtual void visit_rows(const std::vector<ColumnNames>& columns,
                          const std::function<void(TableRow row)>& visit,
                          const std::vector<size_t>& lists) = 0;
};

/// Throws DataError: the file cannot be read, or is empty.
std::unique_ptr<Table> open_table(const std::filesystem::path& path);

/// Calls `visit` for each row with its fields of `columns`, in the order of `columns`. Blanks at the end of a
/// field are left out, except in `uses.texts`. Numbers and truth values become their text in JSON; what is
/// missing or null becomes an empty field. Throws DataError: a column that is not there, a row that is
/// damaged or too long, a value that is a list, outside of `uses.lists`, or an object.
void read_table(const std::filesystem::path& path, const std::vector<ColumnNames>& columns,
                const std::function<void(TableRow row)>& visit, const ColumnUses& uses = {});

}  // namespace zoo
