#include "apps/console/texts.h"

#include <iostream>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "apps/console/standard_input.h"
#include "base/error.h"
#include "base/text.h"
#include "data/text_files.h"
#include "io/progress.h"
#include "text/text_rows.h"

namespace zoo {
namespace {

std::vector<std::string> texts_of_standard_input() {
  return lines_of_text(standard_input("write one text per line, or give --text TEXT"), "standard input");
}

}  // namespace

void add_texts(CLI::App& command, TextArguments& arguments) {
  command.add_option("--text", arguments.texts, "A text; may be repeated")
      ->option_text("TEXT")
      ->allow_extra_args(false);
  command
      .add_option("--input", arguments.files,
                  "Files with one text per line, or tables (.tsv) with a column as in training; default: "
                  "standard input")
      ->option_text("FILE ...");
}

std::vector<std::string> read_texts(const TextArguments& arguments, const DataConfig& config) {
  if (arguments.texts.empty() && arguments.files.empty()) return texts_of_standard_input();
  for (const auto& text : arguments.texts) {
    const auto at = find_invalid_utf8(text);
    if (!at) continue;
    throw DataError(fmt::format("--text: not UTF-8 at byte {}: {}", *at,
                                excerpt(std::string_view(text).substr(*at), 16)));
  }
  std::vector<std::string> all = arguments.texts;
  for (const auto& file : arguments.files) {
    auto texts = read_texts(file, config);
    all.insert(all.end(), std::make_move_iterator(texts.begin()), std::make_move_iterator(texts.end()));
  }
  return all;
}

std::vector<std::string> typed_text(std::string line) {
  if (is_blank(line)) throw DataError("the line is empty: type a text");
  return lines_of_text(std::move(line), "the line");
}

std::function<void(int64_t, int64_t)> progress_over(std::string_view title, std::string_view unit) {
  return [title = std::string(title), unit = std::string(unit), progress = std::shared_ptr<Progress>()](
             int64_t done, int64_t all) mutable {
    if (!progress && done == all) return;
    if (!progress) progress = std::make_shared<Progress>(title, ProgressCount{.total = all, .unit = unit});
    progress->update(done, "");
  };
}

void note_cut_texts(int64_t n_cut, int64_t n, const DataConfig& config) {
  if (n_cut == 0) return;
  std::cerr << fmt::format("note: {} of {} texts cut to {} tokens, as in training (data.sequence_length)\n",
                           n_cut, n, config.sequence_length);
}

}  // namespace zoo
