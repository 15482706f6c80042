#include "comparison/results.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "analysis/measure.h"
#include "analysis/scaling.h"
#include "analysis/speeds.h"
#include "base/error.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/guess.h"
#include "checkpoints/run.h"
#include "comparison/files/kept_json.h"
#include "comparison/findings.h"
#include "comparison/results_json.h"
#include "comparison/runner.h"
#include "comparison/scores.h"
#include "comparison/size_fit.h"
#include "comparison/statistics/paired_test.h"
#include "io/files.h"
#include "io/sha256.h"
#include "models/families/families.h"
#include "models/families/model_cost.h"
#include "pages/json.h"
#include "pages/report/best_values.h"
#include "pages/report/confusion.h"
#include "pages/report/report_document.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// How a training ended.
enum class SeedEnd { all_steps, out_of_time, out_of_patience, interrupted, failed };
constexpr auto config_names(SeedEnd) {
  return std::to_array<std::string_view>(
      {"all_steps", "out_of_time", "out_of_patience", "interrupted", "failed"});
}

/// Without a checkpoint, a training counts as interrupted.
SeedEnd end_of(const TrainingConfig& training, const TrainingState* state) {
  if (state == nullptr) return SeedEnd::interrupted;
  if (!is_finished(*state, training)) return SeedEnd::interrupted;
  if (state->step >= training.steps) return SeedEnd::all_steps;
  return training.is_out_of_patience(state->step, state->best_step) ? SeedEnd::out_of_patience
                                                                    : SeedEnd::out_of_time;
}

class Collector {
 public:
  Collector(const ComparisonPlan& plan, const ResultsOptions& options)
      : plan_(plan), options_(options), metric_(metric_of_runs(plan, options.dir)) {}

  Json collect() {
    Json runs = Json::array();
    for (const auto& variant : plan_.variants) {
      if (stopped()) return nullptr;
      runs.push_back(run_json(variant));
      if (runs.back().is_null()) return nullptr;
    }
    if (!measure(runs)) return nullptr;
    compare_with_baselines(runs, metric_, {.margin = plan_.settings.margin, .fair = plan_.fair()});
    Json document = results_header(plan_, metric_, options_.device, options_.origin);
    document["tuning"] = options_.tuning;
    document["fair"] = plan_.fair();
    document["notices"] = Json::array();
    for (const auto& [kind, text] : notices_)
      document["notices"].push_back({{"kind", name_of(kind)}, {"text", text}});
    document["differences"] = plan_.differences;
    document["power"] = power_json(runs);
    document["runs"] = std::move(runs);
    mark_best_values(document);
    document["sizes"] = size_fit(plan_, document["runs"], metric_);
    const auto of_sizes = size_finding(document["sizes"], plan_.fair());
    document["measured"] = of_sizes.empty()
                               ? findings(document["runs"], metric_, plan_.fair())
                               : verdict_finding(document["runs"], plan_.fair()) + " " + of_sizes;
    return document;
  }

 private:
  bool stopped() const { return options_.should_stop && options_.should_stop(); }
  void say(const std::string& line) const {
    if (options_.on_message) options_.on_message(line);
  }

  fs::path dir_of(const PlannedVariant& variant, int64_t seed) const {
    return run_dir_of(options_.dir, variant, seed);
  }

  Json run_json(const PlannedVariant& variant) {
    Json seeds = Json::array();
    std::optional<int64_t> peak;  // over the seeds that did not fail
    for (const int64_t seed : variant.seeds) {
      if (stopped()) return nullptr;
      say(fmt::format("evaluating {}, seed {}", variant.name, seed));
      seeds.push_back(seed_json(variant, seed));
      const auto& bytes = seeds.back()["peak_memory_bytes"];
      if (seeds.back()["end"] != "failed" && bytes.is_number())
        peak = std::max(peak.value_or(0), bytes.get<int64_t>());
    }
    Json run = facts_of(variant);
    run.update({{"guess", nullptr},
                {"metric", nullptr},
                {"baseline", or_null(variant.baseline)},
                {"versus_baseline", nullptr},
                {"lengths", lengths_json(variant)},
                {"seeds", std::move(seeds)},
                {"speed", nullptr},
                {"peak_memory_bytes", or_null(peak)},
                {"scaling", Json::array()},
                {"samples", Json::array()},
                {"attention", nullptr}});
    if (auto confusion = confusion_over_seeds(variant); !confusion.is_null())
      run["confusion"] = std::move(confusion);
    const auto dir = shown_dir(variant, run);
    std::optional<Run> shown;
    if (dir) {
      shown = Run::open(*dir, options_.device);
      judge_learning(shown->task(), run);
    }
    if (const auto values = counted_values(run); !values.empty())
      run["metric"] = to_json(mean_interval(values));
    if (shown) look_at(variant, *dir, *shown, run);
    return run;
  }

  /// The sum of the matrices of the seeds that did not fail; null for a task that does not classify.
  Json confusion_over_seeds(const PlannedVariant& variant) const {
    Json sum;
    for (const int64_t seed : variant.seeds) {
      const auto dir = dir_of(variant, seed);
      if (!failure_of(dir)) add_confusion(sum, confusion_of_run(dir, options_.device));
    }
    return sum;
  }

  std::vector<double> counted_values(const Json& run) const {
    std::vector<double> values;
    for (const auto& seed : run["seeds"]) {
      if (const auto value = counted_value(run, seed, metric_)) values.push_back(*value);
    }
    return values;
  }

  /// Says of each seed whether it has learnt anything.
  static void judge_learning(Task& task, Json& run) {
    const auto guess = guess_losses(task, Split::valid);
    if (!guess) return;
    run["guess"] = {{"uniform", guess->uniform}, {"unigram", guess->unigram}};
    for (auto& seed : run["seeds"]) {
      if (const auto loss = number_at(seed, "valid_loss")) seed["learnt"] = has_learnt(*loss, *guess);
    }
  }

  /// The run whose samples, maps and speed are shown: the first seed that did not fail, if there is one.
  std::optional<fs::path> shown_dir(const PlannedVariant& variant, const Json& run) const {
    for (const auto& seed : run["seeds"]) {
      if (seed["end"] != "failed") return dir_of(variant, seed["seed"]);
    }
    return std::nullopt;
  }

  /// The metric at each of `evaluate_lengths`.
  Json lengths_json(const PlannedVariant& variant) {
    Json list = Json::array();
    for (const int64_t length : plan_.settings.evaluate_lengths) {
      std::vector<double> values;
      for (const int64_t seed : variant.seeds) {
        const auto dir = dir_of(variant, seed);
        if (failure_of(dir)) continue;
        const auto scores = scores_at(length, dir, options_.device);
        if (scores.is_null()) {
          notices_.push_back({NoticeKind::failure,
                              fmt::format("{}: not evaluated at {} tokens: the validation text is shorter",
                                          variant.name, length)});
          break;
        }
        const auto value = value_of(metric_, scores);
        if (value.is_number()) values.push_back(value.get<double>());
      }
      if (values.empty()) continue;
      Json entry{{"length", length}};
      entry.update(to_json(mean_interval(values)));
      list.push_back(std::move(entry));
    }
    return list;
  }

  Json seed_json(const PlannedVariant& variant, int64_t seed) {
    const auto dir = dir_of(variant, seed);
    const auto checkpoint = newest_checkpoint(dir);
    const auto failure = failure_of(dir);
    if (!checkpoint && !failure && variant.runs.empty())
      throw CheckpointError(
          fmt::format("{}: not trained to its end: continue with ExistingRun::resume", dir.string()));
    const TrainingState state = checkpoint ? read_training_state(*checkpoint) : TrainingState();
    const SeedEnd end =
        failure ? SeedEnd::failed : end_of(variant.experiment.training, checkpoint ? &state : nullptr);
    note_end(fmt::format("{}, seed {}", variant.name, seed), end, failure);
    const auto known = [&](auto count) { return checkpoint ? Json(count) : Json(); };
    Json valid = failure ? Json::object() : scores_of(dir, options_.device);
    if (const auto value = value_of(metric_, valid); !value.is_null()) valid[metric_.key] = value;
    auto curves = read_curves(dir, metric_);
    std::error_code ignored;
    return {{"seed", seed},
            {"run", fs::proximate(dir, options_.dir, ignored).string()},
            {"end", name_of(end)},
            {"error", or_null(failure)},
            {"steps", known(state.step)},
            {"tokens", known(state.tokens)},
            {"flops", known(state.flops)},
            {"seconds", known(state.seconds)},
            {"valid_loss", valid.value("loss", Json())},
            {"valid", valid},
            {"learnt", nullptr},
            {"best_step", known(state.best_step)},
            {"peak_memory_bytes", known(state.peak_memory_bytes)},
            {"peak_resident_bytes", known(state.peak_resident_bytes)},
            {"curve", std::move(curves.valid)},
            {"train_curve", std::move(curves.train)}};
  }

  /// Adds a notice if a training failed or was interrupted.
  void note_end(const std::string& name, SeedEnd end, const std::optional<std::string>& failure) {
    if (failure) notices_.push_back({NoticeKind::failure, fmt::format("{}: {}", name, *failure)});
    if (end == SeedEnd::interrupted) {
      notices_.push_back(
          {NoticeKind::training,
           fmt::format(
               "{}: its training was interrupted and can be resumed; its weights so far are evaluated",
               name)});
    }
  }

  /// The model's outputs for the comparison's texts; empty if its vocabulary cannot encode one of them.
  Json samples_json(const PlannedVariant& variant, const Run& run) {
    try {
      return to_json(run.task().samples(run.model(), plan_.settings.inputs));
    } catch (const DataError& error) {
      notices_.push_back(
          {NoticeKind::failure, fmt::format("{}: no samples: {}", variant.name, error.what())});
      return Json::array();
    }
  }

  /// Samples, maps and scaling of one trained run.
  void look_at(const PlannedVariant& variant, const fs::path& run_dir, const Run& run, Json& json) {
    json["samples"] = samples_json(variant, run);
    const auto text = text_to_look_at(json["samples"]);
    try {
      const bool about_texts = task_type(run.experiment()).layout != nullptr;
      const auto problem = why_no_maps(run.experiment().model);
      if (problem) say(fmt::format("{}: {}", variant.name, *problem));
      if (!text.empty() && about_texts && !problem) json["attention"] = attention_json(run, text);
    } catch (const DataError& error) {
      say(fmt::format("{}: no attention maps: {}", variant.name, error.what()));
    }
    if (!plan_.settings.scaling) return;
    const auto path = options_.dir / "measured" / (variant.slug + "-scaling.json");
    json["scaling"] = kept(path, measuring_key(run_dir), KeptKind::list, [&] {
      say(fmt::format("measuring {} over its length", variant.name));
      Json curves = Json::array();
      for (const auto& curve : measure_scaling(variant.experiment.model, run.task().purpose(),
                                               options_.device, scaling_options(options_.device)))
        curves.push_back(to_json(curve));
      return curves;
    });
  }

  /// The key of kept times. They do not depend on the weights.
  Json measuring_key(const fs::path& run_dir) const {
    return {{"config", sha256(read_file(run_dir / "config.yaml", Follow::nothing))},
            {"device", options_.device.str()},
            {"threads", at::get_num_threads()}};
  }

  /// Measures the speeds of all runs. They are kept together: if a variant is added, all are measured again.
  /// Returns false if it was told to stop.
  bool measure(Json& runs) const {
    if (plan_.settings.speed_seconds <= 0) return true;
    std::vector<MeasuredRun> measured;
    std::vector<Json*> entries;
    Json key{{"seconds", plan_.settings.speed_seconds}, {"runs", Json::object()}};
    for (size_t i = 0; i < plan_.variants.size(); ++i) {
      const auto dir = shown_dir(plan_.variants[i], runs[i]);
      if (!dir) continue;
      measured.push_back({plan_.variants[i].name, *dir});
      entries.push_back(&runs[i]);
      key["runs"][plan_.variants[i].name] = measuring_key(*dir);
    }
    const auto path = options_.dir / "measured" / "speeds.json";
    Json speeds = read_kept(path, key, KeptKind::object);
    if (speeds.is_null()) {
      const auto all = measure_in_turns(measured, {.device = options_.device,
                                                   .seconds = plan_.settings.speed_seconds,
                                                   .should_stop = options_.should_stop,
                                                   .on_message = options_.on_message});
      if (all.size() < measured.size()) return false;
      speeds = Json::object();
      for (size_t i = 0; i < measured.size(); ++i) speeds[measured[i].name] = speeds_json(all[i]);
      keep(path, key, speeds);
    }
    for (size_t i = 0; i < measured.size(); ++i) (*entries[i])["speed"] = speeds[measured[i].name];
    return true;
  }

  /// The text for the maps of all runs: the comparison's first input, else the first input of the samples.
  std::string text_to_look_at(const Json& samples) const {
    if (!plan_.settings.inputs.empty()) return plan_.settings.inputs.front();
    for (const auto& sample : samples) {
      if (const auto text = sample["input"].get<std::string>(); !text.empty()) return text;
    }
    return {};
  }

  const ComparisonPlan& plan_;
  const ResultsOptions& options_;
  Metric metric_;
  std::vector<Notice> notices_ = notices();

  std::vector<Notice> notices() const {
    auto list = plan_.notices;
    if (const int64_t n_jobs = most_jobs(options_.dir); n_jobs > 1) {
      list.push_back({NoticeKind::training,
                      fmt::format("{} trainings ran at the same time: their seconds are not comparable "
                                  "with a training that runs alone.",
                                  n_jobs)});
    }
    return list;
  }
};

}  // namespace

nlohmann::ordered_json collect_results(const ComparisonPlan& plan, const ResultsOptions& options) {
  const auto results = Collector(plan, options).collect();
  // A byte model may write bytes that are not UTF-8: they become U+FFFD here, once for all users.
  return Json::parse(results.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace zoo
