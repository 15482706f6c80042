#pragma once
// The program's help: `zoo help`, examples, and lines that fit the terminal.

#include <string>

namespace CLI {
class App;
}

namespace zoo {

/// To be called before the first command is declared: help then fits the terminal that it is written to.
void wrap_help(CLI::App& app);

/// To be called after the last command: declares `zoo help COMMAND` and `zoo version`, which prints
/// `version`, and shows examples in the help of each command.
void add_help(CLI::App& app, const std::string& version);

}  // namespace zoo
