#include "apps/console/usage_problem.h"

#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace zoo {
namespace {

/// The command that was given, with the commands around it.
struct Command {
  std::vector<const CLI::App*> apps;  // the program first
  std::string path;                   // "zoo tokenizer train"

  const CLI::App& innermost() const { return *apps.back(); }
};

Command command_of(const CLI::App& app) {
  Command command{{&app}, app.get_name()};
  while (!command.innermost().get_subcommands().empty()) {
    command.apps.push_back(command.innermost().get_subcommands().front());
    command.path += " " + command.innermost().get_name();
  }
  return command;
}

/// All options that may stand after a command. --debug of the program may, too.
std::vector<const CLI::Option*> options_of(const Command& command) {
  std::vector<const CLI::Option*> options;
  for (const auto* app : command.apps) {
    for (const auto* option : app->get_options()) options.push_back(option);
  }
  return options;
}

/// The option whose name CLI11's message begins with: "--json: …", of a flag with a value "json was …".
const CLI::Option* named_option(const Command& command, std::string_view message) {
  for (const auto* option : options_of(command)) {
    if (message.starts_with(option->get_name() + ":")) return option;
    for (const auto& name : option->get_lnames()) {
      if (message.starts_with(name + " ")) return option;
    }
  }
  return nullptr;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* known : app.get_subcommands(nullptr)) names.push_back(known->get_name());
  return names;
}

std::string with_suggestion(std::string problem, const std::string& word,
                            const std::vector<std::string>& known) {
  if (const auto name = nearest(word, known)) problem += fmt::format("; did you mean '{}'?", *name);
  return problem;
}

std::string unknown_command(const Command& command, const std::string& word) {
  return with_suggestion(fmt::format("unknown command '{}'", word), word,
                         names_of_commands(command.innermost()));
}

std::string unknown_option(const Command& command, const std::string& word) {
  std::vector<std::string> known;
  for (const auto* option : options_of(command)) {
    for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  }
  return with_suggestion(fmt::format("unknown option '{}'", word), word, known);
}

std::string superfluous_argument(const Command& command, const std::string& word) {
  std::vector<std::string> taken;
  for (const auto* option : command.innermost().get_options()) {
    if (option->get_positional()) taken.push_back(option->get_name(/*positional=*/true));
  }
  const auto takes = taken.empty() ? "none" : fmt::format("{}", fmt::join(taken, " and "));
  for (const std::string text_option : {"--prompt", "--text"}) {
    const auto* const option = command.innermost().get_option_no_throw(text_option);
    if (option == nullptr) continue;
    const auto advice = option->count() > 0 ? "a text with blanks needs quotes"
                                            : fmt::format("give a text with {} \"…\"", text_option);
    return fmt::format("'{}' is one argument too many: {} takes {}; {}", word, command.path, takes, advice);
  }
  return fmt::format("'{}' is one argument too many: {} takes {}", word, command.path, takes);
}

/// Words that belong to no option.
std::string unexpected(const Command& command, const std::string& word) {
  if (word.starts_with('-') && word != "-") return unknown_option(command, word);
  return command.innermost().get_require_subcommand_min() > 0 ? unknown_command(command, word)
                                                              : superfluous_argument(command, word);
}

std::string missing(const Command& command, const CLI::ParseError& error) {
  if (command.innermost().get_require_subcommand_min() > 0) {
    return fmt::format("a command is required: {}", fmt::join(names_of_commands(command.innermost()), ", "));
  }
  for (const auto* option : command.innermost().get_options()) {
    if (option->get_required() && option->count() == 0) return option->get_name() + " is required";
  }
  return error.what();
}

/// An option with too many or too few values.
std::string wrong_number(const CLI::Option& option) {
  const auto name = option.get_name();
  if (option.get_items_expected_max() == 0) return name + " takes no value";
  if (option.count() > static_cast<size_t>(option.get_items_expected_max()))
    return fmt::format("{} is given {} times: give it once", name, option.count());
  return name + " needs a value";
}

/// The two names in CLI11's message "A WORD B".
std::pair<std::string, std::string> names_around(std::string_view message, std::string_view word) {
  const size_t at = message.find(word);
  if (at == message.npos) return {std::string(message), ""};
  return {std::string(message.substr(0, at)), std::string(message.substr(at + word.size()))};
}

template <class E>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

std::string problem_of(const Command& command, const std::vector<std::string>& superfluous,
                       const CLI::ParseError& error) {
  const std::string message = error.what();
  // A missing command may be there, but misspelt.
  const bool lacks_command = command.innermost().get_require_subcommand_min() > 0;
  if (!superfluous.empty() && (lacks_command || is<CLI::ExtrasError>(error)))
    return unexpected(command, superfluous.front());
  if (is<CLI::RequiredError>(error)) return missing(command, error);
  if (is<CLI::ExcludesError>(error)) {
    const auto [one, other] = names_around(message, " excludes ");
    return fmt::format("{} contradicts {}: give one of them", one, other);
  }
  if (is<CLI::RequiresError>(error)) {
    const auto [one, other] = names_around(message, " requires ");
    return fmt::format("{} needs {}: give both", one, other);
  }
  const auto* option = named_option(command, message);
  if (option && is<CLI::ArgumentMismatch>(error)) return wrong_number(*option);
  return message;  // of our own checks (apps/console/options.h)
}

}  // namespace

void refuse_values_of_flags(CLI::App& app) {
  for (auto* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) option->disable_flag_override();
  }
  for (auto* command : app.get_subcommands(nullptr)) refuse_values_of_flags(*command);
}

std::string usage_problem(const CLI::App& app, const CLI::ParseError& error) {
  const auto command = command_of(app);
  return fmt::format("{} (see {} --help)", problem_of(command, app.remaining(/*recurse=*/true), error),
                     command.path);
}

}  // namespace zoo
