#pragma once
// Files of questions with choices: NAME.jsonl, an object a line, with
//
//   context   what stands before the choices, such as "Question: …\nAnswer:"; it may be ""
//   choices   a list of texts, two or more, none of them empty
//   answer    the number of the right one, from 0 on; also as a text: "2"
//
// and whatever else, which is not read.

#include <cstdint>
#include <string>
#include <vector>

#include "data/data_config.h"
#include "data/rows_by_split.h"

namespace zoo {

struct ChoiceQuestion {
  std::string context;
  std::vector<std::string> choices;
  int64_t answer = 0;
  std::string place = {};  // "FILE:LINE", for messages

  const std::string& right_choice() const { return choices[static_cast<size_t>(answer)]; }
};

/// The questions of these files, in order. Throws DataError, with file and line, for a line that is no
/// question, and if there are none.
std::vector<ChoiceQuestion> read_questions(const std::vector<ConfigPath>& files);

/// The questions of each split. The first train_part() of shared files is for train. Throws DataError
/// likewise.
RowsBySplit<std::vector<ChoiceQuestion>> choice_questions(const DataConfig& config);

/// The questions that stand before others: as many as config.choices.shots asks for and one more, if there
/// are so many, because a question may be one of them. None without shots. Throws DataError if there are too
/// few, and as read_questions().
std::vector<ChoiceQuestion> read_shots(const DataConfig& config);

/// `question.context` behind the first `config.shots` of `shots` with their answers. One that is the question
/// itself is left out.
std::string context_with_shots(const ChoiceQuestion& question, const std::vector<ChoiceQuestion>& shots,
                               const ChoicesConfig& config);

}  // namespace zoo
