#include "analysis/attention_maps.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "analysis/attention_rollout.h"
#include "analysis/attention_statistics.h"
#include "analysis/image_attention.h"
#include "analysis/text_reading.h"
#include "base/error.h"
#include "io/json_document.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "tasks/evaluation.h"

namespace zoo {
namespace {

constexpr int64_t kLikeliest = 5;  // predictions of a position

void append(std::vector<AttentionLayer>& layers, AttentionKind kind, const std::vector<torch::Tensor>& maps) {
  for (size_t i = 0; i < maps.size(); ++i) {
    layers.push_back(
        {kind, static_cast<int64_t>(i), maps[i][0].to(torch::kCPU, torch::kFloat32).contiguous()});
  }
}

double rounded(double weight) { return std::round(weight * 1e6) / 1e6; }

/// Numbers of any shape as nested lists.
nlohmann::ordered_json weights_json(const torch::Tensor& weights) {
  auto list = nlohmann::ordered_json::array();
  if (weights.dim() > 1) {
    for (const auto& part : weights.unbind()) list.push_back(weights_json(part));
    return list;
  }
  const auto values = weights.to(torch::kFloat64).contiguous();
  const double* value = values.const_data_ptr<double>();
  for (int64_t s = 0; s < values.size(0); ++s) list.push_back(rounded(value[s]));
  return list;
}

nlohmann::ordered_json layers_json(const std::vector<AttentionLayer>& layers) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [kind, layer, weights] : layers)
    list.push_back({{"kind", name_of(kind)}, {"layer", layer}, {"heads", weights_json(weights)}});
  return list;
}

nlohmann::ordered_json rollout_json(const std::vector<Rollout>& rollouts) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [kind, layer, weights] : rollouts)
    list.push_back({{"kind", name_of(kind)}, {"layer", layer}, {"rows", weights_json(weights)}});
  return list;
}

/// The fields of a text's report that are not about maps.
nlohmann::ordered_json text_json(const AttentionReport& report) {
  nlohmann::ordered_json document{{"name", report.name},
                                  {"text", report.text},
                                  {"target", nullptr},
                                  {"source_tokens", report.source_tokens},
                                  {"target_tokens", report.target_tokens},
                                  {"target_next", report.target_next}};
  if (report.answers()) document["target"] = report.target;
  if (const auto& recording = report.recording) {
    document["recording"] = {{"frame_seconds", recording->frame_seconds},
                             {"spectrogram", weights_json(recording->spectrogram)}};
  }
  return document;
}

}  // namespace

const std::vector<std::string>& AttentionReport::row_tokens(AttentionKind kind) const {
  return kind == AttentionKind::encoder || target_tokens.empty() ? source_tokens : target_tokens;
}

const std::vector<std::string>& AttentionReport::column_tokens(AttentionKind kind) const {
  return kind == AttentionKind::decoder ? row_tokens(kind) : source_tokens;
}

std::vector<AttentionLayer> attention_layers(Model& model, const Batch& batch) {
  const InferenceScope scope(model);
  AttentionMaps maps;
  model.attention_maps(batch, maps);
  std::vector<AttentionLayer> layers;
  append(layers, AttentionKind::encoder, maps.encoder);
  append(layers, AttentionKind::decoder, maps.decoder);
  append(layers, AttentionKind::cross, maps.cross);
  for (const auto& layer : layers) {
    if (layer.weights.isfinite().all().item<bool>()) continue;
    throw CheckpointError(
        "the model's attention weights are not numbers: its training diverged; take an earlier checkpoint");
  }
  return layers;
}

AttentionReport attention_report(Model& model, const Tokenizer& tokenizer, const AttentionRequest& request) {
  const auto reading =
      read_text(model, tokenizer, {.layout = request.layout, .text = request.text, .target = request.target});
  AttentionReport report;
  report.text = request.text;
  report.target = reading.target;
  report.source_tokens = reading.source_tokens;
  report.target_tokens = reading.target_tokens;
  if (!reading.target_tokens.empty()) report.target_next = labels_of(tokenizer, reading.target_ids);

  const InferenceScope scope(model);
  const auto on_device = model.on_device(reading.batch);
  report.layers = attention_layers(model, on_device);
  if (predicts_tokens(request.head))
    report.predictions = token_predictions(model, tokenizer, on_device, kLikeliest);
  return report;
}

AttentionReport attention_report(const Run& run, const std::string& text,
                                 const std::optional<std::string>& target) {
  const auto& type = task_type(run.experiment());
  if (!type.layout)
    throw UsageError(fmt::format("the task {} has no texts: its attention cannot be shown", type.name));
  if (const auto problem = why_no_maps(run.experiment().model))
    throw UsageError(*problem + ": choose another run");
  auto report = attention_report(run.model(), run.tokenizer(),
                                 {.layout = type.layout(run.experiment()),
                                  .text = text,
                                  .target = target,
                                  .head = run.task().purpose().head});
  report.name = run.experiment().name;
  if (type.predicts_from == PredictionInput::text) {
    const auto use = run.task().pairs();
    const auto input = use == PairUse::always ? split_at_tabs({text}, use) : TextInputs{.texts = {text}};
    auto said = run.task().predict(run.model(), input.texts, {.seconds = input.seconds}).front().answer;
    if (const auto* const score = std::get_if<PredictedScore>(&said)) report.score = score->value;
    if (auto* const labels = std::get_if<PredictedLabels>(&said);
        labels && labels->problem != Problem::regression)
      report.labels = std::move(labels->labels);
  }
  return report;
}

nlohmann::ordered_json labels_json(const AttentionReport& report) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [label, probability] : report.labels)
    list.push_back({{"label", label}, {"probability", probability}});
  return list;
}

std::string to_json(const AttentionReport& report) {
  auto document = report.image ? image_json(report) : text_json(report);
  document["layers"] = layers_json(report.layers);
  document["heads"] = parse_ordered_json(to_json(head_statistics(report)));
  document["rollout"] = rollout_json(attention_rollout(report));
  if (!report.image) document["predictions"] = predictions_json(report.predictions);
  if (!report.labels.empty()) document["labels"] = labels_json(report);
  if (report.score) document["score"] = *report.score;
  // A byte model may read bytes that are not UTF-8: they become U+FFFD.
  return shown_json(document);
}

}  // namespace zoo
