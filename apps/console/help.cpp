#include "apps/console/help.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/console/terminal_width.h"
#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

/// `line` of help in lines of at most `columns`, as far as its blanks allow. Descriptions stay in their
/// column.
std::string wrapped_line(std::string_view line, size_t columns) {
  constexpr size_t description = 30;  // where CLI11 writes them
  if (count_code_points(line) <= columns) return std::string(line);
  const bool has_name = line.starts_with("  ") && line.size() > description && line[description - 1] == ' ' &&
                        line[description] != ' ';
  size_t indent = has_name ? description : std::min(line.find_first_not_of(' '), line.size());
  std::string text(line.substr(0, indent));
  line.remove_prefix(indent);
  constexpr size_t few = 20;  // columns for a description
  if (indent + few > columns) indent = 4;
  for (size_t used = count_code_points(text), first = used; !line.empty();) {
    const auto word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    const size_t width = count_code_points(word);
    if (used > first && used + 1 + width > columns) {
      text.append("\n").append(indent, ' ');
      used = first = indent;
    } else if (used > first) {
      text += ' ';
      ++used;
    }
    text.append(word);
    used += width;
  }
  return text;
}

class WrappingFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    const auto help = Formatter::make_help(app, std::move(name), mode);
    const size_t columns = columns_of_output().value_or(0);
    if (columns == 0) return help;
    std::string text;
    for (size_t begin = 0; begin < help.size();) {
      const size_t end = std::min(help.find('\n', begin), help.size());
      text += wrapped_line(std::string_view(help).substr(begin, end - begin), columns) + "\n";
      begin = end + 1;
    }
    return text;
  }
};

struct Example {
  std::string_view command, lines;
};
constexpr auto kExamples = std::to_array<Example>({
    {"train",
     "zoo train text.txt                            a GPT for this text\n"
     "zoo train reviews.tsv --out runs/reviews      a classifier for texts with labels\n"
     "zoo train gpt2 --set data.train=text.txt --steps 100 --batch-size 4"},
    {"generate",
     "zoo generate runs/text --prompt \"The sun\" --max-tokens 50\n"
     "zoo generate SmolLM2-135M-Instruct --chat --weights int8"},
    {"predict",
     "zoo predict runs/reviews --text \"what a film\"\n"
     "zoo predict runs/digits --image pictures/ --out page.html"},
    {"embed", "zoo embed runs/text --input lines.txt --normalize > vectors.tsv"},
    {"score", "zoo score runs/text --text \"to be or not to be\""},
    {"serve", "zoo serve runs/text --port 8080"},
    {"evaluate", "zoo evaluate runs/reviews --data more.tsv --json"},
    {"average", "zoo average runs/text --last 3 --out runs/averaged"},
    {"import", "zoo import SmolLM2-135M runs/smollm2"},
    {"export",
     "zoo export runs/text exported                 a directory for transformers\n"
     "zoo export runs/text text.gguf                a file for llama.cpp"},
    {"merge", "zoo merge runs/adapted runs/merged"},
    {"compare",
     "zoo compare a.yaml b.yaml --budget steps=300 --seeds 3\n"
     "zoo compare runs/a runs/b                     finished runs, side by side"},
    {"inspect", "zoo inspect gpt2 --set model.n_layers=6"},
    {"runs", "zoo runs                                      those in runs/, the newest first"},
    {"probe", "zoo probe attention=delta                         what holds for it, and its cost"},
    {"verify", "zoo verify docs/studies/heads.json            its first training"},
    {"bench", "zoo bench runs/text --seconds 2"},
    {"attention", "zoo attention runs/text --text \"the sun and the moon\" --out page.html"},
    {"config",
     "zoo config lr                                 what a key means\n"
     "zoo config gpt2 > mine.yaml                   all values of a configuration\n"
     "zoo config --list"},
    {"tokenizer", "zoo tokenizer encode runs/text --text \"the sun\""},
});

const CLI::App& command_at(const CLI::App& app, const std::vector<std::string>& names) {
  const CLI::App* command = &app;
  for (const auto& name : names) {
    const auto inner =
        command->get_subcommands([&](const CLI::App* known) { return known->get_name() == name; });
    if (inner.empty())
      throw UsageError(fmt::format("there is no command '{}': zoo help lists them", excerpt(name)));
    command = inner.front();
  }
  return *command;
}

}  // namespace

void wrap_help(CLI::App& app) { app.formatter(std::make_shared<WrappingFormatter>()); }

void add_help(CLI::App& app, const std::string& version) {
  for (auto* command : app.get_subcommands(nullptr)) {
    const auto example = std::ranges::find(kExamples, command->get_name(), &Example::command);
    if (example == kExamples.end()) continue;
    const std::string footer = command->get_footer();
    command->footer(fmt::format("{}{}Examples:\n{}", footer, footer.empty() ? "" : "\n\n", example->lines));
  }
  const auto names = std::make_shared<std::vector<std::string>>();
  auto* const help = app.add_subcommand("help", "Show the help of the program, or of a command");
  help->add_option("COMMAND", *names, "A command, such as train or tokenizer encode")->type_name("NAME");
  help->callback([&app, names] {
    const auto& command = command_at(app, *names);
    auto path = app.get_name();
    for (const auto& name : *names) path += " " + name;
    std::cout << command.get_formatter()->make_help(&command, path, CLI::AppFormatMode::Normal);
  });
  app.add_subcommand("version", "Show the versions of this program and of LibTorch")->callback([version] {
    std::cout << version << '\n';
  });
}

}  // namespace zoo
