#include "interop/peft/adapter_task.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "interop/peft/adapter_names.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

struct PeftTask {
  std::string_view peft, ours;
};

/// The first task of ours is the usual one.
constexpr auto kTasks = std::to_array<PeftTask>({{"CAUSAL_LM", "language_modeling"},
                                                 {"SEQ_CLS", "text_classification"},
                                                 {"TOKEN_CLS", "token_classification"},
                                                 {"FEATURE_EXTRACTION", "text_features"},
                                                 {"SEQ_2_SEQ_LM", "text_to_text"},
                                                 {"SEQ_2_SEQ_LM", "speech_recognition"}});

/// The last matrices of classifiers.
constexpr auto kClassifiers =
    std::to_array<std::string_view>({"score.weight", "classifier.weight", "classifier.out_proj.weight",
                                     "classification_head.out_proj.weight"});

[[noreturn]] void fail(const std::string& place, std::string_view problem) {
  throw CheckpointError(fmt::format("{}: {}", place, problem));
}

/// The class that config.json names first; empty if it names none.
std::string class_of(const Json& config) {
  const auto found = config.find("architectures");
  const bool names_one =
      found != config.end() && found->is_array() && !found->empty() && found->front().is_string();
  return names_one ? found->front().get<std::string>() : std::string();
}

const ForeignClass* find_class(const ForeignFamily& family, std::string_view name) {
  const auto found = std::ranges::find(family.classes, name, &ForeignClass::name);
  return found == family.classes.end() ? nullptr : &*found;
}

/// The class of the family that an adapter was made for; `own`: of its base, or null.
const ForeignClass& class_for(const AdapterConfig& adapter, const std::string& place,
                              const ForeignFamily& family, const ForeignClass* own) {
  if (adapter.task_type.empty()) {
    if (adapter.base_class.empty()) return own ? *own : family.classes.front();
    if (const auto* const found = find_class(family, adapter.base_class)) return *found;
    std::vector<std::string> known;
    for (const auto& known_class : family.classes) known.push_back(known_class.name);
    fail(place, fmt::format("auto_mapping: base_model_class is {}: of {} are known {}",
                            excerpt(adapter.base_class), family.model_type, fmt::join(known, ", ")));
  }
  const ForeignClass* first = nullptr;
  for (const auto& [peft, ours] : kTasks) {
    if (peft != adapter.task_type) continue;
    if (own && own->task == ours) return *own;
    const auto found = std::ranges::find(family.classes, ours, &ForeignClass::task);
    if (!first && found != family.classes.end()) first = &*found;
  }
  if (first) return *first;
  fail(place, fmt::format("task_type is {}: {} has no such models here", excerpt(adapter.task_type),
                          family.model_type));
}

/// The number of classes of the classifier that an adapter brings.
std::optional<int64_t> n_classes_of(const TensorSource& adapter) {
  for (const auto& name : adapter.names()) {
    if (!name.starts_with(kAdapterPrefix)) continue;
    const auto own = name_in_base(name);
    const bool is_classifier = std::ranges::any_of(kClassifiers, [&](std::string_view ending) {
      return own == ending || own.ends_with("." + std::string(ending));
    });
    const auto shape = adapter.shape(name);
    if (is_classifier && shape.size() == 2) return shape[0];
  }
  return std::nullopt;
}

}  // namespace

std::string_view peft_task_of(std::string_view task) {
  const auto* const found = std::ranges::find(kTasks, task, &PeftTask::ours);
  // PeftModelForSeq2SeqLM passes tokens to its model, and Whisper reads sounds.
  return found == kTasks.end() || task == "speech_recognition" ? "" : found->peft;
}

void follow_adapter(const Adapter& adapter, const std::string& place, const ForeignFamily& family,
                    Json& config) {
  const auto own = class_of(config);
  const auto* const own_class = own.empty() ? &family.classes.front() : find_class(family, own);
  const auto& wanted = class_for(adapter.config, place, family, own_class);
  const bool is_other = !own_class || own_class->task != wanted.task;
  if (is_other || adapter.config.base_class == wanted.name) config["architectures"] = {wanted.name};
  if (!wanted.task.ends_with("classification")) return;
  const auto n_classes = n_classes_of(*adapter.tensors);
  if (!n_classes && is_other) {
    fail(place, fmt::format("it is for {}, but neither it nor its base has a classifier: it lacks "
                            "modules_to_save",
                            wanted.name));
  }
  const auto labels = config.find("id2label");
  const bool has_labels = labels != config.end() && labels->is_object();
  const int64_t n_labels = has_labels ? static_cast<int64_t>(labels->size()) : 2;
  if (!n_classes || (n_labels == *n_classes && (has_labels || !config.contains("num_labels")))) return;
  config.erase("id2label");
  config.erase("label2id");
  config["num_labels"] = *n_classes;
}

}  // namespace zoo
