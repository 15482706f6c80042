#include "apps/console/show_error.h"

#include <algorithm>
#include <iostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace zoo {
namespace {

/// `text` with `head` and `tail` characters around a mark, if it is longer.
std::string cut_in_the_middle(std::string_view text, size_t head, size_t tail) {
  const size_t n = count_code_points(text);
  if (n <= head + tail + 1) return std::string(text);
  return fmt::format("{}…{}", text.substr(0, byte_of_code_point(text, head)),
                     text.substr(byte_of_code_point(text, n - tail)));
}

/// A message of at most 300 characters: first names and values that are long are cut, then the message, whose
/// beginning says what is wrong and whose end what to do.
std::string in_one_line(const std::string& message) {
  constexpr size_t most = 300, of_word = 40, tail = 100;
  if (count_code_points(message) <= most) return message;
  std::string text;
  for (size_t begin = 0; begin < message.size();) {
    const size_t end = std::min(message.find(' ', begin), message.size() - 1) + 1;
    text += cut_in_the_middle(std::string_view(message).substr(begin, end - begin), of_word, of_word);
    begin = end;
  }
  return cut_in_the_middle(text, most - tail - 1, tail);
}

}  // namespace

std::string in_words_of_the_program(std::string message) {
  constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
      {"ExistingRun::resume", "--resume"},
      {"ExistingRun::replace", "--overwrite"},
      {"TrainOptions::run_dir", "--out"},
      {"TrainOptions::device", "--device"},
      {"CompareOptions::dir", "--out"},
      {"AverageOptions::out", "--out"},
      {"AverageOptions::last", "--last"},
      {"AttentionRequest::target", "--target"},
      {"merge_run()", "zoo merge"},
      {"launch()", "--nproc"},
      {"LibTorch sees no GPU here", "LibTorch sees no GPU here (zoo doctor says why)"}};
  for (const auto& [library, program] : kOptions) {
    for (size_t at = 0; (at = message.find(library, at)) != message.npos; at += program.size())
      message.replace(at, library.size(), program);
  }
  return message;
}

void show_error(const std::string& message, ErrorLength length) {
  constexpr size_t most = 1 << 20;
  const auto text = excerpt(in_words_of_the_program(message), most);
  std::cerr << "zoo: " << (length == ErrorLength::whole ? text : in_one_line(text)) << '\n';
}

}  // namespace zoo
