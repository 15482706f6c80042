#include "interop/foreign_sentences.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "interop/families/foreign_config.h"
#include "interop/foreign_files.h"
#include "io/files.h"
#include "io/safetensors.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using SmallFiles = std::map<std::string, std::string>;
using Json = nlohmann::json;

constexpr const char* kModules = "modules.json";
constexpr const char* kVersions = "config_sentence_transformers.json";
/// Older versions named the settings after the family.
constexpr std::array kSettings = {"sentence_bert_config.json", "sentence_roberta_config.json",
                                  "sentence_distilbert_config.json", "sentence_xlm-roberta_config.json"};

/// The file as a configuration; nothing if it is not there.
std::optional<ForeignConfig> read_config(const fs::path& dir, const SmallFiles& files,
                                         const std::string& name) {
  const auto found = files.find(name);
  if (found == files.end()) return std::nullopt;
  const auto path = (dir / name).string();
  return ForeignConfig(path, parse_foreign_json(path, found->second));
}

struct SentenceModule {
  std::string type;  // Pooling
  std::string folder;
};

/// The modules in their order.
std::vector<SentenceModule> modules_of(const fs::path& dir, const SmallFiles& files) {
  const auto path = (dir / kModules).string();
  const auto list = parse_foreign_json(path, files.at(kModules));
  if (!list.is_array()) throw CheckpointError(fmt::format("{}: not a list of modules", path));
  std::vector<SentenceModule> modules;
  for (const auto& entry : list) {
    ForeignConfig part(fmt::format("{}: module {}", path, modules.size() + 1), entry);
    const auto type = part.text("type");
    if (!type.starts_with("sentence_transformers."))
      part.fail("type", "it needs a program of the author's, which is not run");
    modules.push_back({.type = type.substr(type.rfind('.') + 1), .folder = part.text("path")});
    if (part.has("kwargs") && !part.json()["kwargs"].empty())
      part.fail("kwargs", "arguments of calls are not supported");
    part.ignore({"idx", "name", "kwargs"});
    part.finish();
  }
  return modules;
}

std::vector<EmbeddingPooling> read_poolings(ForeignConfig& from) {
  using enum EmbeddingPooling;
  struct Mode {
    std::string_view name, older;
    EmbeddingPooling pooling;
  };
  // The order in which several are put one after the other.
  constexpr auto modes =
      std::to_array<Mode>({{"cls", "pooling_mode_cls_token", cls},
                           {"max", "pooling_mode_max_tokens", max},
                           {"mean", "pooling_mode_mean_tokens", mean},
                           {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", mean_sqrt_len},
                           {"weightedmean", "pooling_mode_weightedmean_tokens", weighted_mean},
                           {"lasttoken", "pooling_mode_lasttoken", last}});
  std::vector<EmbeddingPooling> older;
  for (const auto& mode : modes) {
    if (from.flag(mode.older, false)) older.push_back(mode.pooling);
  }
  if (older.empty()) older = {mean};
  if (!from.has("pooling_mode")) return older;
  const bool is_list = from.json()["pooling_mode"].is_array();
  const auto names = is_list ? from.texts("pooling_mode") : std::vector{from.text("pooling_mode")};
  std::vector<EmbeddingPooling> poolings;
  for (const auto& name : names) {
    const auto* const found = std::ranges::find(modes, name, &Mode::name);
    if (found == modes.end()) from.fail("pooling_mode", fmt::format("'{}' is not known", name));
    poolings.push_back(found->pooling);
  }
  if (poolings.empty()) from.fail("pooling_mode", "expected at least one");
  return poolings;
}

void read_pooling(ForeignConfig from, int64_t d_model, EmbeddingConfig& to) {
  to.pooling = read_poolings(from);
  to.include_prompt = from.flag("include_prompt", true);
  from.require("word_embedding_dimension", d_model);
  from.require("embedding_dimension", d_model);
  from.finish();
}

/// Modules after the pooling read and write the vector.
void require_vector(ForeignConfig& from) {
  from.require("module_input_name", "sentence_embedding");
  from.require("module_output_name", "sentence_embedding");
}

DenseActivation read_activation(ForeignConfig& from) {
  struct Function {
    std::string_view name;
    DenseActivation activation;
  };
  using enum DenseActivation;
  constexpr auto functions = std::to_array<Function>({{"Identity", none},
                                                      {"Tanh", tanh},
                                                      {"ReLU", relu},
                                                      {"GELU", gelu},
                                                      {"Sigmoid", sigmoid},
                                                      {"SiLU", silu}});
  const auto name = from.text("activation_function", "torch.nn.modules.activation.Tanh");
  const auto* const found =
      std::ranges::find(functions, std::string_view(name).substr(name.rfind('.') + 1), &Function::name);
  if (!name.starts_with("torch.nn.") || found == functions.end())
    from.fail("activation_function",
              "only Identity, Tanh, ReLU, GELU, Sigmoid and SiLU of torch are supported");
  return found->activation;
}

DenseConfig read_dense(ForeignConfig from) {
  const DenseConfig dense{.in_features = from.integer("in_features"),
                          .out_features = from.integer("out_features"),
                          .bias = from.flag("bias", true),
                          .activation = read_activation(from)};
  from.require("use_residual", false);
  require_vector(from);
  from.finish();
  return dense;
}

/// What a Transformer of sentence-transformers gives to the module after it.
struct TransformerOutput {
  const char *task, *tensor, *name;
};
constexpr TransformerOutput kStates{"feature-extraction", "last_hidden_state", "token_embeddings"};
constexpr TransformerOutput kScores{"sequence-classification", "logits", "scores"};

/// How the transformer reads texts. Returns the most tokens of a text, if the file says it.
std::optional<int64_t> read_module_settings(ForeignConfig from, const TransformerOutput& output,
                                            EmbeddingConfig& to) {
  const auto length = from.optional_integer("max_seq_length");
  if (length && *length < 1) from.fail("max_seq_length", "expected at least 1");
  to.lower_case = from.flag("do_lower_case", false);
  from.require("transformer_task", output.task);
  from.require("module_output_name", output.name);
  for (const char* const key : {"processing_kwargs", "model_args", "tokenizer_args", "config_args",
                                "processor_kwargs", "model_kwargs", "config_kwargs"}) {
    if (auto options = from.object(key)) options->finish();
  }
  if (auto modalities = from.object("modality_config")) {
    if (auto text = modalities->object("text")) {
      text->require("method", "forward");
      text->require("method_output_name", output.tensor);
      text->finish();
    }
    modalities->finish();
  }
  from.ignore({"unpad_inputs"});  // how batches lie in memory
  from.finish();
  return length;
}

void read_prompts(ForeignConfig from, EmbeddingConfig& to) {
  from.require("model_type", "SentenceTransformer");
  // It says how two vectors are compared, not how they are made.
  from.ignore({"__version__", "similarity_fn_name"});
  if (const auto prompts = from.object("prompts")) {
    for (const auto& [name, text] : prompts->json().items()) {
      if (!text.is_string()) prompts->fail(name, "expected a text");
      to.prompts.push_back({.name = name, .text = text.get<std::string>()});
    }
  }
  to.default_prompt = from.optional_text("default_prompt_name");
  if (to.default_prompt && !to.find_prompt(*to.default_prompt))
    from.fail("default_prompt_name", "is not a name of prompts");
  from.require("truncate_dim", nullptr);
  from.finish();
}

/// The settings of a CrossEncoder, in config_sentence_transformers.json. Nothing for other models.
std::optional<ForeignConfig> cross_encoder_of(const fs::path& dir, const SmallFiles& files) {
  auto config = read_config(dir, files, kVersions);
  const bool is_one = config && config->json().value("model_type", Json()) == "CrossEncoder";
  return is_one ? std::move(config) : std::nullopt;
}

/// model_max_length of the tokenizer. transformers writes a huge number for none.
std::optional<int64_t> length_of_tokenizer(const fs::path& dir) {
  constexpr const char* name = "tokenizer_config.json";
  if (!has_foreign_file(dir, name)) return std::nullopt;
  const auto json = parse_foreign_json(dir / name, read_foreign_file(dir, name));
  const auto length = json.is_object() ? json.value("model_max_length", Json()) : Json();
  const bool is_usual = length.is_number() && length.get<double>() >= 1 && length.get<double>() < 1e9;
  return is_usual ? std::optional(static_cast<int64_t>(length.get<double>())) : std::nullopt;
}

/// The weights of a dense map.
std::shared_ptr<const TensorSource> open_dense(const fs::path& dir, const std::string& folder) {
  for (const char* const file : {"/model.safetensors", "/pytorch_model.bin"})
    if (has_foreign_file(dir, folder + file)) return open_tensors_of_file(foreign_file(dir, folder + file));
  throw CheckpointError(
      fmt::format("{}: it has neither model.safetensors nor pytorch_model.bin", (dir / folder).string()));
}

}  // namespace

std::vector<std::string> module_folders(const SmallFiles& files) {
  std::vector<std::string> folders;
  const auto found = files.find(kModules);
  if (found == files.end()) return folders;
  const auto list = Json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return folders;
  constexpr size_t most = 32;
  for (const auto& entry : list) {
    const auto path = entry.is_object() ? entry.value("path", Json()) : Json();
    if (!path.is_string() || folders.size() == most) continue;
    if (auto folder = path.get<std::string>(); is_plain_name(folder)) folders.push_back(std::move(folder));
  }
  return folders;
}

void read_sentence_vectors(const fs::path& dir, const SmallFiles& files, Experiment& to) {
  if (!files.contains(kModules)) return;
  auto& embedding = to.embedding;
  embedding = {};
  const auto place = (dir / kModules).string();
  const auto refuse = [&](std::string_view problem) {
    throw CheckpointError(fmt::format("{}: {}", place, problem));
  };
  const auto modules = modules_of(dir, files);
  if (modules.empty() || modules.front().type != "Transformer" || !modules.front().folder.empty())
    refuse("the first module is not a Transformer in the directory itself");
  for (size_t i = 1; i < modules.size(); ++i) {
    const auto& [type, folder] = modules[i];
    if (!is_plain_name(folder))
      refuse(fmt::format("'{}' is not the name of a folder in this directory", folder));
    auto config = read_config(dir, files, folder + "/config.json");
    const auto required = [&] {
      if (!config) refuse(fmt::format("{}/config.json is missing", folder));
      return *config;
    };
    if (type == "Dropout") continue;  // of the training
    if (type == "Pooling" && embedding.pooling.empty()) {
      read_pooling(required(), to.model.d_model, embedding);
    } else if (embedding.pooling.empty()) {
      refuse(fmt::format("{}: Pooling must come before it", type));
    } else if (type == "Dense" && !embedding.normalize) {
      embedding.dense.push_back(read_dense(required()));
    } else if (type == "Normalize") {
      if (config) {
        require_vector(*config);
        config->finish();
      }
      embedding.normalize = true;
    } else {
      refuse(fmt::format("{}: supported are one Pooling, then Dense, then Normalize", type));
    }
  }
  const bool scores = cross_encoder_of(dir, files).has_value();
  if (embedding.pooling.empty() != scores)
    refuse(scores ? "a CrossEncoder has no Pooling" : "there is no Pooling");
  if (scores && !task_type(to).problem)
    refuse("this is a CrossEncoder, and config.json names a model that does not classify");
  auto width = to.model.d_model * std::ssize(embedding.pooling);
  for (const auto& dense : embedding.dense) {
    if (dense.in_features != width)
      refuse(fmt::format("Dense reads {} numbers, and what is before it gives {}", dense.in_features, width));
    width = dense.out_features;
  }
  std::optional<int64_t> length;
  for (const char* const name : kSettings) {
    if (auto config = read_config(dir, files, name))
      length = read_module_settings(*std::move(config), scores ? kScores : kStates, embedding);
  }
  if (auto config = read_config(dir, files, kVersions); config && !scores)
    read_prompts(*std::move(config), embedding);
  if (!length) length = length_of_tokenizer(dir);
  to.data.sequence_length = std::min(length.value_or(to.data.sequence_length), to.model.max_positions);
}

void read_cross_encoder(const fs::path& dir, const SmallFiles& files, Json& config) {
  auto from = cross_encoder_of(dir, files);
  if (!from || !config.is_object()) return;
  from->ignore({"model_type", "__version__", "prompts"});
  from->require("default_prompt_name", nullptr);
  if (const auto activation = from->optional_text("activation_fn")) {
    auto& older = config["sentence_transformers"];
    if (!older.is_object()) older = Json::object();
    older["activation_fn"] = *activation;
  }
  from->finish();
}

void read_tokenizer_length(const fs::path& dir, Experiment& to) {
  const auto& type = task_type(to);
  const bool reads_only = type.name == "text_features" || type.name == "image_text_similarity" ||
                          type.name == "text_classification" || type.name == "token_classification";
  if (!reads_only) return;
  if (const auto length = length_of_tokenizer(dir))
    to.data.sequence_length = std::min(to.data.sequence_length, *length);
}

std::map<std::string, torch::Tensor> read_dense_maps(const fs::path& dir, const SmallFiles& files,
                                                     const EmbeddingConfig& embedding) {
  std::map<std::string, torch::Tensor> maps;
  if (embedding.dense.empty()) return maps;
  size_t number = 0;
  for (const auto& part : modules_of(dir, files)) {
    if (part.type != "Dense") continue;
    const auto& config = embedding.dense.at(number);
    const auto file = open_dense(dir, part.folder);
    const auto read = [&](const std::string& name, const std::vector<int64_t>& shape) {
      const auto theirs = "linear." + name;
      if (!file->contains(theirs) || file->shape(theirs) != shape) {
        throw CheckpointError(fmt::format("{}: {} is missing, or has another shape than config.json says",
                                          file->place(), theirs));
      }
      auto tensor = torch::empty(shape);
      file->read_into(tensor, theirs);
      maps.emplace(fmt::format("{}.{}", number, name), std::move(tensor));
    };
    read("weight", {config.out_features, config.in_features});
    if (config.bias) read("bias", {config.out_features});
    ++number;
  }
  return maps;
}

void write_dense_maps(const fs::path& dir, const SmallFiles& files,
                      const std::map<std::string, torch::Tensor>& maps) {
  if (maps.empty() || !files.contains(kModules)) return;
  size_t number = 0;
  for (const auto& part : modules_of(dir, files)) {
    if (part.type != "Dense") continue;
    TensorMap tensors;
    for (const char* const name : {"weight", "bias"}) {
      const auto found = maps.find(fmt::format("{}.{}", number, name));
      if (found != maps.end()) tensors.emplace(std::string("linear.") + name, found->second);
    }
    save_safetensors(dir / part.folder / "model.safetensors", tensors, {{"format", "pt"}});
    ++number;
  }
}

}  // namespace zoo
