#include "comparison/verify.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/device.h"
#include "base/error.h"
#include "comparison/collect_results.h"
#include "comparison/planning/copied_models.h"
#include "comparison/planning/plan.h"
#include "comparison/results_json.h"
#include "comparison/tuning.h"
#include "io/config/config_tree.h"
#include "io/config/find_config.h"
#include "statistics/paired_test.h"

namespace zoo {
namespace {

/// Times and places, which are others in each training.
bool is_compared(std::string_view key) {
  return key != "seconds" && key != "run" && key != "peak_resident_bytes";
}

const Json& row_named(const Json& results, const std::string& name) {
  const auto& runs = results.at("runs");
  const auto row = std::ranges::find_if(runs, [&](const Json& run) { return run.at("name") == name; });
  if (row == runs.end()) throw UsageError(fmt::format("the study has no run '{}'", name));
  return *row;
}

const Json& seed_of(const Json& row, int64_t seed) {
  const auto& seeds = row.at("seeds");
  const auto found = std::ranges::find_if(seeds, [&](const Json& one) { return one.at("seed") == seed; });
  if (found == seeds.end())
    throw UsageError(fmt::format("the run '{}' has no seed {}", row.at("name").get<std::string>(), seed));
  return *found;
}

/// Gives each variant the candidate that it has chosen in the study.
void choose_as_in(const Json& results, Comparison& comparison) {
  const auto tuning = results.find("tuning");
  if (tuning == results.end() || tuning->is_null()) return;
  for (const auto& tuned : tuning->at("variants")) {
    const auto name = tuned.at("name").get<std::string>(), chosen = tuned.at("chosen").get<std::string>();
    const auto variant = std::ranges::find(comparison.variants, name, &Variant::name);
    if (variant == comparison.variants.end())
      throw UsageError(fmt::format("the comparison has no variant '{}', which the study has", name));
    const auto candidate = std::ranges::find(variant->candidates, chosen, &Candidate::name);
    if (candidate == variant->candidates.end())
      throw UsageError(
          fmt::format("the variant '{}' has no candidate '{}', which the study has", name, chosen));
    variant->experiment = candidate->experiment;
  }
}

/// How many trainings of the study ran at a time: they shared the cores.
int64_t jobs_of(const Json& results) {
  for (const auto& notice : results.at("notices")) {
    const auto text = notice.at("text").get<std::string>();
    int64_t jobs = 0;
    const auto number = std::from_chars(text.data(), text.data() + text.size(), jobs);
    if (number.ec == std::errc() &&
        std::string_view(number.ptr).starts_with(" trainings ran at the same time"))
      return jobs;
  }
  return 1;
}

/// The threads of each training of the study, as the runner sets them.
int64_t threads_of(const Json& results) {
  const auto& machine = results.at("machine");
  const auto jobs = jobs_of(results);
  return jobs > 1 ? std::max<int64_t>(1, machine.at("cores").get<int64_t>() / jobs)
                  : machine.at("threads").get<int64_t>();
}

std::vector<std::string> circumstances(const Json& was, const Json& is) {
  std::vector<std::string> lines;
  const auto compare = [&](const char* group, const char* key, const char* what) {
    const auto& old = was.at(group).at(key);
    const auto& now = is.at(group).at(key);
    if (old != now)
      lines.push_back(fmt::format("{}: {} in the study, {} here", what, old.dump(), now.dump()));
  };
  compare("machine", "cpu", "processor");
  compare("machine", "device", "device");
  compare("versions", "transformer_zoo", "version");
  compare("versions", "commit", "sources");
  compare("versions", "libtorch", "LibTorch");
  compare("versions", "compiler", "compiler");
  return lines;
}

/// Compares the configurations and the sizes of a row. Places of files are left out, because files may have
/// moved; the hash of the data says whether they are the same.
int64_t compare_models(const Json& row, const Json& again, std::vector<VerifiedDifference>& differences) {
  auto config = row.value("config", Json::object());
  for (const char* const path : {"init_from", "data.train", "data.valid", "data.test", "data.tokenizer.path",
                                 "data.choices.files", "data.choices.shots_from"})
    config.erase(path);
  auto n = compare_values(config, again.at("config"), "config", differences);
  for (const char* const key : {"parameters", "sequence_length", "flops_per_token"})
    if (row.contains(key)) n += compare_values(row[key], again.at(key), key, differences);
  return n;
}

/// Whether the mean of a row is that of its seeds, which follows from the file alone.
int64_t check_mean(const Json& results, const Json& row, std::vector<VerifiedDifference>& differences) {
  const auto key = results.at("metric").at("key").get<std::string>();
  std::vector<double> all, learnt;
  for (const auto& seed : row.at("seeds")) {
    const auto& valid = seed.at("valid");
    if (!valid.contains(key) || !valid.at(key).is_number() || seed.at("end") == "failed") continue;
    all.push_back(valid.at(key).get<double>());
    if (seed.at("learnt") != false) learnt.push_back(all.back());
  }
  const auto& values = learnt.empty() ? all : learnt;
  if (values.empty()) return 0;
  const auto mean = mean_interval(values);
  const Json is{{"mean", mean.mean}, {"n", mean.n}};
  const auto& said = row.at("metric");
  return compare_values({{"mean", said.at("mean")}, {"n", said.at("n")}}, is, "metric", differences);
}

/// Whether two numbers are the same as far as the first one says: the curves of a published study may be
/// rounded to six digits.
bool is_same_number(const Json& was, const Json& is) {
  if (was == is) return true;
  if (!was.is_number() || !is.is_number()) return false;
  const auto rounded = [](const Json& number) { return fmt::format("{:.6g}", number.get<double>()); };
  const auto text = rounded(was);
  double back = 0;
  std::from_chars(text.data(), text.data() + text.size(), back);
  return back == was.get<double>() && text == rounded(is);
}

/// "[3] (step 400)": a place in a curve, which has lists of equal lengths.
std::string place_in_curve(const Json& curve, size_t i) {
  const auto step = curve.find("step");
  const bool is_known = step != curve.end() && step->is_array() && i < step->size();
  return is_known ? fmt::format("[{}] (step {})", i, (*step)[i].dump()) : fmt::format("[{}]", i);
}

int64_t compare_lists(const Json& was, const Json& is, const std::string& place, const Json& curve,
                      std::vector<VerifiedDifference>& differences) {
  if (was.size() != is.size()) {
    differences.push_back({.place = place + ": how many", .was = was.size(), .is = is.size()});
    return 1;
  }
  int64_t n = 0;
  for (size_t i = 0; i < was.size(); ++i)
    n += compare_values(was[i], is[i], place + place_in_curve(curve, i), differences);
  return n;
}

}  // namespace

int64_t compare_values(const Json& was, const Json& is, const std::string& place,
                       std::vector<VerifiedDifference>& differences) {
  if (was.is_object() && is.is_object()) {
    int64_t n = 0;
    for (const auto& [key, value] : was.items()) {
      if (!is_compared(key) || !is.contains(key))
        continue;  // a later version may leave a field out or add one
      const auto inner = place.empty() ? key : place + "." + key;
      n += value.is_array() && is[key].is_array() ? compare_lists(value, is[key], inner, is, differences)
                                                  : compare_values(value, is[key], inner, differences);
    }
    return n;
  }
  if (!is_same_number(was, is)) differences.push_back({.place = place, .was = was, .is = is});
  return 1;
}

std::optional<std::string> place_in_base(const std::filesystem::path& comparison_file, std::string_view key) {
  const auto tree = load_config_tree(comparison_file);
  const auto* const base = tree.find("base");
  if (!base) return std::nullopt;
  const auto keys = base->value.is_map()
                        ? resolve_extends(base->value)
                        : load_config_tree(find_config({base->value.text, base->place.directory()}));
  const ConfigNode* node = &keys;
  const ConfigPlace* place = nullptr;
  while (node->is_map() && !key.empty()) {
    const auto end = std::min(key.find('.'), key.size());
    const auto* const entry = node->find(key.substr(0, end));
    if (!entry) return std::nullopt;
    place = &entry->place;
    node = &entry->value;
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return place ? std::optional(place->text()) : std::nullopt;
}

std::vector<StudyTraining> trainings_of(const Json& results) try {
  std::vector<StudyTraining> trainings;
  for (const auto& run : results.at("runs")) {
    if (run.contains("ablation")) continue;  // is not trained
    for (const auto& seed : run.at("seeds")) {
      const auto end = seed.at("end").get<std::string>();
      const bool is_whole = end == "all_steps" || end == "out_of_patience";
      if (is_whole) trainings.push_back({.run = run.at("name"), .seed = seed.at("seed")});
    }
  }
  return trainings;
} catch (const Json::exception& error) {
  throw DataError(fmt::format("no results of a comparison: {}", error.what()));
}

std::optional<Verification> verify(const Json& results, Comparison comparison, const StudyTraining& training,
                                   const RunnerOptions& given) {
  const auto& row = row_named(results, training.run);
  const auto& seed = seed_of(row, training.seed);
  if (results.at("budget").at("kind") == "seconds")
    throw UsageError("the trainings of this study ended by the clock, so none can be made again");
  choose_as_in(results, comparison);
  copy_models(comparison, given.dir, given.on_message);
  comparison.settings.speed_seconds = 0;
  comparison.settings.scaling = false;
  comparison.settings.evaluate_lengths.clear();
  auto plan = make_plan(comparison, given.on_message);
  std::erase_if(plan.variants, [&](const PlannedVariant& variant) { return variant.name != training.run; });
  if (plan.variants.empty())
    throw UsageError(fmt::format("the comparison has no row '{}', which the study has", training.run));
  auto& variant = plan.variants.front();
  if (variant.ablation)
    throw UsageError(fmt::format("'{}' is not trained: verify '{}', whose ablation it is", training.run,
                                 variant.ablation->of));
  if (!variant.runs.empty())
    throw UsageError(fmt::format("'{}' is a run that was finished before the study", training.run));
  variant.seeds = {training.seed};
  variant.baseline.reset();

  auto options = given;
  options.threads = threads_of(results);
  if (train_all(plan, options) == RunnerEnd::interrupted) return std::nullopt;
  const auto collected = collect_results(plan, {.dir = options.dir,
                                                .device = parse_device(options.device),
                                                .origin = {},
                                                .should_stop = options.should_stop});
  if (!collected) return std::nullopt;
  const auto again = results_json(*collected);
  Verification result{.training = training};
  auto wanted = seed;
  // The memory that tensors take may change with the sources, which changes no result.
  if (results.at("versions").at("commit") != again.at("versions").at("commit"))
    wanted.erase("peak_memory_bytes");
  const auto& made = again.at("runs").at(0);
  result.n_values = compare_models(row, made, result.differences) +
                    compare_values(wanted, made.at("seeds").at(0), "", result.differences) +
                    check_mean(results, row, result.differences);
  if (!result.differences.empty()) result.circumstances = circumstances(results, again);
  return result;
}

}  // namespace zoo
