#pragma once
// A copy of this process that is the program. LibTorch takes half a second to load, and a copy has it
// already.

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "apps/command_line.h"

namespace zoo::testing {

/// In a child process with one thread: `zoo WORDS`. Returns the exit code.
inline int run_program(std::vector<std::string> words) {
  words.insert(words.begin(), "zoo");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return command_line(static_cast<int>(words.size()), arguments.data());
}

/// The same as the end of the process. It destroys no objects of its parent.
[[noreturn]] inline void be_program(std::vector<std::string> words) {
  const int code = run_program(std::move(words));
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace zoo::testing
