#include "interop/foreign_choice.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "interop/foreign_problem.h"
#include "io/json_document.h"
#include "models/families/pairs/dual_encoder.h"
#include "models/families/recordings.h"
#include "models/families/vit.h"
#include "tasks/task_type.h"
#include "tokenizers/tokenizer.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

/// Whether the outputs of a trained model do not depend on a key of `model`.
bool is_for_training(std::string_view key) {
  constexpr auto keys = std::to_array<std::string_view>(
      {"model.dropout", "model.attention_dropout", "model.activation_dropout", "model.stochastic_depth",
       "model.architecture.image.dropout", "model.architecture.image.attention_dropout", "model.init",
       "model.init_std", "model.init_residual_scaling", "model.projection", "model.gate",
       "model.mlm_transform", "model.contact_regression", "model.experts.balance", "model.experts.z_loss",
       "model.experts.balance_over", "model.experts.bias_rate", "model.experts.capacity"});
  return std::ranges::find(keys, key) != keys.end();
}

/// Whether a key is only about a head that this model does not have.
bool is_for_another_head(std::string_view key, HeadKind head) {
  const bool classifies = head == HeadKind::classification;
  const bool writes = head == HeadKind::language_modeling || head == HeadKind::masked_language_modeling;
  return (key == "model.output_bias" && !writes) || (key == "model.pooler" && !classifies) ||
         (key == "model.classifier_bias" && !classifies && head != HeadKind::token_classification);
}

/// The class of the task's models in a family; empty if the family has none for it.
std::string class_for(const ForeignFamily& family, const Task& task) {
  const auto& type = task.experiment().task.type;
  // A model that writes the names of classes is one that writes texts.
  const bool writes_classes =
      type == "text_classification" && task.purpose().head == HeadKind::language_modeling;
  const auto found =
      std::ranges::find(family.classes, writes_classes ? "text_to_text" : type, &ForeignClass::task);
  return found == family.classes.end() ? std::string() : found->name;
}

/// The configuration of the directory that the model came from; an empty object if it came from none.
Json origin_of(const Task& task) {
  const auto& files = task.vocabulary().foreign_files;
  const auto found = files.find("config.json");
  return found == files.end() ? Json::object() : parse_json(found->second);
}

void write_tokens(const Task& task, Json& to) {
  if (!task.vocabulary().tokenizer) return;
  const auto& special = task.tokenizer().special();
  const auto set = [&](const char* key, int64_t id) { to[key] = id < 0 ? Json(nullptr) : Json(id); };
  set("bos_token_id", special.bos);
  set("pad_token_id", special.pad);
  set("eos_token_id", special.eos);
  if (!special.other_ends.empty()) {
    to["eos_token_id"] = Json::array({special.eos});
    for (const int64_t id : special.other_ends) to["eos_token_id"].push_back(id);
  }
}

void write_labels(const Task& task, Json& to) {
  const auto& labels = task.vocabulary().labels;
  if (labels.empty()) return;
  auto names = Json::object();
  for (size_t i = 0; i < labels.size(); ++i) names[std::to_string(i)] = labels[i];
  if (to.contains("id2label") && to["id2label"] == names) return;
  to["id2label"] = std::move(names);
  to["label2id"] = Json::object();
  for (size_t i = 0; i < labels.size(); ++i) to["label2id"][labels[i]] = i;
}

/// Why a family does not describe a model, and how far it is from it: the number of keys that differ.
struct Refusal {
  std::string reason;
  size_t distance = 0;

  /// A family that cannot say what the model is, is farther than those of which keys differ.
  static Refusal of_another_form(std::string reason) {
    return {.reason = std::move(reason), .distance = std::numeric_limits<size_t>::max() - 1};
  }
  /// A family that has no models for the task is farther than all others.
  static Refusal of_another_kind(std::string reason) {
    return {.reason = std::move(reason), .distance = std::numeric_limits<size_t>::max()};
  }
};

/// "has model.norm_placement post (here pre), model.embedding_norm true (here false) and 2 more keys".
Refusal refusal_of(const std::vector<KeyDifference>& differences) {
  constexpr size_t most = 4;
  std::vector<std::string> shown;
  for (const auto& [key, here, there] : differences) {
    if (shown.size() < most) shown.push_back(fmt::format("{} {} (here {})", key, there, here));
  }
  auto reason = fmt::format("has {}", fmt::join(shown, ", "));
  if (differences.size() > most)
    reason += fmt::format(" and {} more keys of other values", differences.size() - most);
  return {.reason = std::move(reason), .distance = differences.size()};
}

/// Models with CTC are published with the characters of a Wav2Vec2CTCTokenizer, which joins what is repeated.
void check_characters(const Tokenizer& tokenizer) {
  const auto files = tokenizer.exported_files({});
  if (files.contains("vocab.json") && !files.contains("tokenizer.json") && !files.contains("merges.txt"))
    return;
  throw CheckpointError(
      "has a Wav2Vec2CTCTokenizer: train with data.tokenizer {type: hub, path: DIRECTORY}, where DIRECTORY "
      "has its vocab.json");
}

/// How a family describes the model, or why it cannot.
std::optional<Refusal> describe_in(const ForeignFamily& family, const Task& task, const Json& origin,
                                   ChosenFamily& chosen) {
  const auto& experiment = task.experiment();
  const auto name = class_for(family, task);
  const auto head = task.purpose().head;
  if (name.empty())
    return Refusal::of_another_kind(fmt::format("has no models for {}", experiment.task.type));
  const bool is_own = origin.value("model_type", "") == family.model_type;
  auto config = is_own ? origin : Json::object();
  config["architectures"] = Json::array({name});
  config["model_type"] = family.model_type;
  config.erase("quantization_config");  // what is written is not packed
  write_labels(task, config);
  const auto expressed = [&](const Json& json) {
    ForeignConfig written("config.json", json);
    const auto generation = read_generation({}, {}, written);
    return describe_foreign(std::move(written), generation, experiment.name).experiment;
  };
  try {
    // A file that says the same already keeps its own words.
    if (!is_own || !model_differences(experiment, expressed(config), head).empty()) {
      auto wanted = experiment;
      if (task.vocabulary().tokenizer) {
        const int64_t vocab_size = experiment.model.vocab_size.value_or(task.purpose().vocab_size);
        wanted.model.vocab_size = vocab_size;
        config["vocab_size"] = vocab_size;
        config["tie_word_embeddings"] = experiment.model.tie_embeddings;
        write_tokens(task, config);
      }
      if (reads_patches(wanted.model)) set_image(wanted.model, task.purpose().image);
      if (compares_pictures(wanted.model)) set_compared_image(wanted.model, task.purpose().image);
      if (reads_spectrograms(wanted.model)) set_mels(wanted.model, n_mels_of(wanted.model, task.purpose()));
      family.write(experiment, config);
      if (config.value("is_encoder_decoder", false) && task.vocabulary().tokenizer)
        config["decoder_start_token_id"] = decoder_start(task.tokenizer().special());
      if (const auto found = model_differences(wanted, expressed(config), head); !found.empty())
        return refusal_of(found);
    }
    if (head == HeadKind::ctc && task.vocabulary().tokenizer) check_characters(task.tokenizer());
    write_problem(experiment, expressed(config), config);
  } catch (const CheckpointError& error) {
    return Refusal::of_another_form(error.what());
  } catch (const std::bad_cast&) {  // the keys of another model.architecture
    return Refusal::of_another_form(
        fmt::format("has no models of the architecture {}", experiment.model.architecture.type));
  }
  chosen = {.family = &family, .config = std::move(config)};
  return std::nullopt;
}

}  // namespace

std::vector<KeyDifference> model_differences(const Experiment& wanted, const Experiment& expressed,
                                             HeadKind head) {
  const auto values_of = [](Experiment experiment) {
    experiment.model = resolved(experiment.model);
    return flatten(std::move(experiment));
  };
  const auto there = values_of(expressed);
  std::vector<KeyDifference> differences;
  for (const auto& [key, value] : values_of(wanted)) {
    if (!key.starts_with("model.") || is_for_training(key) || is_for_another_head(key, head)) continue;
    const auto found = std::ranges::find(there, key, &ConfigValue::key);
    const auto other = found == there.end() ? std::string("nothing") : found->value;
    if (other != value) differences.push_back({.key = key, .wanted = value, .expressed = other});
  }
  return differences;
}

TextFrame frame_of_task(const Task& task) {
  const auto& type = task_type(task.experiment());
  if (!type.layout) return {};
  const auto layout = type.layout(task.experiment());
  if (layout == TextLayout::cls_tokens_sep) return encoder_frame(task.tokenizer(), "this task");
  if (layout == TextLayout::tokens) return {};
  return {.before = {}, .between = {}, .after = {task.tokenizer().special().eos}};
}

ChosenFamily choose_family(const Task& task, std::span<const ForeignFamily* const> families) {
  const auto origin = origin_of(task);
  std::vector<const ForeignFamily*> order(families.begin(), families.end());
  std::ranges::stable_partition(order, [&](const ForeignFamily* family) {
    return family->model_type == origin.value("model_type", "");
  });
  const ForeignFamily* nearest = nullptr;
  Refusal nearest_refusal;
  for (const auto* family : order) {
    ChosenFamily chosen;
    auto refusal = describe_in(*family, task, origin, chosen);
    if (!refusal) return chosen;
    if (nearest && refusal->distance >= nearest_refusal.distance) continue;
    nearest = family;
    nearest_refusal = std::move(*refusal);
  }
  throw ConfigError(fmt::format("the nearest family, {}, {}", nearest->model_type, nearest_refusal.reason));
}

}  // namespace zoo
