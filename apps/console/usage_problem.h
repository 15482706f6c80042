#pragma once
// Errors of the command line in our own words.

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace zoo {

/// To be called once all options are declared: a flag then takes no value (--json=1 is an error).
void refuse_values_of_flags(CLI::App& app);

/// One line for an error that CLI11 found: what is wrong with the command line, what to do, and the command
/// whose --help says more.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error);

}  // namespace zoo
