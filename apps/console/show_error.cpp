#include "apps/console/show_error.h"

#include <iostream>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace zoo {
namespace {

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

}  // namespace

void show_error(const std::string& message) {
  constexpr size_t most = 4096;
  std::cerr << "zoo: " << excerpt(in_words_of_the_program(message), most) << '\n';
}

}  // namespace zoo
