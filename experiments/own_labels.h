#pragma once
// What a column of labels holds: classes, several labels, numbers, or a label for each word.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/labels.h"
#include "data/tables.h"

namespace zoo {

/// How the labels of a table are to be read.
struct Labelling {
  std::string column = {};
  Problem problem = Problem::single_label;
  std::string separator = ",";  // of multi_label
  bool of_words = false;        // each word of a text has labels, not the text
  int64_t n_labels = 0;         // different ones
};

/// A column of labels, in order.
struct LabelColumn {
  std::string name;
  std::filesystem::path file;
  std::vector<std::string> fields;
  std::vector<int64_t> rows;  // TableRow::number of each field
};

struct LabelsAndTexts {
  std::vector<std::string> texts;  // of the first column of texts, as many as labels
  int64_t bytes = 0;               // of all columns of texts
  LabelColumn labels;
};
/// The fields of columns of the table in `file`; a list of labels is in JSON. Throws DataError.
LabelsAndTexts read_labels_and_texts(Table& table, const std::filesystem::path& file,
                                     const std::vector<std::string>& text_columns,
                                     const std::string& label_column);

/// The number of different ones.
int64_t n_different(const std::vector<std::string>& labels);

/// Guesses by the name of the column and by its fields. `texts` are those of the rows, or none.
///   of words      as many labels as words in every row, of which some have several
///   multi_label   lists in JSON, or a column called labels, tags, genres, topics or categories in which a
///                 separator occurs, the first of | ; , or an empty field
///   regression    numbers only: in a column called score, similarity or stars, or with digits behind the
///                 point, or more than 20 different ones
///   single_label  everything else
/// Throws DataError, with the row, where a few rows do not fit what most of them are.
Labelling labelling_of(const std::vector<std::string>& texts, const LabelColumn& labels);

}  // namespace zoo
