#include "text/choice_questions.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "data/file_lines.h"
#include "data/text_files.h"
#include "io/file_kind.h"
#include "io/json_document.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

/// The question of a line. Throws DataError without the place.
ChoiceQuestion question_of(const Json& row) {
  const auto member = [&](const char* name) -> const Json& {
    const auto found = row.is_object() ? row.find(name) : row.end();
    if (!row.is_object() || found == row.end())
      throw DataError(fmt::format(
          "no \"{}\": a line is an object with context (a text), choices (a list of texts) and answer "
          "(the number of the right one, from 0 on)",
          name));
    return *found;
  };
  const auto &context = member("context"), &choices = member("choices"), &answer = member("answer");
  if (!context.is_string()) throw DataError("context is not a text");
  const auto is_choice = [](const Json& one) {
    return one.is_string() && !one.get_ref<const std::string&>().empty();
  };
  if (!choices.is_array() || choices.size() < 2 || !std::ranges::all_of(choices, is_choice))
    throw DataError("choices must be a list of at least two texts, none of them empty");
  // A text such as "1" may be the number of a choice, or its name in a list that begins with "1".
  const auto number = answer.is_number_integer() ? answer.get<int64_t>() : -1;
  if (number < 0 || number >= std::ssize(choices)) {
    throw DataError(
        fmt::format("answer must be a number from 0 to {}, that of the right choice", choices.size() - 1));
  }
  return {.context = context.get<std::string>(),
          .choices = choices.get<std::vector<std::string>>(),
          .answer = number};
}

void read_file_of_questions(const ConfigPath& file, std::vector<ChoiceQuestion>& to) {
  const auto path = data_path(file);
  if (!has_extension(path, {".jsonl", ".ndjson"}))
    throw DataError(
        fmt::format("{}: questions with choices are lines of JSON: name the file NAME.jsonl", path.string()));
  FileLines lines(path);
  while (lines.next()) {
    if (is_blank(lines.line())) continue;
    auto place = fmt::format("{}:{}", path.string(), lines.number());
    try {
      to.push_back(question_of(parse_json(lines.line())));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", place, error.what()));
    }
    to.back().place = std::move(place);
  }
}

bool are_equal(const ChoiceQuestion& one, const ChoiceQuestion& other) {
  return one.answer == other.answer && one.context == other.context && one.choices == other.choices;
}

}  // namespace

std::vector<ChoiceQuestion> read_questions(const std::vector<ConfigPath>& files) {
  std::vector<ChoiceQuestion> questions;
  for (const auto& file : files) read_file_of_questions(file, questions);
  if (questions.empty())
    throw DataError(fmt::format("{}: there are no questions", files.empty() ? "" : files.front().text));
  return questions;
}

RowsBySplit<std::vector<ChoiceQuestion>> choice_questions(const DataConfig& config) {
  const auto read = [config](Split split) { return read_questions(files_to_read(config, split)); };
  const auto part = [config](const std::vector<ChoiceQuestion>& all, Split split) {
    auto questions = all;
    keep_part(config, split, questions);
    return questions;
  };
  const auto check = [config](const std::vector<ChoiceQuestion>& questions, Split split) {
    if (questions.empty()) fail_empty(config, split, "questions");
  };
  return {config, {.read = read, .part = part, .check = check}};
}

std::vector<ChoiceQuestion> read_shots(const DataConfig& config) {
  const auto n = static_cast<size_t>(config.choices.shots);
  if (n == 0) return {};
  const auto& named = config.choices.shots_from;
  const auto& files = named.empty() ? config.train : named;
  if (files.empty())
    throw DataError("data.choices.shots_from names no file of the questions that stand before others");
  auto shots = read_questions(files);
  if (shots.size() < n) {
    throw DataError(fmt::format("{}: {} questions, and data.choices.shots asks for {}", files.front().text,
                                shots.size(), n));
  }
  shots.resize(std::min(shots.size(), n + 1));
  return shots;
}

std::string context_with_shots(const ChoiceQuestion& question, const std::vector<ChoiceQuestion>& shots,
                               const ChoicesConfig& config) {
  std::string context;
  int64_t n = 0;
  for (const auto& shot : shots) {
    if (n == config.shots) break;
    if (are_equal(shot, question)) continue;
    context += shot.context + config.delimiter + shot.right_choice() + config.separator;
    ++n;
  }
  return context + question.context;
}

}  // namespace zoo
