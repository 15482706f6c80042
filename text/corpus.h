#pragma once
// Reads and checks the text files of a corpus. The texts are UTF-8 without a byte order mark and with "\n"
// line ends.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/data_config.h"
#include "data/labels.h"
#include "data/splits.h"
#include "data/text_files.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Hex digest of the content of the training and validation files, or of a name that leads to no file.
std::string hash_of_data(const DataConfig& config);

// If the configuration names no validation files, the end of the training files is the validation split and
// is left out of the training split. The training split has the first int((1 - valid_fraction)·n) of n items.
// With DocumentSplit::none the items are code points, as in nanoGPT; otherwise they are documents or rows.

/// Calls `visit` with the documents of the text files of `split`, in order; none is blank. With
/// DocumentSplit::none each file is one document, which is read as a whole; other documents are read one by
/// one. In a table (data/tables.h) the text of each row is a document, or a line of the document with
/// DocumentSplit::none. Throws DataError for a missing or empty file and for invalid UTF-8 (with file, line
/// and byte).
void visit_documents(const DataConfig& config, Split split,
                     const std::function<void(std::string_view document)>& visit);
/// Reads the documents each time that it is called. Throws DataError as visit_documents().
TextReader reader_of(const DataConfig& config, Split split);
/// The documents, all in memory.
std::vector<std::string> read_documents(const DataConfig& config, Split split);

struct ParallelTexts {
  std::vector<std::string> source, target;  // of equal size
};
/// Lines of PREFIX.source and PREFIX.target, or the rows of a table with the columns `source` and `target`,
/// or translation.source and translation.target. Pairs with a blank side are left out. Throws DataError, also
/// if the numbers of lines differ.
ParallelTexts read_parallel(const DataConfig& config, Split split);

struct LabelledTexts {
  std::vector<std::string> texts;
  std::vector<std::string> pairs;   // the second text of each row; none without config.pair_column
  std::vector<std::string> labels;  // as written in the file; a list of JSON lines in JSON

  /// The texts as inputs of a task: pairs with kBetweenPairs between them.
  std::vector<std::string> inputs() const;
};
/// Stands between the two texts of a pair where a task takes one input.
inline constexpr char kBetweenPairs = '\t';
/// The two texts of such an input. Throws DataError unless it has one tab.
std::pair<std::string, std::string> split_pair(const std::string& input);

/// Rows of tables. Throws DataError with file and line, also for labels that do not fit the problem.
LabelledTexts read_labelled(const DataConfig& config, Split split, Problem problem = Problem::single_label);

/// Texts to use a trained model on: the lines of a file, blank ones included, or the texts of a table, as
/// read_labelled() reads them, with a tab between the texts of pairs. `path` is not looked for below the data
/// root. Throws DataError as read_documents().
std::vector<std::string> read_texts(const std::filesystem::path& path, const DataConfig& config);
/// The lines of `content`, checked like the lines of a file. Errors call it `name`.
std::vector<std::string> lines_of_text(std::string content, std::string_view name);

}  // namespace zoo
