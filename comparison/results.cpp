#include "comparison/results.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <system_error>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "comparison/attention_rollout.h"
#include "comparison/attention_statistics.h"
#include "comparison/findings.h"
#include "comparison/json.h"
#include "comparison/measure.h"
#include "comparison/metric.h"
#include "comparison/runner.h"
#include "comparison/scaling.h"
#include "comparison/speeds.h"
#include "comparison/statistics.h"
#include "io/error.h"
#include "io/files.h"
#include "io/machine.h"
#include "training/checkpoint.h"
#include "training/run.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// What keep() wrote; null where there is nothing, or nothing whole.
Json read_kept(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return nullptr;
  auto json = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json() : json;
}
void keep(const fs::path& path, const Json& json) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  write_file_atomically(path, json.dump() + "\n");
}

/// A file that is made once: read it, or make its content and write it.
template <class Make>
Json kept(const fs::path& path, const Make& make) {
  Json json = read_kept(path);
  if (json.is_null()) keep(path, json = make());
  return json;
}

/// The rows of a run's metrics as lists, one a quantity.
class Curves {
 public:
  Curves(const fs::path& run_dir, const Metric& metric) {
    std::string text;
    try {
      text = read_file(run_dir / "metrics.jsonl");
    } catch (const DataError&) {
      return;  // killed before its first row
    }
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      const auto row = Json::parse(text.substr(begin, end - begin), nullptr, /*allow_exceptions=*/false);
      if (!row.is_object()) continue;
      if (row.contains("valid_loss")) {
        add(valid, row);
        valid["valid_loss"].push_back(row["valid_loss"]);
        valid["metric"].push_back(row.value("valid_" + metric.key, Json()));
      } else if (row.contains("train_loss")) {
        add(train, row);
        train["train_loss"].push_back(row["train_loss"]);
      }
    }
  }

  Json valid = empty({"valid_loss", "metric"}), train = empty({"train_loss"});

 private:
  static Json empty(std::initializer_list<const char*> values) {
    Json lists;
    for (const char* axis : {"step", "tokens", "flops", "seconds"}) lists[axis] = Json::array();
    for (const char* value : values) lists[value] = Json::array();
    return lists;
  }
  static void add(Json& lists, const Json& row) {
    for (const char* axis : {"step", "tokens", "flops", "seconds"})
      lists[axis].push_back(row.value(axis, Json()));
  }
};

Json as_json(const Metrics& metrics) {
  Json json;
  for (const auto& [name, value] : metrics) json[name] = std::isfinite(value) ? Json(value) : Json();
  return json;
}

/// All metrics of a run's best weights on its validation data.
Json evaluation(const fs::path& run_dir, c10::Device device) {
  return kept(run_dir / "evaluation.json",
              [&] { return as_json(Run::open(run_dir, device).evaluate(Split::valid)); });
}

/// The same in sequences of another length than in training.
Json evaluation_at(int64_t length, const fs::path& run_dir, c10::Device device) {
  return kept(run_dir / fmt::format("evaluation-{}.json", length), [&] {
    const auto run = Run::open(run_dir, device);
    Experiment other = run.experiment();
    other.data.sequence_length = length;
    return as_json(open_task(other, run.task().vocabulary())->evaluate(run.model(), Split::valid));
  });
}

Json to_json(const Interval& interval) {
  return {{"mean", interval.mean},
          {"low", or_null(interval.low)},
          {"high", or_null(interval.high)},
          {"deviation", or_null(interval.deviation)},
          {"n", interval.n}};
}

/// Integers, 999 for a weight of 1: a report of many maps has to be small.
Json as_integers(const torch::Tensor& weights) {
  const auto whole = weights.to(torch::kFloat).clamp(0, 1).mul(999).round().to(torch::kLong).contiguous();
  return std::vector<int64_t>(whole.const_data_ptr<int64_t>(),
                              whole.const_data_ptr<int64_t>() + whole.numel());
}

Json maps_json(const AttentionReport& report) {
  Json maps = Json::array();
  for (const auto& layer : report.layers) {
    if (maps.empty() || maps.back()["kind"] != name_of(layer.kind))
      maps.push_back({{"kind", name_of(layer.kind)}, {"layers", Json::array()}});
    Json heads = Json::array();
    for (int64_t h = 0; h < layer.weights.size(0); ++h) heads.push_back(as_integers(layer.weights[h]));
    maps.back()["layers"].push_back(std::move(heads));
  }
  return maps;
}

/// The roll-out of each kind's last layer.
Json rollout_json(const AttentionReport& report) {
  Json list = Json::array();
  for (const auto& rollout : attention_rollout(report)) {
    Json entry{{"kind", name_of(rollout.kind)}, {"rows", as_integers(rollout.weights)}};
    if (!list.empty() && list.back()["kind"] == entry["kind"]) list.erase(list.end() - 1);
    list.push_back(std::move(entry));
  }
  return list;
}

Json attention_json(const Run& run, const std::string& text) {
  const auto report = attention_report(run, text);
  return {{"text", report.text},
          {"target", report.answers() ? Json(report.target) : Json()},
          {"source_tokens", report.source_tokens},
          {"target_tokens", report.target_tokens},
          {"target_next", report.target_next},
          {"maps", maps_json(report)},
          {"heads", Json::parse(to_json(head_statistics(report)))},
          {"rollout", rollout_json(report)}};
}

Json samples_json(const std::vector<Sample>& samples) {
  Json list = Json::array();
  for (const auto& sample : samples)
    list.push_back(
        {{"input", sample.input}, {"output", sample.output}, {"reference", or_null(sample.reference)}});
  return list;
}

Json speed_json(const Speed& speed) {
  Json json{{"train_tokens_per_second", speed.train.tokens_per_second},
            {"prompt_tokens_per_second", nullptr},
            {"decode_tokens_per_second", nullptr},
            {"first_token_seconds", nullptr}};
  if (speed.prompt) json["prompt_tokens_per_second"] = speed.prompt->tokens_per_second;
  if (speed.decode) {
    json["decode_tokens_per_second"] = speed.decode->tokens_per_second;
    json["first_token_seconds"] = speed.decode->first_token_seconds;
  }
  return json;
}

class Collector {
 public:
  Collector(const ComparisonPlan& plan, const ResultsOptions& options)
      : plan_(plan), options_(options), metric_(metric_of(plan.variants.front().experiment.task)) {}

  Json collect() {
    Json runs = Json::array();
    for (const auto& variant : plan_.variants) {
      if (stopped()) return nullptr;
      runs.push_back(run_json(variant));
      if (runs.back().is_null()) return nullptr;
    }
    if (!measure(runs)) return nullptr;
    compare_with_baselines(runs, metric_);
    Json document = header();
    document["fair"] = plan_.fair();
    document["notices"] = Json::array();
    for (const auto& [kind, text] : notices_)
      document["notices"].push_back({{"kind", name_of(kind)}, {"text", text}});
    document["differences"] = plan_.differences;
    document["runs"] = std::move(runs);
    document["measured"] = findings(document["runs"], metric_);
    return document;
  }

 private:
  bool stopped() const { return options_.should_stop && options_.should_stop(); }
  void say(const std::string& line) const {
    if (options_.on_message) options_.on_message(line);
  }

  Json header() const {
    const auto machine = machine_info();
    const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    Json match;
    if (plan_.match) {
      match = {{"quantity", name_of(plan_.match->quantity)},
               {"target", plan_.match->target},
               {"spread", plan_.match->spread}};
    }
    std::vector<int64_t> seeds;
    for (const auto& variant : plan_.variants) {
      for (const int64_t seed : variant.seeds) {
        if (std::find(seeds.begin(), seeds.end(), seed) == seeds.end()) seeds.push_back(seed);
      }
    }
    return {{"schema", "transformer-zoo/comparison/1"},
            {"name", plan_.settings.name},
            {"title", plan_.settings.title},
            {"folklore", plan_.settings.folklore},
            {"measured", ""},
            {"command", options_.command},
            {"created",
             fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)))},
            {"machine",
             {{"cpu", machine.cpu},
              {"cores", machine.cores},
              {"threads", at::get_num_threads()},
              {"memory_bytes", machine.memory_bytes},
              {"device", options_.device.str()},
              {"system", machine.system}}},
            {"versions",
             {{"transformer_zoo", ZOO_VERSION}, {"libtorch", TORCH_VERSION}, {"compiler", __VERSION__}}},
            {"task", name_of(plan_.variants.front().experiment.task)},
            {"metric",
             {{"key", metric_.key},
              {"label", metric_.label},
              {"better", name_of(metric_.better)},
              {"percent", metric_.percent}}},
            {"budget", {{"kind", name_of(plan_.budget.kind)}, {"amount", plan_.budget.amount}}},
            {"match", match},
            {"seeds", seeds}};
  }

  fs::path dir_of(const PlannedVariant& variant, int64_t seed) const {
    return variant.run ? *variant.run : run_dir_of(options_.dir, variant, seed);
  }

  Json run_json(const PlannedVariant& variant) {
    Json seeds = Json::array();
    std::vector<double> values;
    int64_t peak = 0;
    std::optional<int64_t> shown;  // the seed whose samples and maps are shown: the first that was trained
    for (const int64_t seed : variant.seeds) {
      if (stopped()) return nullptr;
      say(fmt::format("evaluating {}, seed {}", variant.name, seed));
      seeds.push_back(seed_json(variant, seed));
      const auto& value = seeds.back()["valid"].value(metric_.key, Json());
      if (value.is_number()) values.push_back(value.get<double>());
      peak = std::max(peak, seeds.back()["peak_memory_bytes"].get<int64_t>());
      if (!shown && seeds.back()["end"] != "failed") shown = seed;
    }
    Json config;
    for (const auto& [key, value] : flatten(variant.experiment)) config[key] = value;
    Json run{{"name", variant.name},
             {"architecture", name_of(variant.experiment.model.architecture)},
             {"config", config},
             {"parameters", variant.cost.parameters},
             {"sequence_length", variant.experiment.data.sequence_length},
             {"flops_per_token", variant.cost.flops_per_token},
             {"activation_bytes_per_token", variant.cost.activation_bytes_per_token},
             {"weight_bytes", variant.cost.weight_bytes},
             {"cache_bytes_per_token", variant.cost.cache_bytes_per_token},
             {"metric", values.empty() ? Json() : to_json(mean_interval(values))},
             {"baseline", or_null(variant.baseline)},
             {"versus_baseline", nullptr},
             {"lengths", lengths_json(variant)},
             {"seeds", std::move(seeds)},
             {"speed", nullptr},
             {"peak_memory_bytes", peak},
             {"scaling", Json::array()},
             {"samples", Json::array()},
             {"attention", nullptr}};
    if (shown) look_at(variant, *shown, run);
    return run;
  }

  /// The metric at each of the lengths that were asked for.
  Json lengths_json(const PlannedVariant& variant) const {
    Json list = Json::array();
    for (const int64_t length : plan_.settings.evaluate_lengths) {
      std::vector<double> values;
      for (const int64_t seed : variant.seeds) {
        const auto dir = dir_of(variant, seed);
        if (failure_of(dir)) continue;
        const auto value = evaluation_at(length, dir, options_.device).value(metric_.key, Json());
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
    if (!checkpoint && !failure && !variant.run)
      throw CheckpointError(fmt::format("{}: not trained to its end; --resume goes on", dir.string()));
    const TrainingState state = checkpoint ? read_training_state(*checkpoint) : TrainingState();
    if (failure)
      notices_.push_back({NoticeKind::failure, fmt::format("{}, seed {}: {}", variant.name, seed, *failure)});
    const auto& training = variant.experiment.training;
    const bool out_of_time = !failure && training.max_seconds && state.step < training.steps;
    const Json valid = failure ? Json::object() : evaluation(dir, options_.device);
    Curves curves(dir, metric_);
    std::error_code ignored;
    return {{"seed", seed},
            {"run", fs::proximate(dir, options_.dir, ignored).string()},
            {"end", failure       ? "failed"
                    : out_of_time ? "out_of_time"
                                  : "all_steps"},
            {"error", or_null(failure)},
            {"steps", state.step},
            {"tokens", state.tokens},
            {"flops", state.flops},
            {"seconds", state.seconds},
            {"valid_loss", valid.value("loss", Json())},
            {"valid", valid},
            {"best_step", state.best_step},
            {"peak_memory_bytes", state.peak_memory_bytes},
            {"peak_resident_bytes", state.peak_resident_bytes},
            {"curve", std::move(curves.valid)},
            {"train_curve", std::move(curves.train)}};
  }

  /// Samples, maps and scaling of one trained run.
  void look_at(const PlannedVariant& variant, int64_t seed, Json& json) const {
    const auto run = Run::open(dir_of(variant, seed), options_.device);
    json["samples"] = samples_json(run.task().samples(run.model(), plan_.settings.inputs));
    const auto text = text_to_look_at(json["samples"]);
    try {
      if (!text.empty()) json["attention"] = attention_json(run, text);
    } catch (const DataError& error) {
      say(fmt::format("{}: no attention maps: {}", variant.name, error.what()));
    }
    if (!plan_.settings.scaling) return;
    json["scaling"] = kept(options_.dir / "measured" / (variant.slug + "-scaling.json"), [&] {
      say(fmt::format("measuring {} over its length", variant.name));
      Json curves = Json::array();
      for (const auto& curve : measure_scaling(variant.experiment.model, run.task().purpose(),
                                               options_.device, scaling_options(options_.device)))
        curves.push_back(to_json(curve));
      return curves;
    });
  }

  /// The speeds of all runs. They are kept together: one more variant, and all are measured again. Returns
  /// whether it was not told to stop.
  bool measure(Json& runs) const {
    if (plan_.settings.speed_seconds <= 0) return true;
    std::vector<MeasuredRun> measured;
    std::vector<Json*> entries;
    for (size_t i = 0; i < plan_.variants.size(); ++i) {
      const auto& seeds = runs[i]["seeds"];
      const auto shown =
          std::ranges::find_if(seeds, [](const Json& seed) { return seed["end"] != "failed"; });
      if (shown == seeds.end()) continue;
      measured.push_back({plan_.variants[i].name, dir_of(plan_.variants[i], (*shown)["seed"])});
      entries.push_back(&runs[i]);
    }
    const auto path = options_.dir / "measured" / "speeds.json";
    Json speeds = read_kept(path);
    const auto is_there = [&](const MeasuredRun& run) {
      return speeds.is_object() && speeds.contains(run.name);
    };
    if (!std::ranges::all_of(measured, is_there)) {
      const auto medians = measure_in_turns(measured, {.device = options_.device,
                                                       .seconds = plan_.settings.speed_seconds,
                                                       .should_stop = options_.should_stop,
                                                       .on_message = options_.on_message});
      if (medians.size() < measured.size()) return false;
      speeds = Json::object();
      for (size_t i = 0; i < measured.size(); ++i) speeds[measured[i].name] = speed_json(medians[i]);
      keep(path, speeds);
    }
    for (size_t i = 0; i < measured.size(); ++i) (*entries[i])["speed"] = speeds[measured[i].name];
    return true;
  }

  /// What all runs' maps are drawn of: a short text of the comparison's own, else the first sample's input.
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
    if (options_.jobs > 1) {
      list.push_back(
          {NoticeKind::training, fmt::format("{} trainings ran at a time: their seconds are not those of one "
                                             "alone.",
                                             options_.jobs)});
    }
    return list;
  }
};

}  // namespace

nlohmann::ordered_json collect_results(const ComparisonPlan& plan, const ResultsOptions& options) {
  const auto results = Collector(plan, options).collect();
  // A byte model writes bytes that are no text: they become U+FFFD here, once for all readers.
  return Json::parse(results.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace zoo
