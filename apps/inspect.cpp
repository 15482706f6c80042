// zoo inspect: the modules of a model and what they cost.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/run_arguments.h"
#include "apps/console/terminal_width.h"
#include "base/device.h"
#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "checkpoints/stored_model.h"
#include "experiments/own_text.h"
#include "io/json_document.h"
#include "io/text_width.h"
#include "models/families/families.h"
#include "models/families/model_cost.h"
#include "tasks/preparation.h"
#include "tasks/problem.h"
#include "tasks/task.h"

namespace zoo {
namespace {

struct InspectArguments {
  std::string target;
  std::filesystem::path base;  // of an adapter
  std::vector<std::string> overrides;
  int64_t length = 0;
  bool json = false;
};

// The purpose of the task's model. Reads the corpus only if the configuration is not enough to know it.
ModelPurpose purpose_of(const Experiment& experiment) {
  const auto& tokenizer = experiment.data.tokenizer;
  const bool size_known = experiment.model.vocab_size || learns_vocabulary(tokenizer.type);
  const auto& type = task_type(experiment);
  const int64_t vocab_size = experiment.model.vocab_size.value_or(tokenizer.vocab_size);
  const bool can_tell = type.purpose && (size_known || !type.needs_tokenizer());
  const auto purpose = can_tell ? type.purpose(experiment, vocab_size) : std::nullopt;
  if (purpose) return *purpose;
  if (const auto note = learning_note(experiment)) std::cerr << *note << '\n';
  return task_of_new_run(experiment)->purpose();
}

// 124439808 → "124,439,808"
std::string with_commas(int64_t n) {
  auto text = std::to_string(n);
  for (auto i = static_cast<int64_t>(text.size()) - 3; i > 0; i -= 3)
    text.insert(static_cast<size_t>(i), 1, ',');
  return text;
}

// 1.7e9 → "1.70 G"
std::string with_prefix(double value) {
  constexpr std::array<const char*, 5> kPrefixes{"", "k", "M", "G", "T"};
  size_t i = 0;
  for (; value >= 999.5 && i + 1 < kPrefixes.size(); ++i) value /= 1000;
  return i == 0 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g} {}", value, kPrefixes[i]);
}

/// Layers that are alike.
struct Row {
  LayerCost cost;                  // of each
  std::vector<std::string> parts;  // of the name; "0-3" where layers with these numbers are alike
  int64_t count = 1;

  std::string name() const { return fmt::format("{}", fmt::join(parts, ".")); }
};

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

std::optional<int64_t> number_in(const std::string& part) {
  if (part.empty() || part.find_first_not_of("0123456789") != part.npos) return std::nullopt;
  return std::stoll(part);
}

/// Joins rows whose names differ only in part number `at`, where the numbers follow one another.
std::vector<Row> folded(const std::vector<Row>& rows, size_t at) {
  struct Open {
    size_t row;
    int64_t first, last;
  };
  std::vector<Row> result;
  std::map<std::string, Open> seen;
  for (const auto& row : rows) {
    const auto number = at < row.parts.size() ? number_in(row.parts[at]) : std::nullopt;
    if (!number) {
      result.push_back(row);
      continue;
    }
    auto alike = row;
    alike.parts[at] = "*";
    const auto key = fmt::format("{} {} {}", alike.name(), row.cost.shape, row.count);
    if (const auto it = seen.find(key); it != seen.end() && it->second.last + 1 == *number) {
      auto& open = it->second;
      open.last = *number;
      result[open.row].parts[at] = fmt::format("{}-{}", open.first, open.last);
      result[open.row].count += row.count;
      continue;
    }
    seen[key] = {result.size(), *number, *number};
    result.push_back(row);
  }
  return result;
}

/// Equal layers that follow one another share one row, and so do equal blocks of layers.
std::vector<Row> rows_of(const ModelCost& cost) {
  std::vector<Row> rows;
  size_t longest = 0;
  for (const auto& layer : cost.layers) {
    rows.push_back({layer, parts_of(layer.name)});
    longest = std::max(longest, rows.back().parts.size());
  }
  for (size_t at = 0; at < longest; ++at) rows = folded(rows, at);
  return rows;
}

/// At most `width` characters of a name, of which the end says most.
std::string fitted(const std::string& name, size_t width) {
  if (width_of(name) <= width) return name;
  size_t begin = 0;
  while (width_of(std::string_view(name).substr(begin)) >= width)
    for (++begin; begin < name.size() && (static_cast<unsigned char>(name[begin]) & 0xC0) == 0x80;) ++begin;
  return "…" + name.substr(begin);
}

/// "4.7 kB of cache per token to generate, and 1.2 MB per sequence"; empty for a model that does not
/// generate.
std::string cache_text(const ModelCost& cost, const ModelPurpose& purpose) {
  if (purpose.head != HeadKind::language_modeling) return "";
  auto text = fmt::format(";\n                      {}B of cache per token to generate",
                          with_prefix(static_cast<double>(cost.cache_bytes_per_token)));
  if (cost.state_bytes > 0)
    text += fmt::format(", and {}B per sequence", with_prefix(static_cast<double>(cost.state_bytes)));
  return text;
}

/// Whether a head says classes, labels or a score.
bool classifies(const ModelPurpose& purpose) {
  return purpose.head == HeadKind::classification || purpose.head == HeadKind::token_classification;
}

/// `unit`: what the cost is for.
void print_table(const Experiment& experiment, const ModelCost& cost, const ModelPurpose& purpose,
                 int64_t length, const std::string& unit) {
  const std::string where =
      unit == "token" ? fmt::format(", at sequences of {} tokens", length) : std::string();
  std::cout << fmt::format("{} ({})\n\n", experiment.name, experiment.model.architecture.type);
  const auto rows = rows_of(cost);
  size_t names = 6, shapes = 5;  // of the headings
  for (const auto& row : rows) {
    names = std::max(names, width_of(row.name()));
    shapes = std::max(shapes, width_of(row.cost.shape));
  }
  constexpr size_t numbers = 1 + 1 + 15 + 1 + 7 + 1 + 13, least = 20;
  if (const auto columns = columns_of_output(); columns && names + shapes + numbers > *columns) {
    const size_t rest = *columns - std::min(*columns, numbers);
    shapes = std::min(shapes, std::max(least, rest / 2));
    names = std::min(names, std::max(least, rest - std::min(rest, shapes)));
  }
  std::cout << fmt::format("{:<{}} {:<{}} {:>15} {:>7} {:>13}\n", "module", names, "shape", shapes,
                           "parameters", "share", "FLOPs/" + unit);
  for (const auto& row : rows) {
    const auto& layer = row.cost;
    const int64_t parameters = row.count * layer.parameters;
    std::cout << fmt::format("{:<{}} {:<{}} {:>15} {:>6.1f}% {:>13}\n", fitted(row.name(), names), names,
                             fitted(layer.shape, shapes), shapes, with_commas(parameters),
                             100.0 * static_cast<double>(parameters) / static_cast<double>(cost.parameters),
                             with_prefix(static_cast<double>(row.count) * layer.flops_per_token));
  }
  std::cout << fmt::format("\nparameters            {}\n", with_commas(cost.parameters));
  if (cost.active_parameters != cost.parameters)
    std::cout << fmt::format("that work for a token {}\n", with_commas(cost.active_parameters));
  std::cout << fmt::format("{:<21} {} forward, {} training{}\n", "FLOPs per " + unit,
                           with_prefix(cost.flops_per_token), with_prefix(3 * cost.flops_per_token), where);
  std::cout << fmt::format(
      "memory                {}B of weights; {}B to train with Adam, and {}B per {} of the batch{} (all "
      "float32)\n",
      with_prefix(static_cast<double>(cost.weight_bytes)),
      with_prefix(static_cast<double>(cost.training_bytes)),
      with_prefix(static_cast<double>(cost.activation_bytes_per_token)), unit, cache_text(cost, purpose));
  if (!classifies(purpose)) return;
  const auto problem = problem_of(experiment);
  std::cout << fmt::format("answer                {} (task.problem {})\n",
                           answer_of(problem, purpose.n_classes), name_of(problem));
}

// {"name", "architecture", "sequence_length", "embedding": how texts become vectors, "weights": how
// `zoo generate --weights auto` stores them on this machine, "parameters",
// "active_parameters": those that work for a token, "flops_per_token",
//  "memory": {"weight_bytes", "training_bytes", "activation_bytes_per_token", "cache_bytes_per_token",
//             "state_bytes": of a sequence in generation, whatever its length},
//  "head": {"problem": as task.problem, "activation": "softmax", "sigmoid" or "none", "outputs"}, null if the
//  model does not classify,
//  "layers": [{"name", "kind", "shape", "parameters", "flops_per_token", "activation_bytes_per_token"}]}
void print_json(const Experiment& experiment, const ModelCost& cost, const ModelPurpose& purpose,
                int64_t length, WeightFormat weights) {
  nlohmann::ordered_json head = nullptr;
  if (classifies(purpose)) {
    const auto problem = problem_of(experiment);
    head = {{"problem", name_of(problem)},
            {"activation", activation_of(problem)},
            {"outputs", purpose.n_classes}};
  }
  auto layers = nlohmann::ordered_json::array();
  for (const auto& layer : cost.layers) {
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"shape", layer.shape},
                      {"parameters", layer.parameters},
                      {"flops_per_token", layer.flops_per_token},
                      {"activation_bytes_per_token", layer.activation_bytes_per_token}});
  }
  const nlohmann::ordered_json document{{"name", experiment.name},
                                        {"architecture", experiment.model.architecture.type},
                                        {"sequence_length", length},
                                        {"embedding", to_text(experiment.embedding)},
                                        {"weights", name_of(weights)},
                                        {"parameters", cost.parameters},
                                        {"active_parameters", cost.active_parameters},
                                        {"flops_per_token", cost.flops_per_token},
                                        {"memory",
                                         {{"weight_bytes", cost.weight_bytes},
                                          {"training_bytes", cost.training_bytes},
                                          {"activation_bytes_per_token", cost.activation_bytes_per_token},
                                          {"cache_bytes_per_token", cost.cache_bytes_per_token},
                                          {"state_bytes", cost.state_bytes}}},
                                        {"head", head},
                                        {"layers", layers}};
  std::cout << shown_json(document, 2) << '\n';
}

void inspect(const InspectArguments& arguments) {
  Experiment experiment;
  ModelPurpose purpose;
  auto origin = ModelOrigin::run;
  if (names_stored_model(arguments.target)) {
    if (!arguments.overrides.empty())
      throw UsageError("--set changes a configuration, not a run that is finished");
    const auto run = Run::open(arguments.target, c10::kCPU, WeightFormat::fp32, arguments.base);
    experiment = run.experiment();
    if (!is_run(run.dir())) origin = ModelOrigin::others;
    purpose = run.task().purpose();
  } else {
    require_no_base(arguments.base);
    experiment = load_experiment_or_text(arguments.target, arguments.overrides);
    purpose = purpose_of(experiment);
  }
  const int64_t length =
      arguments.length > 0
          ? arguments.length
          : input_length(experiment.model, purpose).value_or(experiment.data.sequence_length);
  // With --length, an image has so many patches, and the cost is for each.
  const bool given = arguments.length > 0;
  const auto cost =
      given ? model_cost(experiment.model, purpose, length) : unit_cost(experiment.model, purpose, length);
  const auto weights = chosen_format(WeightChoice(std::nullopt), experiment, origin, parse_device("auto"));
  if (arguments.json) return print_json(experiment, cost, purpose, length, weights);
  if (const auto vectors = to_text(experiment.embedding); !vectors.empty())
    std::cout << fmt::format("vectors of texts      {} (zoo embed)\n\n", vectors);
  if (weights != WeightFormat::fp32)
    std::cout << fmt::format("weights               {} (zoo generate, on this machine)\n\n",
                             name_of(weights));
  print_table(experiment, cost, purpose, length, given ? "token" : task_type(experiment).unit);
}

}  // namespace

void add_inspect(CLI::App& app) {
  const auto arguments = std::make_shared<InspectArguments>();
  auto* command =
      app.add_subcommand("inspect", "Show the modules of a model, their parameters and their cost");
  command
      ->add_option("CONFIG|RUN", arguments->target,
                   "A configuration (a file, or a name such as gpt2), the directory of a run, or a text")
      ->type_name("PATH")
      ->required();
  add_base(*command, arguments->base);
  add_overrides(*command, arguments->overrides);
  command
      ->add_option("--length", arguments->length,
                   "Tokens of a sequence; default: data.sequence_length, or the patches of an image")
      ->option_text("N")
      ->check(whole_number(1));
  add_json(*command, arguments->json);
  command->callback([arguments] { inspect(*arguments); });
}

}  // namespace zoo
