// zoo structure: what a file of a protein's structure has, how alike two are, and a page that shows them.

#include "data/structures/structure.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "data/structures/ca_trace.h"
#include "io/files.h"
#include "io/json_document.h"
#include "pages/structures/structure_page.h"

namespace zoo {
namespace {

struct StructureArguments {
  std::filesystem::path file;
  std::optional<std::filesystem::path> truth, out;
  bool json = false;
};

CaTrace read_trace(const std::filesystem::path& file) {
  return ca_trace(read_structure(file), file.string());
}

nlohmann::ordered_json json_of(const CaTrace& trace, const std::optional<SuperposedTraces>& truth) {
  nlohmann::ordered_json document{{"chains", trace.chains}, {"residues", trace.letters.size()}};
  if (truth) document["truth"] = to_json(*truth);
  return document;
}

void show_structure(const StructureArguments& arguments) {
  const auto& file = arguments.file;
  ShownStructure shown{.title = file.filename().string(), .trace = read_trace(file)};
  if (arguments.truth) {
    shown.truth =
        superposed(shown.trace, file.string(), read_trace(*arguments.truth), arguments.truth->string());
    shown.truth_title = arguments.truth->filename().string();
  }
  const auto& trace = shown.trace;
  if (arguments.json) {
    std::cout << shown_json(json_of(trace, shown.truth)) << '\n';
  } else {
    std::cout << fmt::format("{}\t{}\t{}", shown.title, trace.chains.size(), trace.letters.size());
    if (shown.truth) std::cout << to_columns(*shown.truth);
    std::cout << '\n';
  }
  if (!arguments.out) return;
  write_file_atomically(*arguments.out, structure_page(shown), Follow::everything);
  std::cerr << "structure: " << arguments.out->string() << '\n';
}

}  // namespace

void add_structure(CLI::App& app) {
  const auto arguments = std::make_shared<StructureArguments>();
  auto* command = app.add_subcommand(
      "structure", "Show the structure of a protein on a page, and how alike it is to another one");
  command->add_option("file", arguments->file, "The structure: PDB or mmCIF, also with .gz")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("truth", arguments->truth,
                   "Another structure of the protein, which counts as the truth and is laid onto the first")
      ->type_name("TRUTH");
  command->add_option("--out", arguments->out, "Also write a page that shows the structure, or both")
      ->type_name("FILE");
  add_json(
      *command, arguments->json,
      "One JSON document: {\"chains\", \"residues\", \"truth\": {\"residues\", \"paired\", \"tm_score\", "
      "\"lddt\", \"rmsd\"}}");
  command->footer(
      "Prints the name of the file, the number of its chains of proteins, and of their residues with a CA "
      "atom; with TRUTH also the residues that both have, the TM-score, the lDDT and the RMSD in Å, all of "
      "CA atoms, separated by tabs. Chains and residues are paired by their sequences. The TM-score is "
      "divided by the length of the true chains. Of several models the first one counts.");
  command->callback([arguments] { show_structure(*arguments); });
}

}  // namespace zoo
