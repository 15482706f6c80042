#include "comparison/kept_results.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/text.h"
#include "checkpoints/run.h"
#include "comparison/planning/data_stamps.h"
#include "comparison/planning/kept_json.h"
#include "comparison/runner.h"
#include "io/files.h"
#include "io/json_document.h"
#include "io/sha256.h"
#include "models/families/model_cost.h"
#include "pages/tables/report_document.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/problem.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kScores = "evaluation.json";
constexpr const char* kConfusion = "confusion.json";
constexpr const char* kExamples = "examples.json";
constexpr const char* kTranslations = "translations.json";

constexpr std::pair<const char*, std::optional<Measured> RunSpeed::*> kSpeeds[] = {
    {"train_tokens_per_second", &RunSpeed::train_tokens_per_second},
    {"prompt_tokens_per_second", &RunSpeed::prompt_tokens_per_second},
    {"decode_tokens_per_second", &RunSpeed::decode_tokens_per_second},
    {"first_token_seconds", &RunSpeed::first_token_seconds}};

/// Whether an evaluation of the run may have a confusion matrix.
bool has_classes(const fs::path& run_dir) { return task_type(read_run_experiment(run_dir)).needs_labels(); }

struct Evaluated {
  Metrics scores;
  Json confusion;  // {"labels", "counts"}, or {} if there is none
};

/// Evaluates a run, and keeps what it gives.
Evaluated evaluate_and_keep(const fs::path& run_dir, c10::Device device, const Json& key,
                            std::vector<ExampleScore>* examples = nullptr) {
  const auto run = Run::open(run_dir, device);
  torch::Tensor counts;
  Evaluated evaluated{.scores = run.evaluate(Split::valid, {}, {.confusion = &counts, .examples = examples}),
                      .confusion = Json::object()};
  keep(run_dir / kScores, key, evaluated.scores);
  if (!has_classes(run_dir)) return evaluated;
  if (counts.defined()) evaluated.confusion = confusion_json(counts, run.labels());
  keep(run_dir / kConfusion, key, evaluated.confusion);
  return evaluated;
}

/// The value and the weight of an example, as ExampleValues has them; null for a metric that is no mean over
/// examples.
std::function<std::pair<double, double>(const ExampleScore&)> measure_of(const Metric& metric) {
  if (metric.key == "accuracy" || metric.key == "acc") {
    return [](const auto& example) {
      return std::pair(static_cast<double>(example.n_right), static_cast<double>(example.n_answers));
    };
  }
  if (metric.key == "acc_norm") {
    return [](const auto& example) {
      const auto& choice = *example.choice;
      return std::pair(choice.chosen_by_length == choice.answer ? 1.0 : 0.0, 1.0);
    };
  }
  if (metric.key == "loss") {
    return [](const auto& example) { return std::pair(example.loss, static_cast<double>(example.targets)); };
  }
  if (metric.key == "bits_per_byte" || metric.key == "bits_per_decoded_byte") {
    return [](const auto& example) {
      return std::pair(example.loss / std::numbers::ln2, static_cast<double>(example.bytes));
    };
  }
  return nullptr;
}

/// The beginning of a long text.
std::string beginning_of(const std::string& text) {
  constexpr size_t most = 400;  // bytes
  if (text.size() <= most) return text;
  const auto cut = text.substr(0, most);
  return cut.substr(0, cut.size() - incomplete_utf8(cut)) + "…";
}

Json text_of(const ExampleScore& example) {
  Json text{{"input", beginning_of(example.input)}};
  if (example.target) text["target"] = beginning_of(*example.target);
  if (example.prediction) text["prediction"] = beginning_of(*example.prediction);
  return text;
}

/// The slices of all examples; [] where they have none.
Json slices_of(const std::vector<ExampleScore>& examples) {
  Json slices = Json::array();
  if (examples.empty()) return slices;
  for (size_t slice = 0; slice < examples.front().slices.size(); ++slice) {
    Json values = Json::array(), weights = Json::array();
    for (const auto& example : examples) {
      const auto& [nats, bytes] = example.slices.at(slice);
      values.push_back(nats / std::numbers::ln2);
      weights.push_back(bytes);
    }
    slices.push_back({{"values", std::move(values)}, {"weights", std::move(weights)}});
  }
  return slices;
}

/// The numbers of the examples' documents; [] where these would show nothing: each example is one, or there
/// are so few parts of texts that their examples have to count as independent. (Ten signs by chance are equal
/// once in 512 times.) A column that the user has named always counts.
Json documents_of(const std::vector<ExampleScore>& examples, const DataConfig& config) {
  constexpr size_t fewest = 10;
  std::map<std::string, int64_t> numbers;
  std::vector<int64_t> documents;
  for (const auto& example : examples) {
    if (!example.document) return Json::array();
    const auto number = std::ssize(numbers);
    documents.push_back(numbers.try_emplace(*example.document, number).first->second);
  }
  if (numbers.size() == examples.size()) return Json::array();
  return numbers.size() < fewest && config.document_column.empty() ? Json::array() : Json(documents);
}

std::optional<ExampleValues> example_values_in(const Json& json) try {
  ExampleValues result{.values = json.at("values").get<std::vector<double>>(),
                       .weights = json.at("weights").get<std::vector<double>>(),
                       .inputs = json.at("inputs").get<std::string>()};
  result.documents = json.at("documents").get<std::vector<int64_t>>();
  result.outputs = json.at("outputs").get<std::string>();
  for (const auto& slice : json.at("slices")) {
    result.slices.push_back({.values = slice.at("values").get<std::vector<double>>(),
                             .weights = slice.at("weights").get<std::vector<double>>()});
  }
  const auto text_in = [](const Json& text, const char* key) {
    return text.contains(key) ? std::optional(text.at(key).get<std::string>()) : std::nullopt;
  };
  for (const auto& text : json.at("texts")) {
    result.texts.push_back({.input = text.at("input").get<std::string>(),
                            .target = text_in(text, "target"),
                            .prediction = text_in(text, "prediction")});
  }
  return result;
} catch (const Json::exception&) {
  return std::nullopt;
}

std::optional<Translations> translations_in(const Json& json) try {
  return Translations{.sources = json.at("sources").get<std::vector<std::string>>(),
                      .outputs = json.at("outputs").get<std::vector<std::string>>(),
                      .references = json.at("references").get<std::vector<std::string>>()};
} catch (const Json::exception&) {
  return std::nullopt;
}

/// The number of a row; NaN where it has none.
double number_in(const Metrics& row, const std::string& name) {
  const auto found = row.find(name);
  return found == row.end() ? kNone : found->second;
}

}  // namespace

Json score_key(const fs::path& run_dir, c10::Device device) {
  const auto weights = run_weights(run_dir);
  std::error_code ignored;
  return {{"weights", weights.filename().string()},
          {"bytes", fs::file_size(weights, ignored)},
          {"written", fs::last_write_time(weights, ignored).time_since_epoch().count()},
          {"config", sha256(read_file(run_dir / "config.yaml", Follow::nothing))},
          {"data", evaluation_data_stamps(read_run_experiment(run_dir).data)},
          {"device", device.str()}};
}

Metrics scores_of(const fs::path& run_dir, c10::Device device) {
  const auto key = score_key(run_dir, device);
  const auto scores = metrics_in(read_kept(run_dir / kScores, key));
  return scores ? *scores : evaluate_and_keep(run_dir, device, key).scores;
}

std::optional<ConfusionMatrix> confusion_of_run(const fs::path& run_dir, c10::Device device) {
  if (!has_classes(run_dir)) return std::nullopt;
  const auto key = score_key(run_dir, device);
  auto confusion = read_kept(run_dir / kConfusion, key);
  if (!confusion.is_object()) confusion = evaluate_and_keep(run_dir, device, key).confusion;
  return confusion_matrix(confusion);
}

std::optional<ExampleValues> examples_of_run(const fs::path& run_dir, const Metric& metric,
                                             c10::Device device) {
  const auto measure = measure_of(metric);
  if (!measure) return std::nullopt;
  auto key = score_key(run_dir, device);
  const auto scores_key = key;
  key["metric"] = metric.key;
  return kept(run_dir / kExamples, key, example_values_in, [&] {
    std::vector<ExampleScore> examples;
    evaluate_and_keep(run_dir, device, scores_key, &examples);
    Json values = Json::array(), weights = Json::array(), texts = Json::array();
    std::string inputs, outputs;
    for (const auto& example : examples) {
      const auto [value, weight] = measure(example);
      values.push_back(value);
      weights.push_back(weight);
      texts.push_back(text_of(example));
      inputs += fmt::format("{} {}\n", example.input.size(), example.input);
      outputs += fmt::format("{} {}\n", example.loss, example.n_right);
    }
    return Json{{"values", std::move(values)},
                {"weights", std::move(weights)},
                {"texts", std::move(texts)},
                {"slices", slices_of(examples)},
                {"documents", documents_of(examples, read_run_experiment(run_dir).data)},
                {"inputs", sha256(inputs)},
                {"outputs", sha256(outputs)}};
  });
}

Translations translations_of_run(const fs::path& run_dir, c10::Device device) {
  return kept(run_dir / kTranslations, score_key(run_dir, device), translations_in,
              [&] {
                const auto run = Run::open(run_dir, device);
                const auto made =
                    run.translate(Split::valid, {}, {.generation = run.experiment().generation});
                return Json{
                    {"sources", made.sources}, {"outputs", made.outputs}, {"references", made.references}};
              })
      .value();
}

Curves read_curves(const fs::path& run_dir, const Metric& metric) {
  Curves curves;
  if (!is_there(run_dir / "metrics.jsonl")) return curves;  // killed before its first row
  const std::string text = read_json_text(run_dir / "metrics.jsonl");
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    const auto line = std::string_view(text).substr(begin, end - begin);
    if (!line.starts_with('{')) continue;  // to parse what is no row takes long
    const auto row = metrics_in(ordered_json_or_null(line));
    if (!row) continue;
    const bool is_evaluation = row->contains("valid_loss");
    if (!is_evaluation && !row->contains("train_loss")) continue;
    const auto number = [&](const char* name) { return number_in(*row, name); };
    (is_evaluation ? curves.valid : curves.train)
        .push_back({.step = number("step"),
                    .tokens = number("tokens"),
                    .flops = number("flops"),
                    .seconds = number("seconds"),
                    .loss = number(is_evaluation ? "valid_loss" : "train_loss"),
                    .metric = value_of(metric, *row, "valid_").value_or(kNone),
                    .grad_norm = number("grad_norm"),
                    .lr = number("lr"),
                    .experts_busiest = number("experts_busiest"),
                    .experts_idle = number("experts_idle"),
                    .experts_dropped = number("experts_dropped"),
                    .router_entropy = number("router_entropy")});
  }
  return curves;
}

Metric metric_of_runs(const ComparisonPlan& plan, const fs::path& dir) {
  const auto& type = task_type(plan.variants.front().experiment);
  const auto usual = comparison_metric(plan.variants.front().experiment);
  if (!type.lossy_comparison) return usual;
  const auto changes_text = [&](const fs::path& run_dir) {
    return is_there(run_dir / "tokenizer.json") && !failure_of(run_dir) &&
           !read_run_vocabulary(run_dir, type).tokenizer->keeps_text();
  };
  for (const auto& variant : plan.variants) {
    const auto changed = [&](int64_t seed) { return changes_text(run_dir_of(dir, variant, seed)); };
    if (std::ranges::any_of(variant.seeds, changed)) return *type.lossy_comparison;
  }
  return usual;
}

std::optional<double> value_of(const Metric& metric, const Metrics& scores, const std::string& prefix) {
  const auto own = prefix + metric.key, other = prefix + metric.other_key;
  const double value = number_in(scores, scores.contains(own) ? own : other);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<Metrics> scores_at(int64_t length, const fs::path& run_dir, c10::Device device) {
  return kept(run_dir / fmt::format("evaluation-{}.json", length), score_key(run_dir, device), metrics_in,
              [&] {
                const auto run = Run::open(run_dir, device);
                Experiment other = run.experiment();
                other.data.sequence_length = length;
                const auto task = task_with_vocabulary(other, run.task().vocabulary());
                const auto shape = pass_shape(task->batches(Split::valid).batch(0, 0));
                if (shape.length + shape.decoder_length < length) return Json();
                return Json(task->evaluate(run.model(), Split::valid));
              });
}

void to_json(Json& json, const RunSpeed& speed) {
  Json ranges = Json::object();
  for (const auto& [key, number] : kSpeeds) {
    const auto& measured = speed.*number;
    json[key] = measured ? Json(measured->median) : Json();
    if (measured) ranges[key] = {measured->least, measured->largest};
  }
  json["ranges"] = std::move(ranges);
}

std::optional<Metrics> metrics_in(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  Metrics metrics;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number() && !value.is_null()) return std::nullopt;
    metrics[name] = value.is_null() ? kNone : value.get<double>();
  }
  return metrics;
}

std::optional<RunSpeed> speed_in(const Json& json) try {
  RunSpeed speed;
  for (const auto& [key, number] : kSpeeds) {
    if (json.at(key).is_null()) continue;
    const Json& range = json.at("ranges").at(key);
    speed.*number = Measured{.median = json.at(key), .least = range.at(0), .largest = range.at(1)};
  }
  return speed;
} catch (const Json::exception&) {
  return std::nullopt;
}

std::optional<std::vector<ScalingCurve>> scaling_in(const Json& json) try {
  constexpr auto parts = config_names(ScalingPart());
  std::vector<ScalingCurve> curves;
  for (const auto& one : json.get_ref<const Json::array_t&>()) {
    const auto exponent = [&](const std::string& key) {
      const auto value = number_at(one, key.c_str());
      return value ? std::optional(Exponent{.value = *value,
                                            .low = number_at(one, (key + "_low").c_str()),
                                            .high = number_at(one, (key + "_high").c_str())})
                   : std::nullopt;
    };
    const auto part = std::ranges::find(parts, one.at("part").get<std::string>());
    if (part == parts.end()) return std::nullopt;
    curves.push_back({.part = static_cast<ScalingPart>(part - parts.begin()),
                      .order = one.at("order"),
                      .lengths = one.at("lengths"),
                      .flops = one.at("flops"),
                      .seconds = one.at("seconds"),
                      .seconds_low = one.at("seconds_low"),
                      .seconds_high = one.at("seconds_high"),
                      .bytes = one.at("bytes"),
                      .flops_exponent = exponent("flops_exponent"),
                      .seconds_exponent = exponent("seconds_exponent"),
                      .bytes_exponent = exponent("bytes_exponent")});
  }
  return curves;
} catch (const Json::exception&) {
  return std::nullopt;
}

}  // namespace zoo
