#include "checkpoints/initial_weights.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/finite.h"
#include "checkpoints/stored_model.h"
#include "io/safetensors.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/lora.h"
#include "tokenizers/tokenizer.h"

namespace zoo {
namespace {

const Experiment& experiment_of(const InitialModel& source) { return source.model.task->experiment(); }
const Vocabulary& vocabulary_of(const InitialModel& source) { return source.model.task->vocabulary(); }

[[noreturn]] void fail(const std::string& problem) {
  throw ConfigError(fmt::format("init_from: {}", problem));
}

/// Whether trained weights keep their meaning if this key changes. Changed shapes are found later, tensor by
/// tensor.
bool may_change(std::string_view key) {
  constexpr auto free = std::to_array<std::string_view>(
      {"model.vocab_size", "model.n_layers", "model.n_decoder_layers", "model.max_positions", "model.dropout",
       "model.attention_dropout", "model.activation_dropout", "model.output_bias", "model.mlm_transform",
       "model.pooler", "model.pooler_activation", "model.init", "model.init_std",
       "model.init_residual_scaling"});
  if (key.starts_with("data.tokenizer.")) return false;
  if (!key.starts_with("model.") || std::ranges::find(free, key) != free.end()) return true;
  // These keys make a context longer after training (Chen et al. 2023; Peng et al. 2023).
  return key.starts_with("model.rotary.") && key != "model.rotary.layout" && key != "model.rotary.fraction" &&
         key != "model.rotary.turns";
}

/// Gives keys without a value the value that follows from other keys.
Experiment resolved(Experiment experiment) {
  experiment.model = resolved(experiment.model);
  return experiment;
}

/// The model within the models of a run, if `init_from` names a run of such a model alone.
std::optional<InnerModel> inner_of(const Experiment& experiment, const InitialModel& source) {
  const auto& here = experiment.model.architecture;
  const auto& family = model_families().at(here);
  if (!family.inner || here.type == experiment_of(source).model.architecture.type) return std::nullopt;
  return family.inner(experiment.model);
}

/// Whether a key of a model changes what comes out of its layers.
bool concerns_layers(std::string_view key) {
  constexpr auto others = std::to_array<std::string_view>(
      {"model.tie_embeddings", "model.output_scale", "model.logits_softcap", "model.contact_regression"});
  return key.starts_with("model.") && std::ranges::find(others, key) == others.end();
}

void check_agreement(const Experiment& experiment, const InitialModel& source) {
  const auto inner = inner_of(experiment, source);
  auto taking = experiment;
  if (inner) taking.model = inner->config;
  const auto here = flatten(resolved(taking)), there = flatten(resolved(experiment_of(source)));
  for (const auto& [key, value] : here) {
    if (may_change(key) || (inner && !concerns_layers(key))) continue;
    const auto other = std::ranges::find(there, key, &ConfigValue::key);
    if (other == there.end() || other->value == value) continue;
    if (inner) {
      fail(
          fmt::format("model.{}.{} is {}, but model.{} is {} in {}, whose weights this run takes: copy the "
                      "keys of model: from that run's config.yaml",
                      inner->key, key.substr(6), value, key.substr(6), other->value, source.dir.string()));
    }
    fail(fmt::format("{} is {}, but {} in {}, whose weights and vocabulary this run takes: leave the key out",
                     key, value, other->value, source.dir.string()));
  }
}

void check_special_tokens(const Experiment& experiment, const InitialModel& source) {
  const auto& type = task_type(experiment);
  if (!type.needs_tokenizer()) return;
  if (!vocabulary_of(source).tokenizer) fail(fmt::format("{} has no tokenizer", source.dir.string()));
  if (!type.requires_special_tokens(experiment)) return;
  // A foreign encoder has a vocabulary without eos. A foreign decoder has one without cls.
  const auto& special = vocabulary_of(source).tokenizer->special();
  const bool frames = type.layout && type.layout(experiment) == TextLayout::cls_tokens_sep;
  if (frames ? special.cls >= 0 && special.sep >= 0 : special.eos >= 0) return;
  fail(
      fmt::format("the vocabulary of {} is for one stream of text and lacks the special tokens that {} "
                  "needs: train it with data.documents, or with a tokenizer of type sentencepiece",
                  source.dir.string(), type.name));
}

/// The run whose weights a model takes must have them in one file.
void require_merged(const InitialModel& source) {
  if (!experiment_of(source).training.lora) return;
  fail(fmt::format("{} has adapters (training.lora): merge them into its weights first, with merge_run()",
                   source.dir.string()));
}

/// The run that init_from names, if it is there.
std::optional<std::filesystem::path> source_dir(const Experiment& experiment) {
  return find_path(*experiment.init_from, [](const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  });
}

/// Why the last layer of a classifier is new: "4 classes there, 2 here". Empty if that run has no classes.
std::string difference_of(const std::vector<std::string>& there, const std::vector<std::string>& here) {
  if (there.empty()) return "";
  if (there.size() != here.size()) return fmt::format("{} classes there, {} here", there.size(), here.size());
  for (size_t i = 0; i < here.size(); ++i) {
    if (there[i] != here[i])
      return fmt::format("class {} is '{}' there, '{}' here", i + 1, excerpt(there[i]), excerpt(here[i]));
  }
  return "";
}

/// "encoder.layers.0.norm1, head.pooler and 3 more": the modules of some parameters.
std::string modules_of(const std::vector<std::string>& parameters) {
  constexpr size_t most = 6;
  std::vector<std::string> modules;
  for (const auto& name : parameters) {
    const auto module = name.substr(0, name.rfind('.'));
    if (std::ranges::find(modules, module) == modules.end()) modules.push_back(module);
  }
  const size_t shown = std::min(most, modules.size());
  const auto text = fmt::format("{}", fmt::join(std::span(modules).first(shown), ", "));
  return shown == modules.size() ? text : fmt::format("{} and {} more", text, modules.size() - shown);
}

/// The rows of that run's table for those of the inner model's.
torch::Tensor rows_of(const InnerModel& inner, const InitialModel& source) {
  const auto& tokenizer = vocabulary_of(source).tokenizer;
  if (!tokenizer) fail(fmt::format("{} has no tokenizer", source.dir.string()));
  std::vector<int64_t> rows;
  for (const char letter : inner.rows) {
    const auto ids = tokenizer->encode(std::string(1, letter));
    const bool is_unknown = ids.size() == 1 && ids.front() == tokenizer->special().unk;
    if (ids.size() != 1 || (is_unknown && letter != inner.unknown))
      fail(fmt::format("the vocabulary of {} has no token for {}", source.dir.string(), letter));
    rows.push_back(ids.front());
  }
  const auto frame = encoder_frame(*tokenizer, "init_from");
  if (frame.before.size() != 1 || frame.after.size() != 1)
    fail(fmt::format("{} reads other tokens around a text than one at each end", source.dir.string()));
  rows.push_back(frame.before.front());
  rows.push_back(frame.after.front());
  return torch::tensor(rows);
}

/// Where a parameter begins: its name in that run, and the rows that are taken; undefined: all.
struct Origin {
  std::string name;
  torch::Tensor rows = {};
};

/// Nothing for a parameter that is new. Throws ConfigError if an inner model lacks one.
std::optional<Origin> origin_of(const std::string& name, const std::optional<InnerModel>& inner,
                                const InitialModel& source) {
  const TensorSource& file = *source.model.tensors;
  if (!inner) return file.contains(name) ? std::optional<Origin>({.name = name}) : std::nullopt;
  const auto prefix = inner->module + ".";
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto own = name.substr(prefix.size());
  if (std::ranges::none_of(inner->parts, [&](const auto& part) { return own.starts_with(part); }))
    return std::nullopt;
  if (!file.contains(own)) {
    fail(
        fmt::format("{} has no '{}', which model.{} needs: copy the keys of model: from that run's "
                    "config.yaml",
                    file.place(), own, inner->key));
  }
  if (own == inner->table) return Origin{.name = own, .rows = rows_of(*inner, source)};
  return Origin{.name = own};
}

/// Throws ConfigError if a new parameter is not trained.
void check_adapted(const torch::nn::Module& model, const std::vector<std::string>& fresh) {
  const auto trained = stored_tensors(model);
  for (const auto& name : fresh) {
    if (trained.contains(name)) continue;
    throw ConfigError(
        fmt::format("training.lora.trained: {} is not in the run that init_from names, and would stay "
                    "random: add a pattern "
                    "for it",
                    name));
  }
}

}  // namespace

std::optional<InitialModel> open_initial_model(const Experiment& experiment) {
  if (!experiment.init_from) return std::nullopt;
  const auto dir = source_dir(experiment);
  if (!dir)
    fail(fmt::format("{}: no such run{}", experiment.init_from->text, places_of(*experiment.init_from)));
  try {
    InitialModel source{.dir = *dir, .model = open_stored_model(*dir)};
    require_merged(source);
    check_agreement(experiment, source);
    check_special_tokens(experiment, source);
    return source;
  } catch (const CheckpointError& error) {
    fail(error.what());
  }
}

Vocabulary initial_vocabulary(const Experiment& experiment, const std::optional<InitialModel>& source) {
  if (!source || (inner_of(experiment, *source) && !task_type(experiment).needs_tokenizer())) return {};
  auto vocabulary = vocabulary_of(*source);
  vocabulary.labels.clear();  // the classes are those of the new data
  return vocabulary;
}

std::unique_ptr<Task> task_of_new_run(const Experiment& experiment) {
  return task_with_vocabulary(experiment, initial_vocabulary(experiment, open_initial_model(experiment)));
}

std::optional<std::string> initial_weights_note(const Experiment& experiment) {
  const auto dir = experiment.init_from ? source_dir(experiment) : std::nullopt;
  return dir ? weights_note(*dir) : std::nullopt;
}

std::string load_initial_weights(const InitialModel& source, const Task& task, Model& model) {
  // If this run was killed before its first checkpoint, it already has a vocabulary.
  const auto inner = inner_of(task.experiment(), source);
  if (vocabulary_of(source).tokenizer && !inner &&
      vocabulary_of(source).tokenizer->fingerprint() != task.tokenizer().fingerprint()) {
    fail(
        fmt::format("{} has another vocabulary than when this run was started: train anew with "
                    "ExistingRun::replace",
                    source.dir.string()));
  }
  const bool same_classes = vocabulary_of(source).labels == task.vocabulary().labels;
  const TensorSource& file = *source.model.tensors;
  const auto path = file.place();

  std::vector<std::pair<torch::Tensor, Origin>> found;
  std::vector<std::string> fresh;
  std::set<std::string> used;
  auto tensors = model.named_parameters();
  tensors.update(model.named_buffers());  // such as Performer's random features
  for (const auto& item : tensors) {
    const auto& name = item.key();
    if (is_adapter_parameter(name)) continue;  // its first value changes nothing
    const auto origin = origin_of(name, inner, source);
    if (!origin || (is_of_classifier(name) && !same_classes)) {
      fresh.push_back(name);
      continue;
    }
    const auto& wanted = item.value();
    auto shape = file.shape(origin->name);
    if (origin->rows.defined() && !shape.empty()) shape.front() = wanted.size(0);
    if (wanted.sizes() != shape) {
      fail(fmt::format(
          "{} has '{}' as ({}), this model as ({}): copy the keys of model: that set this shape "
          "from that run's config.yaml",
          path, origin->name, fmt::join(file.shape(origin->name), ", "), fmt::join(wanted.sizes(), ", ")));
    }
    found.emplace_back(wanted, *origin);
    used.insert(origin->name);
  }
  if (has_adapters(model)) check_adapted(model, fresh);
  if (found.empty()) {
    fail(fmt::format("{} has no weights of this model: name a run of the same architecture", path));
  }

  const torch::NoGradGuard no_grad;
  TensorMap copied;
  for (auto& [parameter, origin] : found) {
    if (origin.rows.defined()) {
      auto table = torch::empty(file.shape(origin.name));
      file.read_into(table, origin.name);
      parameter.copy_(table.index_select(0, origin.rows));
    } else {
      file.read_into(parameter, origin.name);
    }
    copied.emplace(origin.name, parameter.detach());
  }
  check_finite(path, copied);

  auto text =
      fmt::format("starts from {}: {} of {} tensors", path, found.size(), found.size() + fresh.size());
  if (!fresh.empty()) text += fmt::format("; new: {}", modules_of(fresh));
  const bool new_classes = std::ranges::any_of(fresh, is_of_classifier);
  if (const auto why = difference_of(vocabulary_of(source).labels, task.vocabulary().labels);
      new_classes && !why.empty())
    text += fmt::format(" ({})", why);
  std::vector<std::string> left;
  for (const auto& name : file.names()) {
    if (!used.contains(name)) left.push_back(name);
  }
  if (!left.empty()) text += fmt::format("; left behind: {}", modules_of(left));
  return text;
}

}  // namespace zoo
