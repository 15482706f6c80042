#include "interop/foreign_model.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "interop/families/common.h"
#include "interop/foreign_files.h"
#include "interop/foreign_preprocessor.h"
#include "interop/foreign_problem.h"
#include "interop/foreign_sentences.h"
#include "interop/foreign_source.h"
#include "interop/foreign_tokens.h"
#include "io/config/config_file.h"
#include "io/json_document.h"
#include "layers/weights/construction.h"
#include "models/families/families.h"
#include "tasks/task.h"
#include "tokenizers/hub_tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using SmallFiles = std::map<std::string, std::string>;

ForeignConfig parsed_config(const ForeignSource& source) {
  const auto found = source.files.find("config.json");
  if (found == source.files.end()) throw CheckpointError(fmt::format("{}: missing", source.config_place));
  auto json = parse_foreign_json(source.config_place, found->second);
  read_cross_encoder(source.dir, source.files, json);
  return {source.config_place, std::move(json)};
}

const ForeignFamily& family_of(ForeignConfig& config) {
  const auto type = config.text("model_type");
  if (const auto* family = find_foreign_family(type)) return *family;
  std::vector<std::string> known;
  for (const auto& family : foreign_families()) known.push_back(family.model_type);
  config.fail("model_type", fmt::format("this family is not known; known are {}", fmt::join(known, ", ")));
}

/// The task of the class that config.json names, or of the family's first class.
std::string task_of(ForeignConfig& config, const ForeignFamily& family) {
  const auto names = config.texts("architectures");
  if (names.empty()) return family.classes.front().task;
  const auto found = std::ranges::find(family.classes, names.front(), &ForeignClass::name);
  if (found != family.classes.end()) return found->task;
  std::vector<std::string> known;
  for (const auto& known_class : family.classes) known.push_back(known_class.name);
  config.fail("architectures", fmt::format("of {} are known {}", family.model_type, fmt::join(known, ", ")));
}

/// The names that transformers gives classes without names: two, unless num_labels says how many there are.
std::vector<std::string> numbered_labels(const ForeignConfig& config) {
  constexpr int64_t most = 100'000;
  const auto given = config.json().value("num_labels", nlohmann::json());
  const int64_t n = given.is_number_integer() ? given.get<int64_t>() : 2;
  if (n < 1 || n > most) config.fail("num_labels", fmt::format("expected a number from 1 to {}", most));
  std::vector<std::string> labels;
  for (int64_t i = 0; i < n; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

/// The names of the classes in the order of their numbers.
std::vector<std::string> labels_of(const ForeignConfig& config) {
  const auto found = config.json().find("id2label");
  if (found == config.json().end() || !found->is_object()) return {};
  std::vector<std::string> labels(found->size());
  for (const auto& [number, name] : found->items()) {
    size_t index = labels.size();
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    const bool is_good = error == std::errc() && end == number.data() + number.size() &&
                         index < labels.size() && (name.is_string() || name.is_number_integer()) &&
                         labels[index].empty();
    if (!is_good) config.fail("id2label", "not the names of classes 0, 1, …");
    labels[index] = name.is_string() ? name.get<std::string>() : json_text(name);
  }
  return labels;
}

/// The name of the directory as the name of a run.
std::string name_of_run(const fs::path& dir) {
  std::error_code error;
  const auto full = fs::weakly_canonical(dir, error);
  auto name = (full.has_filename() ? full : full.parent_path()).filename().string();
  std::ranges::replace_if(name, [](unsigned char byte) { return byte < 0x20; }, '-');
  while (name.starts_with('.')) name.erase(0, 1);
  return name.empty() ? "imported" : name;
}

/// The shapes of all tensors of a model, which is not made.
TensorShapes shapes_of(const ModelConfig& config, const ModelPurpose& purpose) {
  check_model(config, purpose);
  const ConstructionScope shapes_only(Construction::shapes_only);
  const auto model = model_families().at(config.architecture).make(config, purpose);
  TensorShapes shapes;
  for (const auto& item : model->named_parameters()) shapes.emplace(item.key(), item.value().sizes().vec());
  for (const auto& item : model->named_buffers()) shapes.emplace(item.key(), item.value().sizes().vec());
  return shapes;
}

/// transformers' decoders tell the class of a text from its last token that is not config.json's padding,
/// also where their tokenizer has another padding. Empty: the tokenizer's counts, too.
std::optional<int64_t> padding_of_classifier(const ForeignDescription& described) {
  const auto& experiment = described.experiment;
  if (experiment.task.type != "text_classification" || shape_of(experiment.model) != FamilyShape::decoder)
    return std::nullopt;
  const auto pad = described.config.value("pad_token_id", nlohmann::json());
  return pad.is_number_integer() ? std::max<int64_t>(pad.get<int64_t>(), -1) : -1;
}

/// For models of texts.
void read_vectors(const fs::path& dir, const SmallFiles& files, Experiment& to) {
  read_tokenizer_length(dir, to);
  if (!task_type(to).layout || !files.contains("modules.json")) return;
  read_sentence_vectors(dir, files, to);
  to = checked_experiment(to, (dir / "modules.json").string());
}

}  // namespace

ForeignDescription describe_foreign(ForeignConfig config, const ForeignGeneration& generation,
                                    const fs::path& dir) {
  ForeignDescription result;
  result.family = &family_of(config);
  auto& experiment = result.experiment;
  experiment.name = name_of_run(dir);
  experiment.task = task_types().select(task_of(config, *result.family));
  experiment.generation = generation.options;
  experiment.data.tokenizer.type = TokenizerKind::hub;
  experiment.data.tokenizer.path = ConfigPath(dir.string());
  ignore_common_keys(config);
  result.packed = read_packed_weights(config);
  result.family->read(config, experiment);
  result.labels = labels_of(config);
  if (result.labels.empty() && task_type(experiment).needs_labels()) result.labels = numbered_labels(config);
  read_problem(config, std::ssize(result.labels), experiment);
  config.finish();
  result.config = config.json();
  constexpr int64_t usual_window = 1024;
  experiment.data.sequence_length = std::min(usual_window, experiment.model.max_positions);
  // Each mistake with the file that has it.
  auto model_alone = experiment;
  model_alone.generation = {};
  checked_experiment(model_alone, config.place());
  experiment = checked_experiment(experiment, generation.place.empty() ? config.place() : generation.place);
  return result;
}

TensorMapping tensor_mapping(const ForeignFamily& family, const Experiment& experiment,
                             const ModelPurpose& purpose, const nlohmann::json& config) {
  auto whole = experiment;  // a model that was trained here has the size of its vocabulary from its tokenizer
  if (purpose.vocab_size > 0) whole.model.vocab_size = whole.model.vocab_size.value_or(purpose.vocab_size);
  return {family.rules_of_file ? family.rules_of_file(whole, config) : family.rules(whole),
          shapes_of(experiment.model, purpose)};
}

Experiment read_foreign_experiment(const fs::path& path) {
  const auto source = open_foreign_source(path, ForeignParts::config);
  auto config = parsed_config(source);
  const auto generation = read_generation(source.dir, source.files, config);
  auto experiment = describe_foreign(std::move(config), generation, source.dir).experiment;
  read_preprocessor(source.dir, source.files, experiment);
  read_vectors(source.dir, source.files, experiment);
  return experiment;
}

bool follow_tensors(const TensorMapping& mapping, const std::shared_ptr<const TensorSource>& tensors,
                    const ModelPurpose& purpose, ModelConfig& model, Compared compared) {
  const bool is_tied = model.tie_embeddings && !mapping.has_own_output(tensors, compared);
  const bool has_pooler =
      model.pooler && (purpose.head != HeadKind::none || mapping.has_module(tensors, "head.pooler"));
  const auto has_regression = [&](const std::string& within) {
    return mapping.has_module(tensors, within + "contact_regression");
  };
  // has_module() is true of modules that no rule names.
  const bool tells_contacts = model.contact_regression && has_regression("") && has_regression("language.");
  const bool is_changed = is_tied != model.tie_embeddings || has_pooler != model.pooler ||
                          tells_contacts != model.contact_regression;
  model.tie_embeddings = is_tied;
  model.pooler = has_pooler;
  model.contact_regression = tells_contacts;
  return is_changed;
}

namespace {

/// The family's body, which AutoModel opens, where it may be what the file has: config.json names no class,
/// or modules.json says that sentence-transformers opens it. Empty: neither, or the family has none for
/// texts.
std::string possible_body(const ForeignSource& source) {
  auto config = parsed_config(source);
  if (!config.texts("architectures").empty() && !source.files.contains("modules.json")) return {};
  const auto& classes = family_of(config).classes;
  const auto found = std::ranges::find(classes, "text_features", &ForeignClass::task);
  return found == classes.end() ? std::string() : found->name;
}

ForeignModel open_source(ForeignSource source) {
  const auto& dir = source.dir;
  auto& files = source.files;
  auto config = parsed_config(source);
  const auto generation = read_generation(dir, files, config);
  auto described = describe_foreign(std::move(config), generation, dir);
  auto pixels = read_preprocessor(dir, files, described.experiment);
  read_vectors(dir, files, described.experiment);
  const auto& type = task_type(described.experiment);
  Vocabulary vocabulary;
  vocabulary.dense = read_dense_maps(dir, files, described.experiment.embedding);
  if (type.needs_tokenizer()) {
    vocabulary.tokenizer =
        read_tokenizer(dir, files, generation, described.experiment.model.vocab_size.value_or(0),
                       padding_of_classifier(described));
  }
  if (type.needs_labels()) vocabulary.labels = std::move(described.labels);
  if (type.needs_pixels()) vocabulary.pixels = std::move(pixels);
  // Without a tokenizer here, its files stay for those who open the directory in Python.
  if (type.needs_tokenizer()) std::erase_if(files, [](const auto& file) { return is_hub_file(file.first); });
  vocabulary.foreign_files = std::move(files);
  auto task = task_with_vocabulary(described.experiment, vocabulary);
  const auto mapping = [&] {
    return tensor_mapping(*described.family, described.experiment, task->purpose(), described.config);
  };
  const auto base = unpacked(source.tensors, described.packed);
  const auto stored = source.adapter ? adapted_tensors(mapping(), base, *source.adapter) : base;
  if (follow_tensors(mapping(), stored, task->purpose(), described.experiment.model))
    task = task_with_vocabulary(described.experiment, std::move(vocabulary));
  auto imported = mapping().imported(stored);
  return {.family = described.family,
          .task = std::move(task),
          .tensors = std::move(imported),
          .n_adapters = source.adapter ? n_adapters_of(*source.adapter) : 0};
}

}  // namespace

ForeignModel open_foreign(const fs::path& path, const fs::path& base) {
  const auto source = open_foreign_source(path, ForeignParts::all, base);
  const auto body = possible_body(source);
  try {
    return open_source(source);
  } catch (const CheckpointError&) {
    if (body.empty()) throw;
    auto as_body = source;
    auto config = parsed_config(source).json();
    config["architectures"] = {body};
    as_body.files["config.json"] = json_text(config, 2) + "\n";
    try {
      return open_source(std::move(as_body));
    } catch (const CheckpointError&) {
      // The first error is about what the file is more likely to be.
    }
    throw;
  }
}

}  // namespace zoo
