#include "comparison/collect_results.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "checkpoints/run.h"
#include "comparison/ablated_scores.h"
#include "comparison/changed_data.h"
#include "comparison/findings/findings.h"
#include "comparison/findings/main_effects.h"
#include "comparison/findings/size_fit.h"
#include "comparison/findings/slices.h"
#include "comparison/kept_results.h"
#include "comparison/planning/kept_json.h"
#include "comparison/runner.h"
#include "comparison/unequal_machine.h"
#include "costs/measure.h"
#include "costs/speeds.h"
#include "io/files.h"
#include "io/sha256.h"
#include "models/families/families.h"
#include "pages/structures/predicted_structure.h"
#include "pages/tables/report_document.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// Tokens of the text whose attention maps a report has. Maps of a thousand tokens would make it a hundred
/// megabytes.
constexpr int64_t kMostMapTokens = 48;
constexpr int64_t kLoadBatches = 20;  // of validation data, to see how experts work

/// Without a checkpoint, a training counts as interrupted, unless there are weights from elsewhere.
SeedEnd end_of(const fs::path& run_dir, const TrainingConfig& training,
               const std::optional<TrainingState>& state) {
  if (!state && is_there(run_dir / "model.safetensors")) return SeedEnd::elsewhere;
  if (!state || !is_finished(*state, training)) return SeedEnd::interrupted;
  if (state->step >= training.steps) return SeedEnd::all_steps;
  return training.is_out_of_patience(state->step, state->best_step) ? SeedEnd::out_of_patience
                                                                    : SeedEnd::out_of_time;
}

/// The speed of a run from its measurements, of which there is at least one.
RunSpeed speed_of(const std::vector<Speed>& measured) {
  using Number = std::optional<double>;
  const auto over = [&](const std::function<Number(const Speed&)>& number) {
    std::optional<Measured> all;
    for (const auto& speed : measured) {
      const auto value = number(speed);
      if (!value) return all;
      if (!all) all = {.median = *number(median_of(measured)), .least = *value, .largest = *value};
      all->least = std::min(all->least, *value);
      all->largest = std::max(all->largest, *value);
    }
    return all;
  };
  return {.train_tokens_per_second = over([](const Speed& one) { return one.train.tokens_per_second; }),
          .prompt_tokens_per_second = over(
              [](const Speed& one) { return one.prompt ? Number(one.prompt->tokens_per_second) : Number(); }),
          .decode_tokens_per_second = over(
              [](const Speed& one) { return one.decode ? Number(one.decode->tokens_per_second) : Number(); }),
          .first_token_seconds = over([](const Speed& one) {
            return one.decode ? Number(one.decode->first_token_seconds) : Number();
          })};
}

class Collector {
 public:
  Collector(const ComparisonPlan& plan, const ResultsOptions& options)
      : plan_(plan),
        options_(options),
        results_{.plan = plan,
                 .metric = metric_of_runs(plan, options.dir),
                 .device = options.device,
                 .origin = options.origin,
                 .notices = notices(),
                 .tuning = options.tuning} {}

  std::optional<ComparisonResults> collect() try {
    for (const auto& variant : plan_.variants) {
      if (stopped() || !add_run(variant)) return std::nullopt;
    }
    if (!measure()) return std::nullopt;
    auto& runs = results_.runs;
    const auto& metric = results_.metric;
    if (const auto unequal = unequal_machine(plan_.budget, runs)) note(NoticeKind::budget, *unequal);
    if (const auto changed = changed_data(plan_.variants, runs)) note(NoticeKind::data, *changed);
    const bool fair = is_fair(results_.notices);
    compare_with_baselines(
        runs, metric,
        {.margin = plan_.settings.margin, .fair = fair, .correction = plan_.settings.correction});
    compare_translations(runs, plan_.settings.correction);
    compare_slices(runs, metric, plan_.settings.margin, plan_.settings.correction);
    results_.power = power_of(runs);
    results_.sizes = size_fit(plan_, runs, metric);
    results_.effects = main_effects(plan_, runs, metric);
    const auto of_sizes = size_finding(results_.sizes, fair);
    results_.measured =
        of_sizes.empty() ? findings(runs, metric, fair) : verdict_finding(runs, fair) + " " + of_sizes;
    if (const auto of_ablations = ablation_finding(runs, metric, fair); !of_ablations.empty())
      results_.measured += (results_.measured.empty() ? "" : " ") + of_ablations;
    if (fair) {
      const auto& unit = task_type(plan_.variants.front().experiment).unit;
      if (const auto seen = consumption_finding(plan_.budget, runs, unit); !seen.empty())
        results_.measured += (results_.measured.empty() ? "" : " ") + seen;
    }
    return std::move(results_);
  } catch (const MeasurementStopped&) {
    return std::nullopt;
  }

 private:
  bool stopped() const { return options_.should_stop && options_.should_stop(); }
  void say(const std::string& line) const {
    if (options_.on_message) options_.on_message(line);
  }

  fs::path dir_of(const PlannedVariant& variant, int64_t seed) const {
    return run_dir_of(options_.dir, variant, seed);
  }

  /// Returns false if it was told to stop.
  bool add_run(const PlannedVariant& variant) {
    RunResults run{.name = variant.name,
                   .variant = variant.variant,
                   .baseline = variant.baseline,
                   .ablation = variant.ablation};
    if (variant.ablation) return add_ablation(std::move(run), variant);
    if (const auto dir = dir_of(variant, variant.seeds.front());
        !variant.runs.empty() && variant.seeds.size() == 1 && !failure_of(dir)) {
      run.examples = examples_of_run(dir, results_.metric, options_.device);
      if (variant.experiment.task.type == "text_to_text") {
        say(fmt::format("translating with {}", variant.name));
        run.translations = translations_of_run(dir, options_.device);
        if (run.examples) show_translations(*run.translations, *run.examples);
      }
    }
    for (const int64_t seed : variant.seeds) {
      if (stopped()) return false;
      say(fmt::format("evaluating {}, seed {}", variant.name, seed));
      run.seeds.push_back(seed_of(variant, seed));
    }
    run.lengths = lengths_of(variant);
    run.confusion = confusion_over_seeds(variant);
    std::optional<Run> shown;
    const auto dir = shown_dir(variant, run);
    if (dir) {
      shown = Run::open(*dir, options_.device);
      judge_learning(shown->task(), run);
    }
    run.metric = mean_of_seeds(run);
    if (shown) look_at(variant, *dir, *shown, run);
    results_.runs.push_back(std::move(run));
    return true;
  }

  /// The scores of trained models with parts replaced; their row is there already. Of the training and of
  /// what does not depend on the ablation, this row has nothing. Returns false if it was told to stop.
  bool add_ablation(RunResults run, const PlannedVariant& variant) {
    const auto& trained = *std::ranges::find(results_.runs, variant.ablation->of, &RunResults::name);
    run.guess = trained.guess;
    std::vector<std::string> found;  // where each seed has its own heads
    for (const auto& seed : trained.seeds) {
      if (stopped()) return false;
      SeedResults results{.seed = seed.seed, .run = seed.run, .end = seed.end, .error = seed.error};
      if (!seed.error) {
        say(fmt::format("ablating {}, seed {}: {}", trained.name, seed.seed, variant.name));
        const auto path = options_.dir / "measured" / fmt::format("{}-seed-{}.json", variant.slug, seed.seed);
        auto ablated = ablated_scores(dir_of(variant, seed.seed), *variant.ablation, path, options_.device);
        results.scores = std::move(ablated.scores);
        results.ablated = std::move(ablated.parts);
        if (variant.ablation->strongest)
          found.push_back(fmt::format("{} (seed {})", fmt::join(results.ablated, " and "), seed.seed));
      }
      results.metric = value_of(results_.metric, results.scores);
      results.loss = value_of({.key = "loss", .label = "loss"}, results.scores);
      // Whether its training has come to something; a model without a part may say less than the frequencies.
      results.learnt = seed.learnt;
      run.seeds.push_back(std::move(results));
    }
    if (!found.empty())
      note(NoticeKind::training, fmt::format("{} is without {}", variant.name, fmt::join(found, ", ")));
    run.metric = mean_of_seeds(run);
    results_.runs.push_back(std::move(run));
    return true;
  }

  /// The sum of the matrices of the seeds that did not fail; nothing for a task that does not classify.
  std::optional<ConfusionMatrix> confusion_over_seeds(const PlannedVariant& variant) const {
    std::optional<ConfusionMatrix> sum;
    for (const int64_t seed : variant.seeds) {
      const auto dir = dir_of(variant, seed);
      if (!failure_of(dir)) add_confusion(sum, confusion_of_run(dir, options_.device));
    }
    return sum;
  }

  /// Says of each seed whether it has learnt anything. A model from elsewhere is not judged, because nobody
  /// knows how frequent the targets of its training were.
  static void judge_learning(Task& task, RunResults& run) {
    run.guess = guess_losses(task, Split::valid);
    for (auto& seed : run.seeds) {
      if (run.guess && seed.loss && seed.end != SeedEnd::elsewhere)
        seed.learnt = has_learnt(*seed.loss, *run.guess);
    }
  }

  /// The run whose samples, maps and speed are shown: the first seed that did not fail, if there is one.
  std::optional<fs::path> shown_dir(const PlannedVariant& variant, const RunResults& run) const {
    for (const auto& seed : run.seeds) {
      if (seed.end != SeedEnd::failed) return dir_of(variant, seed.seed);
    }
    return std::nullopt;
  }

  /// The metric at each of `evaluate_lengths`.
  std::vector<LengthResult> lengths_of(const PlannedVariant& variant) {
    std::vector<LengthResult> list;
    for (const int64_t length : plan_.settings.evaluate_lengths) {
      std::vector<double> values;
      for (const int64_t seed : variant.seeds) {
        const auto dir = dir_of(variant, seed);
        if (failure_of(dir)) continue;
        const auto scores = scores_at(length, dir, options_.device);
        if (!scores) {
          note(NoticeKind::failure,
               fmt::format("{}: not evaluated at {} tokens: the validation text is shorter", variant.name,
                           length));
          break;
        }
        if (const auto value = value_of(results_.metric, *scores)) values.push_back(*value);
      }
      if (!values.empty()) list.push_back({.length = length, .metric = mean_interval(values)});
    }
    return list;
  }

  /// The prediction of a translator is its translation.
  static void show_translations(const Translations& translations, ExampleValues& examples) {
    if (translations.outputs.size() != examples.texts.size()) return;
    for (size_t i = 0; i < examples.texts.size(); ++i) examples.texts[i].prediction = translations.outputs[i];
  }

  SeedResults seed_of(const PlannedVariant& variant, int64_t seed) {
    const auto dir = dir_of(variant, seed);
    const auto checkpoint = newest_checkpoint(dir);
    std::error_code ignored;
    SeedResults results{
        .seed = seed, .run = fs::proximate(dir, options_.dir, ignored).string(), .error = failure_of(dir)};
    if (!checkpoint && !results.error && variant.runs.empty())
      throw CheckpointError(
          fmt::format("{}: not trained to its end: continue with ExistingRun::resume", dir.string()));
    if (checkpoint) results.state = read_training_state(*checkpoint);
    results.end = results.error ? SeedEnd::failed : end_of(dir, variant.experiment.training, results.state);
    note_end(fmt::format("{}, seed {}", variant.name, seed), results);
    if (!results.error) results.scores = scores_of(dir, options_.device);
    results.metric = value_of(results_.metric, results.scores);
    results.loss = value_of({.key = "loss", .label = "loss"}, results.scores);
    results.curves = read_curves(dir, results_.metric);
    return results;
  }

  /// Adds a notice if a training failed or was interrupted.
  void note_end(const std::string& name, const SeedResults& seed) {
    if (seed.error) note(NoticeKind::failure, fmt::format("{}: {}", name, *seed.error));
    if (seed.end == SeedEnd::interrupted)
      note(
          NoticeKind::training,
          fmt::format("{}: its training was interrupted and can be resumed; its weights so far are evaluated",
                      name));
  }

  void note(NoticeKind kind, std::string text) { results_.notices.push_back({kind, std::move(text)}); }

  /// The model's outputs for the comparison's texts; empty if its vocabulary cannot encode one of them.
  std::vector<Sample> samples_of(const PlannedVariant& variant, const Run& run) {
    try {
      return run.task().samples(run.model(), plan_.settings.inputs);
    } catch (const DataError& error) {
      note(NoticeKind::failure, fmt::format("{}: no samples: {}", variant.name, error.what()));
      return {};
    }
  }

  /// Samples, maps and scaling of one trained run.
  void look_at(const PlannedVariant& variant, const fs::path& run_dir, const Run& run, RunResults& results) {
    results.samples = samples_of(variant, run);
    results.expert_loads = expert_loads(run, kLoadBatches);
    try {
      if (folds(run.experiment())) results.structure = shown_example(run.task(), run.model());
    } catch (const DataError& error) {
      say(fmt::format("{}: no structure: {}", variant.name, error.what()));
    }
    try {
      const bool about_texts = task_type(run.experiment()).layout != nullptr;
      const auto text = about_texts ? text_to_look_at(run, results.samples) : std::string();
      const auto problem = why_no_maps(run.experiment().model);
      if (problem) say(fmt::format("{}: {}", variant.name, *problem));
      if (!text.empty() && !problem) results.attention = attention_report(run, text);
    } catch (const DataError& error) {
      say(fmt::format("{}: no attention maps: {}", variant.name, error.what()));
    }
    if (!plan_.settings.scaling) return;
    const auto path = options_.dir / "measured" / (variant.slug + "-scaling.json");
    results.scaling = *kept(path, measuring_key(run_dir), scaling_in, [&] {
      say(fmt::format("measuring {} over its length", variant.name));
      auto scaling = scaling_options(options_.device);
      scaling.should_stop = options_.should_stop;
      Json curves = Json::array();
      for (const auto& curve :
           measure_scaling(variant.experiment.model, run.task().purpose(), options_.device, scaling))
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
  bool measure() {
    if (plan_.settings.speed_seconds <= 0) return true;
    std::vector<MeasuredRun> measured;
    std::vector<RunResults*> runs;
    Json key{{"seconds", plan_.settings.speed_seconds}, {"runs", Json::object()}};
    for (size_t i = 0; i < results_.runs.size(); ++i) {
      auto& run = results_.runs[i];
      if (run.ablation) continue;
      const auto dir = shown_dir(plan_.variants[i], run);
      if (!dir) continue;
      measured.push_back({run.name, *dir});
      runs.push_back(&run);
      key["runs"][run.name] = measuring_key(*dir);
    }
    const auto path = options_.dir / "measured" / "speeds.json";
    if (read_speeds(read_kept(path, key), runs)) return true;
    const auto all = measure_in_turns(measured, {.device = options_.device,
                                                 .seconds = plan_.settings.speed_seconds,
                                                 .should_stop = options_.should_stop,
                                                 .on_message = options_.on_message});
    if (all.size() < measured.size()) return false;
    Json speeds = Json::object();
    for (size_t i = 0; i < runs.size(); ++i) speeds[runs[i]->name] = *(runs[i]->speed = speed_of(all[i]));
    keep(path, key, speeds);
    return true;
  }

  /// Whether all speeds are kept.
  static bool read_speeds(const Json& kept, const std::vector<RunResults*>& runs) {
    for (auto* run : runs) run->speed = speed_in(member(kept, run->name.c_str()));
    return kept.is_object() &&
           std::ranges::all_of(runs, [](const auto* one) { return one->speed.has_value(); });
  }

  /// The text for the maps of all runs: the first of the comparison's inputs, or else of the samples' inputs,
  /// that is short enough. If all are too long, the beginning of the first one. Throws DataError.
  std::string text_to_look_at(const Run& run, const std::vector<Sample>& samples) const {
    auto texts = plan_.settings.inputs;
    if (texts.empty()) {
      for (const auto& sample : samples) {
        if (!sample.input.empty()) texts.push_back(sample.input);
      }
    }
    const auto& tokenizer = run.tokenizer();
    for (const auto& text : texts) {
      if (std::ssize(tokenizer.encode(text)) <= kMostMapTokens) return text;
    }
    if (texts.empty()) return {};
    auto ids = tokenizer.encode(texts.front());
    constexpr int64_t special = 2;  // tokens around a text
    const int64_t most = std::max<int64_t>(run.experiment().data.sequence_length - special, 1);
    ids.resize(static_cast<size_t>(std::min(kMostMapTokens, most)));
    return tokenizer.decode(ids);
  }

  std::vector<Notice> notices() const {
    auto list = plan_.notices;
    if (const int64_t n_jobs = most_jobs(options_.dir); n_jobs > 1) {
      list.push_back({NoticeKind::training, fmt::format("{} trainings ran at the same time: their seconds "
                                                        "are not comparable with a training that runs alone.",
                                                        n_jobs)});
    }
    return list;
  }

  const ComparisonPlan& plan_;
  const ResultsOptions& options_;
  ComparisonResults results_;
};

}  // namespace

std::optional<ComparisonResults> collect_results(const ComparisonPlan& plan, const ResultsOptions& options) {
  return Collector(plan, options).collect();
}

}  // namespace zoo
