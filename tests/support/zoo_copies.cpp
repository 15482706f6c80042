// Runs commands of the program for tests in Python (support/zoo_copies.py), each in a copy of this process.
//
// Each line of standard input is a command: {"words": [...], "directory": D, "environment": {...}, "input":
// FILE, "output": FILE, "errors": FILE}. The answer on standard output is its exit code, or minus the signal
// that ended it.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/program_copy.h"

namespace {

void redirect(int stream, const std::string& file, int flags) {
  const int opened = ::open(file.c_str(), flags | O_CLOEXEC);
  if (opened < 0 || ::dup2(opened, stream) < 0) ::_exit(99);
}

[[noreturn]] void run(const nlohmann::json& command) {
  ::clearenv();
  for (const auto& [name, value] : command.at("environment").items()) {
    ::setenv(name.c_str(), value.get<std::string>().c_str(), 1);
  }
  if (::chdir(command.at("directory").get<std::string>().c_str()) != 0) ::_exit(99);
  redirect(STDIN_FILENO, command.at("input"), O_RDONLY);
  redirect(STDOUT_FILENO, command.at("output"), O_WRONLY);
  redirect(STDERR_FILENO, command.at("errors"), O_WRONLY);
  zoo::testing::be_program(command.at("words"));
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto command = nlohmann::json::parse(line);
    const pid_t child = ::fork();
    if (child == 0) run(command);
    int status = 0;
    ::waitpid(child, &status, 0);
    std::cout << (WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status)) << std::endl;
  }
}
