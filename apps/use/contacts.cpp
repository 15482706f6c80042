// zoo contacts: which residues of a protein touch, to a language model of proteins.

#include "analysis/contacts.h"

#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/contact_fit.h"
#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/run_arguments.h"
#include "apps/console/texts.h"
#include "base/error.h"
#include "data/images/image_file.h"
#include "io/files.h"
#include "io/json_document.h"
#include "models/families/families.h"
#include "pages/json.h"
#include "statistics/paired_test.h"

namespace zoo {
namespace {

enum class Printed { lines, json };

struct ContactArguments {
  RunArguments run;
  std::optional<std::string> text;
  std::optional<std::filesystem::path> out, fit, test;
  std::optional<int64_t> top, separation, chains;
  bool json = false;
};

constexpr int64_t kPictureSize = 512;  // pixels of a side, about
constexpr int64_t kSeparation = 6, kFittedFiles = 20;

void show_map(const ContactArguments& arguments, const ContactMap& map) {
  const auto n = std::ssize(map.residues);
  if (arguments.json) {
    std::cout << to_json(map) << '\n';
  } else {
    for (const auto& [first, second, probability] :
         likeliest_contacts(map, arguments.separation.value_or(kSeparation), arguments.top.value_or(n))) {
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

/// One line of the table: the interval of a share over proteins.
struct ContactRow {
  std::string_view weights, range, pairs;
  Interval share;
};

void add_rows(std::string_view weights, const std::vector<ContactPrecisions>& proteins,
              std::vector<ContactRow>& rows) {
  constexpr auto names = std::to_array<std::string_view>({"L", "L/2", "L/5"});
  for (size_t range = 0; range < kContactRanges; ++range) {
    const auto add = [&](std::string_view which, std::string_view pairs, const auto& value_of) {
      std::vector<double> values;
      for (const auto& protein : proteins) {
        if (protein[range]) values.push_back(value_of(*protein[range]));
      }
      const auto name = config_names(ContactRange{})[range];
      if (!values.empty()) rows.push_back({which, name, pairs, mean_interval(values)});
    };
    for (size_t share = 0; share < kContactShares; ++share)
      add(weights, names[share], [share](const auto& precision) { return precision.likeliest[share]; });
    if (weights == "run") add("chance", "all", [](const auto& precision) { return precision.chance; });
  }
}

void print(const std::vector<ContactRow>& rows, Printed form) {
  const auto number = [](std::optional<double> value) {
    return value ? fmt::format("{:.4f}", *value) : std::string("-");
  };
  auto list = nlohmann::ordered_json::array();
  for (const auto& [weights, range, pairs, share] : rows) {
    if (form == Printed::lines) {
      std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\n", weights, range, pairs, number(share.mean),
                               number(share.low), number(share.high), share.n);
      continue;
    }
    list.push_back({{"weights", weights},
                    {"range", range},
                    {"pairs", pairs},
                    {"precision", share.mean},
                    {"low", or_null(share.low)},
                    {"high", or_null(share.high)},
                    {"chains", share.n}});
  }
  if (form == Printed::json) std::cout << shown_json(nlohmann::ordered_json{{"precision", list}}) << '\n';
}

/// The proteins that the model can read, with two special tokens.
std::vector<KnownContacts> readable(std::vector<KnownContacts> proteins, const std::filesystem::path& path,
                                    const Run& run) {
  constexpr int64_t n_special = 2;
  const auto all = proteins.size();
  const auto n_long = std::erase_if(proteins, [&](const KnownContacts& protein) {
    return std::ssize(protein.letters) + n_special > run.experiment().model.max_positions;
  });
  if (proteins.empty())
    throw DataError(fmt::format("{}: all chains are longer than the model reads", path.string()));
  if (n_long > 0) {
    std::cerr << fmt::format("note: {} of {} chains {} longer than the model reads, and {} left out\n",
                             n_long, all, n_long == 1 ? "is" : "are", n_long == 1 ? "is" : "are");
  }
  return proteins;
}

ContactRegression fitted(Model& model, const Run& run, std::span<const KnownContacts> proteins) {
  return fitted_regression(model, run.tokenizer(), proteins, progress_over("fitting", "chains"));
}

std::vector<KnownContacts> proteins_to_fit(const ContactArguments& arguments, const Run& run) {
  auto proteins = known_contacts(*arguments.fit, arguments.chains.value_or(kFittedFiles));
  return readable(std::move(proteins), *arguments.fit, run);
}

void measure(const ContactArguments& arguments, const Run& run) {
  require_maps(run);
  if (!arguments.fit) regression_of(run);
  const auto to_fit = arguments.fit ? proteins_to_fit(arguments, run) : std::vector<KnownContacts>{};
  const auto proteins = readable(known_contacts(*arguments.test), *arguments.test, run);
  std::vector<ContactRow> rows;
  const auto add = [&](std::string_view weights, Model& model) {
    const auto own = arguments.fit ? fitted(model, run, to_fit) : ContactRegression(nullptr);
    add_rows(weights,
             contact_precisions(model, run.tokenizer(), own ? *own : regression_of(run), proteins,
                                progress_over("measuring", "chains")),
             rows);
  };
  add("run", run.model());
  if (arguments.fit) {
    torch::manual_seed(1);
    const auto random = initialized_model(run.experiment().model, run.task().purpose());
    random->to(run.model().device());
    add("random", *random);
  }
  print(rows, arguments.json ? Printed::json : Printed::lines);
}

void check(const ContactArguments& arguments) {
  if (arguments.text.has_value() == arguments.test.has_value())
    throw UsageError("give either --text, a protein, or --test, structures that contacts are measured on");
  if (arguments.chains && !arguments.fit) throw UsageError("--chains: is for --fit: give both");
  const char* const unused = !arguments.test        ? nullptr
                             : arguments.out        ? "--out"
                             : arguments.top        ? "--top"
                             : arguments.separation ? "--separation"
                                                    : nullptr;
  if (unused) throw UsageError(fmt::format("{}: is for --text: leave it out", unused));
}

void show_contacts(const ContactArguments& arguments) {
  check(arguments);
  const auto run = open_run(arguments.run);
  if (arguments.test) return measure(arguments, run);
  if (!arguments.fit) return show_map(arguments, contact_map(run, *arguments.text));
  require_maps(run);
  show_map(arguments,
           contact_map(run, *arguments.text, *fitted(run.model(), run, proteins_to_fit(arguments, run))));
}

}  // namespace

void add_contacts(CLI::App& app) {
  const auto arguments = std::make_shared<ContactArguments>();
  auto* command = app.add_subcommand(
      "contacts",
      "Show which residues of a protein touch, from the attention of a language model of proteins");
  add_run(*command, arguments->run.dir);
  command->add_option("--text", arguments->text, "The protein, one letter a residue")->type_name("TEXT");
  command
      ->add_option("--fit", arguments->fit,
                   "Structures, a file or a folder (PDB, mmCIF): the regression is fitted to them here, in "
                   "place of the model's own")
      ->type_name("PATH");
  command
      ->add_option("--chains", arguments->chains,
                   fmt::format("Fit to the first N files of --fit; default: {}", kFittedFiles))
      ->type_name("N")
      ->check(whole_number(1));
  command
      ->add_option("--test", arguments->test,
                   "In place of --text: structures on which the contacts are measured")
      ->type_name("PATH");
  command
      ->add_option(
          "--separation", arguments->separation,
          fmt::format("Only pairs that are at least N residues apart in the chain; default: {}", kSeparation))
      ->type_name("N")
      ->check(whole_number(1));
  command
      ->add_option("--top", arguments->top,
                   "The N likeliest pairs; default: as many as the protein has residues")
      ->type_name("N")
      ->check(whole_number(1));
  command->add_option("--out", arguments->out, "Also write the map as a picture (PNG): dark pairs touch")
      ->type_name("FILE");
  add_json(*command, arguments->json,
           "One JSON document: {\"text\", \"residues\", \"contacts\": the probability of each pair}, or with "
           "--test {\"precision\": [{\"weights\", \"range\", \"pairs\", \"precision\", \"low\", "
           "\"high\", \"chains\"}]}");
  add_base(*command, arguments->run.base);
  add_weights(*command, arguments->run.weights);
  add_device(*command, arguments->run.device);
  command->footer(
      "Prints a line for each pair, the likeliest first: place and letter of both residues, counted from 1, "
      "and the probability that they touch (that their CB atoms are within 8 Å), separated by tabs. The run "
      "must have the regression of a published ESM model, or one is fitted to known structures (--fit). With "
      "--test it prints how precise the likeliest pairs are, as Rao et al. (2021) measure them: whose "
      "weights (the run's, with --fit also random ones, and chance: the share of all pairs that touch), how "
      "far "
      "apart the pairs are in the chain (short: 6 to 11 residues, medium: 12 to 23, long: 24 and more), the "
      "number of pairs (of a chain of L residues the L, L/2 and L/5 likeliest), the share of them that "
      "touch, its "
      "95 % interval over the chains, and the number of chains.");
  command->callback([arguments] { show_contacts(*arguments); });
}

}  // namespace zoo
