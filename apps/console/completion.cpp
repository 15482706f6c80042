// zoo completion: a script with which a shell completes the commands of this program.

#include "apps/console/completion.h"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/console/options.h"
#include "apps/console/shell_word.h"
#include "io/config/find_config.h"
#include "tasks/experiment.h"

namespace zoo {
namespace {

enum class Shell { bash, zsh, fish };
constexpr auto config_names(Shell) { return std::to_array<std::string_view>({"bash", "zsh", "fish"}); }

/// What may follow a command: its own commands, or else its options.
std::string words_after(const CLI::App& command) {
  std::vector<std::string> words;
  for (const auto* inner : command.get_subcommands(nullptr)) words.push_back(inner->get_name());
  if (!words.empty()) return fmt::format("{}", fmt::join(words, " "));
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) words.push_back("--" + name);
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string keys() {
  std::vector<std::string> all;
  for (const auto& value : flatten(Experiment())) all.push_back(value.key + "=");
  return fmt::format("{}", fmt::join(all, " "));
}

std::string configurations() {
  std::vector<std::string> names;
  for (const auto& file : list_shipped_configs()) names.push_back(file.stem().string());
  return fmt::format("{}", fmt::join(names, " "));
}

/// zsh understands bash's script.
std::string script(const CLI::App& app, Shell shell) {
  std::string commands, cases;
  for (const auto* command : app.get_subcommands(nullptr)) {
    commands += (commands.empty() ? "" : "|") + command->get_name();
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), words_after(*command));
  }
  return fmt::format(
      R"({zsh}_{name}() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command="" words="" i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${{COMP_WORDS[i]}}" in {commands}) command="${{COMP_WORDS[i]}}"; break ;; esac
  done
  case "$command" in
{cases}    *) words="{first}" ;;
  esac
  if [[ $previous == --set ]]; then
    COMPREPLY=($(compgen -W "{keys}" -- "$word"))
    compopt -o nospace 2>/dev/null
  elif [[ -z $command || $command == tokenizer || $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [[ $command =~ ^(train|inspect|bench|compare|config)$ ]]; then
    COMPREPLY=($(compgen -W "{configurations}" -- "$word") $(compgen -f -- "$word"))
  fi
}}
complete -o default -F _{name} {name}
)",
      fmt::arg("zsh", shell == Shell::zsh ? "autoload -U +X bashcompinit && bashcompinit\n" : ""),
      fmt::arg("name", app.get_name()), fmt::arg("commands", commands), fmt::arg("cases", cases),
      fmt::arg("first", words_after(app)), fmt::arg("keys", keys()),
      fmt::arg("configurations", configurations()));
}

/// One line for each command, and for each option of a command.
std::string fish_script(const CLI::App& app) {
  const auto& name = app.get_name();
  std::string lines;
  const auto add_options = [&](const CLI::App& command, const std::string& where) {
    for (const auto* option : command.get_options()) {
      for (const auto& word : option->get_lnames())
        lines += fmt::format("complete -c {} -n '{}' -l {}{} -d {}\n", name, where, word,
                             option->get_items_expected_max() == 0 ? "" : " -r",
                             shell_word(option->get_description()));
    }
  };
  const auto add_command = [&](const CLI::App& command, const std::string& where) {
    lines += fmt::format("complete -c {} -n '{}' -f -a {} -d {}\n", name, where, command.get_name(),
                         shell_word(command.get_description()));
  };
  add_options(app, "__fish_use_subcommand");
  for (const auto* command : app.get_subcommands(nullptr)) {
    add_command(*command, "__fish_use_subcommand");
    const auto after = fmt::format("__fish_seen_subcommand_from {}", command->get_name());
    add_options(*command, after);
    for (const auto* inner : command->get_subcommands(nullptr)) add_command(*inner, after);
  }
  lines += fmt::format(
      "complete -c {} -n '__fish_seen_subcommand_from train inspect bench compare config' -a '{}'\n", name,
      configurations());
  return lines;
}

}  // namespace

void add_completion(CLI::App& app) {
  const auto shell = std::make_shared<Shell>();
  auto* command = app.add_subcommand("completion", "Print a script with which a shell completes commands");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->transform(one_of<Shell>())->required();
  command->footer(
      "For bash: source <(zoo completion bash). For zsh: source <(zoo completion zsh). For fish: "
      "zoo completion fish | source.");
  command->callback(
      [shell, &app] { std::cout << (*shell == Shell::fish ? fish_script(app) : script(app, *shell)); });
}

}  // namespace zoo
