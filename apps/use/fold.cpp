#include "apps/use/fold.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/console/standard_input.h"
#include "base/error.h"
#include "base/text.h"
#include "data/structures/ca_trace.h"
#include "data/structures/formats.h"
#include "data/structures/sequences.h"
#include "data/text_files.h"
#include "io/files.h"
#include "io/json_document.h"
#include "pages/structures/predicted_structure.h"
#include "tasks/structures/folded_chain.h"

namespace zoo {
namespace {

/// The name of a file, without directories and special characters, and not twice.
std::string file_name(const std::string& name, std::set<std::string>& taken) {
  constexpr size_t longest = 200;
  std::string plain;
  for (const char c : name.substr(0, longest)) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                          c == '_' || c == '-' || (c == '.' && !plain.empty());
    plain += is_plain ? c : '_';
  }
  if (plain.empty()) plain = "sequence";
  std::string unique = plain;
  for (int64_t n = 2; !taken.insert(ascii_lower(unique)).second; ++n) unique = fmt::format("{}-{}", plain, n);
  return unique;
}

std::vector<NamedSequence> sequences_of(const FoldArguments& arguments) {
  std::vector<NamedSequence> sequences;
  for (const auto& text : arguments.texts.texts)
    sequences.push_back({.name = "sequence", .letters = checked_sequence(text, "--text")});
  for (const auto& file : arguments.texts.files)
    std::ranges::move(read_sequences(file), std::back_inserter(sequences));
  if (!arguments.texts.names_texts()) {
    const auto input =
        checked_text(standard_input("type sequences, or give --text or --input"), "standard input");
    for (const auto line : lines_of(input)) {
      if (!is_blank(line))
        sequences.push_back({.name = "sequence", .letters = checked_sequence(line, "standard input")});
    }
  }
  std::set<std::string> taken;
  for (auto& sequence : sequences) sequence.name = file_name(sequence.name, taken);
  return sequences;
}

/// Numbers with two digits behind the point, which is more than a model knows.
nlohmann::json rounded(const std::vector<double>& numbers) {
  auto list = nlohmann::json::array();
  for (const double number : numbers) list.push_back(std::round(number * 100) / 100);
  return list;
}

nlohmann::ordered_json or_null(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

/// A number with so many digits behind the point, or -.
std::string or_dash(const std::optional<double>& number, int digits) {
  return number ? fmt::format("{:.{}f}", *number, digits) : "-";
}

nlohmann::ordered_json json_of(const NamedSequence& sequence, const FoldedChain& folded,
                               const std::optional<SuperposedTraces>& truth) {
  auto errors = folded.aligned_error.defined() ? nlohmann::json::array() : nlohmann::json();
  for (int64_t i = 0; folded.aligned_error.defined() && i < folded.aligned_error.size(0); ++i) {
    const auto row = folded.aligned_error[i];
    const auto* const first = row.const_data_ptr<float>();
    errors.push_back(rounded({first, first + row.numel()}));
  }
  nlohmann::ordered_json result{{"name", sequence.name},
                                {"sequence", sequence.letters},
                                {"mean_plddt", or_null(folded.mean_plddt)},
                                {"ptm", or_null(folded.tm_score)},
                                {"plddt", rounded(folded.plddt)},
                                {"predicted_aligned_error", std::move(errors)}};
  if (truth) result["truth"] = to_json(*truth);
  return result;
}

}  // namespace

void fold_sequences(const FoldArguments& arguments, const Run& run) {
  if (arguments.format && !arguments.out)
    throw UsageError("--format: is for the files of structures: give --out, too");
  if (arguments.pages && !arguments.out) throw UsageError("--page: give the directory with --out, too");
  const auto& out = arguments.out;
  if (out && out->empty()) throw UsageError("--out: the name is empty: give a directory");
  if (out && is_there(*out) && !has_directory(*out))
    throw UsageError(fmt::format("--out: {} is not a directory", out->string()));
  const auto format = arguments.format.value_or(StructureFormat::pdb);
  const auto passes = arguments.recycles ? std::optional(*arguments.recycles + 1) : std::nullopt;
  const auto sequences = sequences_of(arguments);
  const auto true_trace =
      arguments.truth ? std::optional(ca_trace(read_structure(*arguments.truth), arguments.truth->string()))
                      : std::nullopt;
  if (out) make_directory(*out);
  const auto show = progress_over("folding", "chains");
  auto results = nlohmann::ordered_json::array();
  int64_t n_done = 0;
  for (const auto& sequence : sequences) {
    const auto folded = fold_chain(run.model(), sequence, passes);
    std::optional<SuperposedTraces> truth;
    if (arguments.pages || true_trace) {
      auto trace = ca_trace(folded.structure, sequence.name);
      if (true_trace) truth = superposed(trace, sequence.name, *true_trace, arguments.truth->string());
      if (arguments.pages) {
        write_file_atomically(
            *out / fmt::format("{}.html", sequence.name),
            structure_page(shown_prediction(sequence.name, folded, std::move(trace), truth,
                                            arguments.truth ? arguments.truth->filename().string() : "")));
      }
    }
    if (out) {
      const auto text =
          format == StructureFormat::pdb ? to_pdb(folded.structure) : to_mmcif(folded.structure);
      write_file_atomically(*out / fmt::format("{}.{}", sequence.name, name_of(format)), text);
    }
    if (arguments.json) {
      results.push_back(json_of(sequence, folded, truth));
    } else {
      std::cout << fmt::format("{}\t{}\t{}\t{}{}\n", sequence.name, sequence.letters.size(),
                               or_dash(folded.mean_plddt, 1), or_dash(folded.tm_score, 3),
                               truth ? to_columns(*truth) : "")
                << std::flush;
    }
    show(++n_done, std::ssize(sequences));
  }
  if (arguments.json)
    std::cout << shown_json(nlohmann::ordered_json{{"results", std::move(results)}}) << '\n';
  if (out) {
    std::cerr << fmt::format("{} structure{} in {}\n", sequences.size(), sequences.size() == 1 ? "" : "s",
                             out->string());
  }
}

}  // namespace zoo
