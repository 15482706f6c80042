#pragma once
// Texts with something that belongs to them: translations, labels. All of a split are in memory. The texts
// are as text/corpus.h says.

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/data_config.h"
#include "data/labels.h"
#include "data/rows_by_split.h"
#include "data/splits.h"

namespace zoo {

struct ParallelTexts {
  std::vector<std::string> source, target;  // of equal size
};
/// Lines of PREFIX.source and PREFIX.target, or the rows of a table with the columns `source` and `target`,
/// or translation.source and translation.target. Pairs with a blank side are left out. The first train_part()
/// of shared files is for train. Throws DataError, also if the numbers of lines differ.
RowsBySplit<ParallelTexts> parallel_texts(const DataConfig& config);

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

/// Rows of tables, which data/class_split.h divides between train and valid. Throws DataError with file and
/// line, also for labels that do not fit the problem.
RowsBySplit<LabelledTexts> labelled_texts(const DataConfig& config, Problem problem = Problem::single_label);

/// Texts to use a trained model on: the lines of a file, blank ones included, or the texts of a table, as
/// labelled_texts() reads them, with a tab between the texts of pairs. `path` is not looked for below the
/// data root. Throws DataError as read_documents().
std::vector<std::string> read_texts(const std::filesystem::path& path, const DataConfig& config);
/// The lines of `content`, checked like the lines of a file. Errors call it `name`.
std::vector<std::string> lines_of_text(std::string content, std::string_view name);

}  // namespace zoo
