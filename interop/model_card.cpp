#include "interop/model_card.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/config/yaml_text.h"
#include "io/json_document.h"

namespace zoo {
namespace {

/// What the Hub and transformers call the models of a task.
struct NamedPipeline {
  std::string_view task, pipeline, auto_class;
  std::string_view inputs;  // the class that makes the inputs
};
constexpr std::string_view kTokenizer = "AutoTokenizer", kPictures = "AutoImageProcessor";
constexpr auto kPipelines = std::to_array<NamedPipeline>({
    {"language_modeling", "text-generation", "AutoModelForCausalLM", kTokenizer},
    {"text_to_text", "text2text-generation", "AutoModelForSeq2SeqLM", kTokenizer},
    {"masked_language_modeling", "fill-mask", "AutoModelForMaskedLM", kTokenizer},
    {"text_classification", "text-classification", "AutoModelForSequenceClassification", kTokenizer},
    {"token_classification", "token-classification", "AutoModelForTokenClassification", kTokenizer},
    {"text_features", "feature-extraction", "AutoModel", kTokenizer},
    {"image_classification", "image-classification", "AutoModelForImageClassification", kPictures},
    {"image_features", "image-feature-extraction", "AutoModel", kPictures},
    {"image_text_similarity", "zero-shot-image-classification", "AutoModel", "AutoProcessor"},
    {"object_detection", "object-detection", "AutoModelForObjectDetection", kPictures},
    {"speech_recognition", "automatic-speech-recognition", "AutoModelForSpeechSeq2Seq", "AutoProcessor"},
});

/// nullptr: the Hub has no name for it.
const NamedPipeline* pipeline_of(const Task& task) {
  const auto& type = task.experiment().task.type;
  const bool writes_classes =
      type == "text_classification" && task.purpose().head == HeadKind::language_modeling;
  const auto* const found =
      std::ranges::find(kPipelines, writes_classes ? "text_to_text" : type, &NamedPipeline::task);
  return found == kPipelines.end() ? nullptr : &*found;
}

/// The last parts of the paths, each once.
std::vector<std::string> names_of(const std::vector<ConfigPath>& files) {
  std::vector<std::string> names;
  for (const auto& file : files) {
    const std::filesystem::path path(file.text);
    auto name = excerpt((path.has_filename() ? path : path.parent_path()).filename().string());
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

/// What was measured, without what was only counted.
std::vector<std::pair<std::string, double>> measured(const Metrics& metrics) {
  std::vector<std::pair<std::string, double>> result;
  for (const auto& [name, value] : metrics) {
    if (!is_count(name)) result.emplace_back(name, value);
  }
  return result;
}

std::string index_of(const HubCard& card, const NamedPipeline& pipeline, const std::string& data) {
  std::string metrics;
  for (const auto& [name, value] : measured(card.figures->validation))
    metrics += fmt::format("    - type: {}\n      value: {}\n", yaml_text(name), value);
  return fmt::format(
      "model-index:\n- name: {}\n  results:\n  - task:\n      type: {}\n    dataset:\n      name: {}\n"
      "      type: {}\n      split: validation\n    metrics:\n{}",
      yaml_text(card.name), pipeline.pipeline, yaml_text(data), yaml_text(data), metrics);
}

std::string head_of(const HubCard& card, const NamedPipeline* pipeline, const std::string& data) {
  std::string head = "---\nlibrary_name: transformers\n";
  if (pipeline) head += fmt::format("pipeline_tag: {}\n", pipeline->pipeline);
  head += fmt::format("tags:\n- {}\n- transformer-zoo\n", card.model_type);
  const bool has_index = pipeline && card.figures && !measured(card.figures->validation).empty();
  if (has_index) head += index_of(card, *pipeline, data);
  return head + "---\n";
}

std::string training_of(const TrainingFigures& figures, std::string_view data) {
  auto text = fmt::format("\n## Training\n\nThis model was trained on {} for {} steps", data, figures.step);
  if (figures.tokens > 0) text += fmt::format(", in which it read {} tokens", figures.tokens);
  text += ".\n";
  const auto metrics = measured(figures.validation);
  if (metrics.empty()) return text;
  text += "\n| on the validation data | |\n|---|---|\n";
  for (const auto& [name, value] : metrics) text += fmt::format("| {} | {} |\n", name, metric_text(value));
  return text;
}

std::string labels_of(const std::vector<std::string>& labels) {
  constexpr size_t most = 50, most_letters = 60;
  if (labels.empty()) return {};
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(most, labels.size()); ++i)
    shown.push_back(fmt::format("`{}`", excerpt(labels[i], most_letters)));
  return fmt::format("\nLabels: {}{}.\n", fmt::join(shown, ", "),
                     labels.size() > most ? fmt::format(" and {} more", labels.size() - most) : "");
}

std::string use_of(const HubCard& card, const NamedPipeline& pipeline) {
  const auto quoted = json_text(nlohmann::json(card.name));
  return fmt::format(
      "\n## Use\n\n```python\nfrom transformers import {model}, {inputs}\n\n"
      "model = {model}.from_pretrained({path})\ninputs = {inputs}.from_pretrained({path})\n```\n",
      fmt::arg("model", pipeline.auto_class), fmt::arg("inputs", pipeline.inputs), fmt::arg("path", quoted));
}

}  // namespace

std::string model_card(const HubCard& card, const Task& task) {
  const auto* const pipeline = pipeline_of(task);
  const auto names = names_of(task.experiment().data.train);
  const auto data =
      names.empty() ? std::string("data that are not named") : fmt::format("{}", fmt::join(names, ", "));
  auto page = head_of(card, pipeline, data);
  page +=
      fmt::format("\n# {}\n\nA `{}` with {} parameters.\n", card.name, card.class_name, card.n_parameters);
  page += labels_of(task.vocabulary().labels);
  if (card.figures) page += training_of(*card.figures, data);
  if (pipeline) page += use_of(card, *pipeline);
  return page;
}

}  // namespace zoo
