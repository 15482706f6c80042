// zoo contacts: which residues of a protein touch, to a language model of proteins.

#include "analysis/contacts.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/run_arguments.h"
#include "data/images/image_file.h"
#include "io/files.h"

namespace zoo {
namespace {

struct ContactArguments {
  RunArguments run;
  std::string text;
  std::optional<std::filesystem::path> out;
  std::optional<int64_t> top;
  int64_t separation = 6;
  bool json = false;
};

constexpr int64_t kPictureSize = 512;  // pixels of a side, about

void show_contacts(const ContactArguments& arguments) {
  const auto run = open_run(arguments.run);
  const auto map = contact_map(run, arguments.text);
  const auto n = std::ssize(map.residues);
  if (arguments.json) {
    std::cout << to_json(map) << '\n';
  } else {
    for (const auto& [first, second, probability] :
         likeliest_contacts(map, arguments.separation, arguments.top.value_or(n))) {
      std::cout << fmt::format("{}\t{}\t{}\t{}\t{:.4f}\n", first + 1,
                               map.residues[static_cast<size_t>(first)], second + 1,
                               map.residues[static_cast<size_t>(second)], probability);
    }
  }
  if (!arguments.out) return;
  const auto picture = picture_of(map, std::max<int64_t>(1, kPictureSize / n));
  write_file_atomically(*arguments.out, encode_png(picture), Follow::everything);
  std::cerr << "map of contacts: " << arguments.out->string() << '\n';
}

}  // namespace

void add_contacts(CLI::App& app) {
  const auto arguments = std::make_shared<ContactArguments>();
  auto* command = app.add_subcommand(
      "contacts",
      "Show which residues of a protein touch, from the attention of a language model of proteins");
  add_run(*command, arguments->run.dir);
  command->add_option("--text", arguments->text, "The protein, one letter a residue")
      ->type_name("TEXT")
      ->required();
  command
      ->add_option("--separation", arguments->separation,
                   "Only pairs that are at least N residues apart in the chain")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  command
      ->add_option("--top", arguments->top,
                   "The N likeliest pairs; default: as many as the protein has residues")
      ->type_name("N")
      ->check(whole_number(1));
  command->add_option("--out", arguments->out, "Also write the map as a picture (PNG): dark pairs touch")
      ->type_name("FILE");
  add_json(*command, arguments->json,
           "One JSON document: {\"text\", \"residues\", \"contacts\": the probability of each pair}");
  add_base(*command, arguments->run.base);
  add_weights(*command, arguments->run.weights);
  add_device(*command, arguments->run.device);
  command->footer(
      "Prints a line for each pair, the likeliest first: place and letter of both residues, counted from 1, "
      "and the probability that they touch (that their CB atoms are within 8 Å), separated by tabs. The run "
      "must have the regression of a published ESM model.");
  command->callback([arguments] { show_contacts(*arguments); });
}

}  // namespace zoo
