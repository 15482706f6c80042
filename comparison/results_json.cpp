#include "comparison/results_json.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <torch/types.h>
#include <torch/version.h>

#include "analysis/attention_rollout.h"
#include "analysis/attention_statistics.h"
#include "base/machine.h"
#include "base/version.h"
#include "comparison/kept_results.h"
#include "comparison/protocol.h"
#include "comparison/source_commit.h"
#include "io/json_document.h"
#include "pages/tables/best_values.h"
#include "pages/tables/report_document.h"
#include "tasks/task_type.h"
#include "tasks/text/text_slices.h"

namespace zoo {
namespace {

/// Integers, 999 for a weight of 1: they keep a report with many maps small.
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

}  // namespace

// Json(value) calls these.

static void to_json(Json& json, const AttentionReport& report) {
  json = {{"text", report.text},
          {"target", report.answers() ? Json(report.target) : Json()},
          {"source_tokens", report.source_tokens},
          {"target_tokens", report.target_tokens},
          {"target_next", report.target_next},
          {"maps", maps_json(report)},
          {"heads", Json::parse(to_json(head_statistics(report)))},
          {"rollout", rollout_json(report)}};
}

static void to_json(Json& json, const Budget& budget) {
  json = {{"kind", name_of(budget.kind)}, {"amount", budget.amount}};
}

static void to_json(Json& json, const ConfusionMatrix& matrix) {
  json = {{"labels", matrix.labels}, {"counts", matrix.counts}};
}

static void to_json(Json& json, const DifferingExample& example) {
  json = {{"input", example.text.input},
          {"target", or_null(example.text.target)},
          {"prediction", or_null(example.text.prediction)},
          {"baseline_prediction", or_null(example.baseline_prediction)},
          {"value", example.value},
          {"baseline_value", example.baseline_value}};
}

static void to_json(Json& json, const Estimate& estimate) {
  json = {{"value", estimate.value}, {"low", or_null(estimate.low)}, {"high", or_null(estimate.high)}};
}

static void to_json(Json& json, const GuessLosses& guess) {
  json = {{"uniform", guess.uniform}, {"unigram", guess.unigram}};
}

static void to_json(Json& json, const Interval& interval) {
  json = {{"mean", interval.mean},
          {"low", or_null(interval.low)},
          {"high", or_null(interval.high)},
          {"deviation", or_null(interval.deviation)},
          {"n", interval.n}};
}

static void to_json(Json& json, const LayerLoad& load) {
  json = {{"place", load.place}, {"tokens", load.tokens}};
}

static void to_json(Json& json, const LengthResult& result) {
  json = {{"length", result.length}};
  json.update(result.metric);
}

static void to_json(Json& json, const MatchResult& match) {
  json = {{"quantity", name_of(match.quantity)}, {"target", match.target}, {"spread", match.spread}};
}

static void to_json(Json& json, const Metric& metric) {
  json = {{"key", metric.key},
          {"label", metric.label},
          {"better", name_of(metric.better)},
          {"percent", metric.percent}};
}

static void to_json(Json& json, const Notice& notice) {
  json = {{"kind", name_of(notice.kind)}, {"text", notice.text}};
}

static void to_json(Json& json, const Power& power) {
  json = {{"deviations", power.deviations},
          {"seeds", power.seeds},
          {"tests", power.tests},
          {"probability", power.probability},
          {"seeds_needed", or_null(power.seeds_needed)}};
}

static void to_json(Json& json, const Sample& sample) {
  json = {{"input", sample.input}, {"output", sample.output}, {"reference", or_null(sample.reference)}};
}

static void to_json(Json& json, const SizeFit::Point& point) {
  const auto& [run, variant, size, seed, flops, loss] = point;
  json = {{"run", run},   {"variant", variant}, {"size", size},
          {"seed", seed}, {"flops", flops},     {"loss", loss}};
}

static void to_json(Json& json, const SizeFit& sizes) {
  const auto& [own, shared_exponent, compute_ratios, p_equal_exponents] = sizes.fit;
  Json variants = Json::array();
  for (size_t i = 0; i < sizes.variants.size(); ++i) {
    variants.push_back({{"name", sizes.variants[i]},
                        {"exponent", own[i].exponent},
                        {"scale", own[i].scale},
                        {"compute_ratio", compute_ratios[i]},
                        {"overlaps", bool{sizes.overlaps[i]}}});
  }
  json = {{"names", sizes.sizes},
          {"loss", sizes.loss},
          {"exponent", shared_exponent},
          {"p_equal_exponents", or_null(p_equal_exponents)},
          {"variants", std::move(variants)},
          {"points", sizes.points}};
}

static void to_json(Json& json, const TunedVariant& variant) {
  Json candidates = Json::array();
  for (const auto& [name, metric] : variant.candidates)
    candidates.push_back({{"name", name}, {"metric", or_null(metric)}});
  json = {{"name", variant.name},
          {"chosen", variant.chosen},
          {"at_edge", !variant.keys_at_edge.empty()},
          {"keys_at_edge", variant.keys_at_edge},
          {"flops", variant.flops},
          {"seconds", variant.seconds},
          {"candidates", std::move(candidates)}};
}

static void to_json(Json& json, const TuningResults& tuning) {
  json = {{"share", tuning.share},
          {"seeds", tuning.seeds},
          {"budget", tuning.budget},
          {"variants", tuning.variants}};
}

static void to_json(Json& json, const TranslationScore& score) {
  json = {{"key", score.metric == TextMetric::bleu ? "bleu" : "chrf"},
          {"label", score.metric == TextMetric::bleu ? "BLEU" : "chrF"},
          {"value", score.value},
          {"baseline_value", or_null(score.baseline_value)}};
  if (!score.test) return;
  json.update({{"difference", score.test->difference},
               {"low", or_null(score.test->low)},
               {"high", or_null(score.test->high)},
               {"p", or_null(score.test->p)},
               {"p_corrected", or_null(score.p_corrected)},
               {"verdict", name_of(*score.verdict)}});
}

static void to_json(Json& json, const MainEffect& effect) {
  const auto& test = effect.test;
  json = {{"key", effect.key},
          {"from", effect.from},
          {"to", effect.to},
          {"difference", test.difference},
          {"low", or_null(test.low)},
          {"high", or_null(test.high)},
          {"n", test.n},
          {"p", or_null(test.p)},
          {"p_corrected", or_null(effect.p_corrected)},
          {"verdict", name_of(effect.verdict)}};
}

static void to_json(Json& json, const SliceResult& result) {
  const auto& [kind, name] = kTextSlices[result.slice];
  json = {{"kind", name_of(kind)},
          {"name", name},
          {"share", result.share},
          {"value", result.value},
          {"baseline_value", or_null(result.baseline_value)}};
  if (!result.test) return;
  json.update({{"n", result.test->n},
               {"difference", result.test->difference},
               {"low", or_null(result.test->low)},
               {"high", or_null(result.test->high)},
               {"p", or_null(result.test->p)},
               {"p_corrected", or_null(result.p_corrected)},
               {"p_same", or_null(result.p_same)},
               {"margin", result.margin},
               {"verdict", name_of(*result.verdict)}});
}

static void to_json(Json& json, const VersusBaseline& versus) {
  const auto& test = versus.test;
  json = {{"difference", test.difference},
          {"low", or_null(test.low)},
          {"high", or_null(test.high)},
          {"n", test.n},
          {"over", name_of(versus.over)},
          {"p", or_null(test.p)},
          {"p_corrected", or_null(versus.p_corrected)},
          {"margin", versus.margin},
          {"p_same", or_null(versus.p_same)},
          {"seeds_needed", or_null(versus.seeds_needed)},
          {"verdict", name_of(versus.verdict)}};
  if (versus.agreeing) json["agreeing"] = *versus.agreeing;
}

static void to_json(Json& json, const AblationConfig& ablation) {
  json = {{"of", ablation.of},
          {"by", name_of(ablation.by)},
          {"parts", ablation.parts},
          {"strongest", ablation.strongest ? Json(name_of(*ablation.strongest)) : Json()},
          {"heads", ablation.strongest ? Json(ablation.heads) : Json()},
          {"positions", ablation.positions}};
}

namespace {

/// A row's values of the grid. With `sizes`, the size is one of them.
std::vector<KeyValue> grid_values_of(const PlannedVariant& variant) {
  auto values = variant.grid;
  if (!variant.size.empty()) values.push_back({"size", variant.size});
  return values;
}

/// What `values_of_row` gives of all rows, each value once.
template <class Value, class Of>
std::vector<Value> distinct(const ComparisonPlan& plan, const Of& values_of_row) {
  std::vector<Value> all;
  for (const auto& variant : plan.variants) {
    for (const auto& value : values_of_row(variant)) {
      if (std::ranges::find(all, value) == all.end()) all.push_back(value);
    }
  }
  return all;
}

/// The keys of the grid and their values, in the order of the file. A label is the last word of its key, or
/// the key where several end alike.
Json grid_of(const ComparisonPlan& plan) {
  const auto end = [](std::string_view dotted) { return dotted.substr(dotted.rfind('.') + 1); };
  const auto pairs = distinct<KeyValue>(plan, grid_values_of);
  Json grid = Json::array();
  for (const auto& [key, value] : pairs) {
    auto entry = std::ranges::find_if(grid, [&](const Json& one) { return one["key"] == key; });
    if (entry == grid.end()) {
      const bool alike = std::ranges::any_of(
          pairs, [&](const KeyValue& other) { return other.key != key && end(other.key) == end(key); });
      grid.push_back(
          {{"key", key}, {"label", alike ? key : std::string(end(key))}, {"values", Json::array()}});
      entry = grid.end() - 1;
    }
    (*entry)["values"].push_back(value);
  }
  return grid;
}

Json machine_json(c10::Device device) {
  const auto machine = machine_info();
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"threads", at::get_num_threads()},
          {"memory_bytes", machine.memory_bytes},
          {"device", device.str()},
          {"system", machine.system}};
}

Json versions_json() {
  const auto commit = source_commit();
  return {{"transformer_zoo", version()},
          {"commit", commit.empty() ? Json() : Json(commit)},
          {"libtorch", TORCH_VERSION},
          {"compiler", compiler()}};
}

std::string time_now() {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

/// A number as metrics.jsonl writes it: a whole one without a point.
Json plain_number(double value) {
  constexpr double most = 1e16;
  if (std::trunc(value) == value && std::abs(value) < most) return static_cast<int64_t>(value);
  return value;
}

/// A curve as lists of equal lengths, one per quantity.
Json curve_json(const std::vector<CurvePoint>& points,
                std::vector<std::pair<const char*, double CurvePoint::*>> quantities) {
  Json lists;
  quantities.insert(quantities.begin(), {{"step", &CurvePoint::step},
                                         {"tokens", &CurvePoint::tokens},
                                         {"flops", &CurvePoint::flops},
                                         {"seconds", &CurvePoint::seconds}});
  for (const auto& [key, quantity] : quantities) {
    auto& list = lists[key] = Json::array();
    for (const auto& point : points) list.push_back(plain_number(point.*quantity));
  }
  return lists;
}

/// A list that is absent where no point has the number.
using SometimesLogged = std::pair<const char*, double CurvePoint::*>;

Json train_curve_json(const std::vector<CurvePoint>& points) {
  std::vector<SometimesLogged> quantities = {
      {"train_loss", &CurvePoint::loss}, {"grad_norm", &CurvePoint::grad_norm}, {"lr", &CurvePoint::lr}};
  for (const SometimesLogged& quantity : {SometimesLogged{"experts_busiest", &CurvePoint::experts_busiest},
                                          {"experts_idle", &CurvePoint::experts_idle},
                                          {"experts_dropped", &CurvePoint::experts_dropped},
                                          {"router_entropy", &CurvePoint::router_entropy}}) {
    const auto has_it = [&](const CurvePoint& point) { return !std::isnan(point.*quantity.second); };
    if (std::ranges::any_of(points, has_it)) quantities.push_back(quantity);
  }
  return curve_json(points, std::move(quantities));
}

Json seed_json(const SeedResults& seed, const Metric& metric) {
  const auto known = [&](auto count) { return seed.state ? Json((*seed.state).*count) : Json(); };
  Json valid = seed.scores;
  if (seed.metric) valid[metric.key] = *seed.metric;
  Json json = {{"seed", seed.seed},
               {"run", seed.run.empty() ? Json() : Json(seed.run)},
               {"end", name_of(seed.end)},
               {"error", or_null(seed.error)},
               {"steps", known(&TrainingState::step)},
               {"tokens", known(&TrainingState::tokens)},
               {"flops", known(&TrainingState::flops)},
               {"seconds", known(&TrainingState::seconds)},
               {"data", seed.state && !seed.state->data.empty() ? Json(seed.state->data) : Json()},
               {"valid_loss", or_null(seed.loss)},
               {"valid", std::move(valid)},
               {"learnt", or_null(seed.learnt)},
               {"best_step", known(&TrainingState::best_step)},
               {"peak_memory_bytes", known(&TrainingState::peak_memory_bytes)},
               {"peak_resident_bytes", known(&TrainingState::peak_resident_bytes)},
               {"curve", curve_json(seed.curves.valid,
                                    {{"valid_loss", &CurvePoint::loss}, {"metric", &CurvePoint::metric}})},
               {"train_curve", train_curve_json(seed.curves.train)}};
  if (!seed.ablated.empty()) json["ablated"] = seed.ablated;
  return json;
}

/// The most memory that a seed took, of those that did not fail.
std::optional<int64_t> peak_of(const RunResults& run) {
  std::optional<int64_t> peak;
  for (const auto& seed : run.seeds) {
    if (seed.end != SeedEnd::failed && seed.state)
      peak = std::max(peak.value_or(0), seed.state->peak_memory_bytes);
  }
  return peak;
}

Json run_json(const PlannedVariant& variant, const RunResults& run, const Metric& metric) {
  Json config, grid = Json::object(), seeds = Json::array(), scaling = Json::array();
  for (const auto& [key, value] : flatten(variant.experiment)) config[key] = value;
  for (const auto& [key, value] : grid_values_of(variant)) grid[key] = value;
  for (const auto& seed : run.seeds) seeds.push_back(seed_json(seed, metric));
  for (const auto& curve : run.scaling) scaling.push_back(to_json(curve));
  Json json = {{"name", variant.name},
               {"variant", variant.variant},
               {"grid", std::move(grid)},
               {"architecture", variant.experiment.model.architecture.type},
               {"config", std::move(config)},
               {"parameters", variant.cost.parameters},
               {"sequence_length", variant.experiment.data.sequence_length},
               {"flops_per_token", variant.cost.flops_per_token},
               {"activation_bytes_per_token", variant.cost.activation_bytes_per_token},
               {"weight_bytes", variant.cost.weight_bytes},
               {"cache_bytes_per_token", variant.cost.cache_bytes_per_token},
               {"state_bytes", variant.cost.state_bytes},
               {"guess", or_null(run.guess)},
               {"metric", or_null(run.metric)},
               {"baseline", or_null(run.baseline)},
               {"versus_baseline", or_null(run.versus_baseline)},
               {"lengths", run.lengths},
               {"seeds", std::move(seeds)},
               {"speed", or_null(run.speed)},
               {"peak_memory_bytes", or_null(peak_of(run))},
               {"scaling", std::move(scaling)},
               {"samples", run.samples},
               {"attention", or_null(run.attention)}};
  if (run.ablation) json["ablation"] = *run.ablation;
  if (run.confusion) json["confusion"] = *run.confusion;
  if (!run.expert_loads.empty()) json["experts"] = run.expert_loads;
  if (run.structure) json["structure"] = structure_data(*run.structure);
  if (!run.translation_scores.empty()) json["translations"] = run.translation_scores;
  if (!run.slices.empty()) json["slices"] = run.slices;
  if (const auto& [lower, higher] = run.differing; !lower.empty() || !higher.empty()) {
    const bool is_lower_better = metric.better == Better::lower;
    json["examples"] = {{"better", is_lower_better ? lower : higher},
                        {"worse", is_lower_better ? higher : lower}};
  }
  return json;
}

}  // namespace

Json results_json(const ComparisonResults& results) {
  const auto& plan = results.plan;
  const auto names = [](const PlannedVariant& variant) { return std::vector{variant.variant}; };
  const auto seeds = [](const PlannedVariant& variant) { return variant.seeds; };
  Json runs = Json::array();
  for (size_t i = 0; i < results.runs.size(); ++i)
    runs.push_back(run_json(plan.variants[i], results.runs[i], results.metric));
  Json document = {{"schema", kResultsSchema},
                   {"name", plan.settings.name},
                   {"title", plan.settings.title},
                   {"folklore", plan.settings.folklore},
                   {"measured", results.measured},
                   {"note", plan.settings.note},
                   {"command", results.origin.command},
                   {"yaml", results.origin.yaml.empty() ? Json() : Json(results.origin.yaml)},
                   {"created", time_now()},
                   {"machine", machine_json(results.device)},
                   {"versions", versions_json()},
                   {"task", plan.variants.front().experiment.task.type},
                   {"unit", task_type(plan.variants.front().experiment).unit},
                   {"metric", results.metric},
                   {"budget", plan.budget},
                   {"match", or_null(plan.match)},
                   {"margin", plan.settings.margin},
                   {"variants", distinct<std::string>(plan, names)},
                   {"grid", grid_of(plan)},
                   {"seeds", distinct<int64_t>(plan, seeds)},
                   {"tuning", or_null(results.tuning)},
                   {"fair", is_fair(results.notices)},
                   {"notices", results.notices},
                   {"differences", plan.differences},
                   {"power", or_null(results.power)},
                   {"runs", std::move(runs)},
                   {"sizes", or_null(results.sizes)}};
  if (!results.effects.empty()) document["effects"] = results.effects;
  if (plan.settings.correction != Correction::holm)
    document["correction"] = name_of(plan.settings.correction);
  if (plan.settings.design != Design::full) document["design"] = name_of(plan.settings.design);
  if (!results.origin.of_task.empty()) document["of_task"] = results.origin.of_task;
  if (const auto& progress = results.progress) {
    document["progress"] = {{"finished", progress->finished},
                            {"runs", results.runs.size()},
                            {"finished_trainings", progress->finished_trainings},
                            {"trainings", progress->trainings},
                            {"stopped", progress->state == RunState::stopped}};
  } else {
    mark_best_values(document);
    document["protocol"] = protocol_gaps(document);
  }
  return Json::parse(shown_json(document));
}

}  // namespace zoo
