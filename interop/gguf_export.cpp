#include "interop/gguf_export.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "interop/families/common.h"
#include "interop/foreign_choice.h"
#include "interop/foreign_model.h"
#include "interop/gguf/gguf_architectures.h"
#include "interop/gguf/gguf_config.h"
#include "interop/gguf/gguf_rotary.h"
#include "interop/gguf/gguf_tensors.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "io/formats/gguf_file.h"
#include "io/formats/gguf_writer.h"
#include "text/gguf/gguf_vocabulary.h"
#include "tokenizers/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The family, with a config.json that has every key.
ChosenFamily choose_gguf_family(const Task& task) {
  std::vector<const ForeignFamily*> families;
  std::set<std::string> names;
  for (const auto& architecture : gguf_architectures()) {
    families.push_back(find_foreign_family(architecture.model_type));
    names.insert(architecture.name);
  }
  const auto refuse = [&](const std::string& reasons) {
    throw ConfigError(
        fmt::format("GGUF is written for {}, and none of them computes what this model does: {}",
                    fmt::join(names, ", "), reasons));
  };
  ChosenFamily chosen;
  try {
    chosen = choose_family(task, families);
  } catch (const ConfigError& error) {
    refuse(error.what());
  }
  const auto& architecture = *gguf_architecture_of(chosen.family->model_type);
  const std::string name = chosen.config.at("architectures").front();
  const bool is_headless =
      std::ranges::find(architecture.headless_classes, name) != architecture.headless_classes.end();
  if (name != architecture.class_name && !is_headless) {
    refuse(fmt::format("{} is there as a {}, not as a {}", architecture.name, architecture.class_name, name));
  }
  chosen.config["architectures"] = Json::array({architecture.class_name});
  auto& config = chosen.config;
  const auto& model = task.experiment().model;
  config["vocab_size"] = model.vocab_size.value_or(task.purpose().vocab_size);
  config["tie_word_embeddings"] = model.tie_embeddings;
  chosen.family->write(task.experiment(), config);
  // The length of short texts, for which the model has divisors, and the factor as it is.
  if (model.rotary.scaling == RotaryScaling::longrope) {
    write_rotary(model, config);
    config["max_position_embeddings"] = model.max_positions;
  }
  return chosen;
}

/// Throws ConfigError unless a reader of the keys sees this model. `tensors`: those that are written.
void check_keys(const GgufArchitecture& architecture, const GgufMetadata& metadata, const Json& config,
                const TensorSource& tensors, const Task& task) {
  auto wanted = task.experiment();
  wanted.model.vocab_size = config.at("vocab_size");
  bool is_tied = config.at("tie_word_embeddings");
  if (is_tied && scale_of_tied_output(architecture, config)) {
    is_tied = wanted.model.tie_embeddings = false;
    wanted.model.output_scale = ModelConfig().output_scale;
  }
  // Keys have numbers of float32.
  if (auto& factor = wanted.model.rotary.attention_factor) factor = shortest(static_cast<float>(*factor));
  std::string problem;
  try {
    const auto stored = as_json(metadata);
    GgufTensorFacts facts{.is_tied = is_tied, .rotary = rotary_tensors(architecture, config)};
    for (const auto& name : tensors.names()) facts.names.insert(name);
    ForeignConfig read("the file", config_of_gguf(architecture, GgufKeys("the file", stored), facts));
    const auto generation = read_generation({}, {}, read);
    const auto described = describe_foreign(std::move(read), generation, wanted.name);
    const auto differences = model_differences(wanted, described.experiment, task.purpose().head);
    if (differences.empty()) return;
    problem = fmt::format("has another {}", differences.front().key);
  } catch (const CheckpointError& error) {
    problem = error.what();
  }
  throw ConfigError(
      fmt::format("llama.cpp cannot express this model: its architecture {} {}", architecture.name, problem));
}

/// llama.cpp calls the tokens around the texts of an encoder bos and eos.
SpecialTokens special_tokens_for(const GgufArchitecture& architecture, SpecialTokens special) {
  if (architecture.body != GgufBody::encoder) return special;
  special.bos = special.cls;
  special.eos = special.sep;
  special.other_ends.clear();
  return special;
}

GgufVocabulary vocabulary_of(const GgufArchitecture& architecture, const Task& task, int64_t n_rows) {
  const auto& tokenizer = task.tokenizer();
  const auto frame = tokenizer.frame().value_or(frame_of_task(task));
  return {.files = tokenizer.exported_files(frame),
          .special = special_tokens_for(architecture, tokenizer.special()),
          .frame = frame,
          .n_tokens = tokenizer.vocab_size(),
          .n_rows = n_rows};
}

/// Whether a tensor is of float32 in every file: vectors, also where there is one for each head or expert,
/// routers, and tables that llama.cpp adds up.
bool is_always_plain(const TensorSource& tensors, const std::string& name) {
  constexpr auto ends =
      std::to_array<std::string_view>({"position_embd.weight", "token_types.weight", ".attn_rel_b.weight",
                                       "_norm.weight", ".bias", ".ffn_gate_inp.weight"});
  return tensors.shape(name).size() < 2 ||
         std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

/// Whether the scores of tokens are products with this tensor. They are more sensitive than others, and
/// llama.cpp gives them more bits, too.
bool is_output(const TensorSource& tensors, const std::string& name) {
  return name == "output.weight" || (name == "token_embd.weight" && !tensors.contains("output.weight"));
}

const BlockType& format_of(const TensorSource& tensors, const std::string& name,
                           std::optional<ExportedType> type) {
  const auto shape = tensors.shape(name);
  if (is_always_plain(tensors, name)) return plain_block_type(torch::kFloat);
  if (!type) return plain_block_type(tensors.dtype(name));
  switch (*type) {
    case ExportedType::fp32:
      return plain_block_type(torch::kFloat);
    case ExportedType::bf16:
      return plain_block_type(torch::kBFloat16);
    case ExportedType::q8_0:
    case ExportedType::q4_0: {
      const bool few_bits = *type == ExportedType::q4_0 && !is_output(tensors, name);
      const auto& blocks = few_bits ? q4_0_block_type() : q8_0_block_type();
      if (shape.back() % blocks.elements == 0) return blocks;
      break;
    }
    case ExportedType::fp16:
      break;
  }
  return plain_block_type(torch::kHalf);
}

/// general.file_type, which is for people: the format of most numbers.
uint32_t file_type(const TensorSource& tensors, std::optional<ExportedType> type) {
  std::map<uint32_t, int64_t> counts;
  for (const auto& name : tensors.names())
    counts[format_of(tensors, name, type).id] += c10::multiply_integers(tensors.shape(name));
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
  // The types of files have the ids of the formats, except for q8_0 and bf16.
  constexpr uint32_t mostly_q8_0 = 7, mostly_bf16 = 32;
  if (most == q8_0_block_type().id) return mostly_q8_0;
  return most == plain_block_type(torch::kBFloat16).id ? mostly_bf16 : most;
}

/// Sets the pooling of an encoder's vectors. Throws ConfigError for vectors that llama.cpp does not make.
void set_pooling(const GgufArchitecture& architecture, const EmbeddingConfig& embedding, GgufMetadata& to) {
  if (architecture.body != GgufBody::encoder) return;
  const auto pooling = embedding.pooling.empty() ? EmbeddingPooling::mean : embedding.pooling.front();
  const auto* const found = std::ranges::find(kGgufPoolings, name_of(pooling));
  if (embedding.pooling.size() > 1 || found == kGgufPoolings.end() || !embedding.dense.empty()) {
    throw ConfigError(fmt::format(
        "llama.cpp makes vectors by mean, cls or last alone, and embedding says {}: change it in config.yaml",
        to_text(embedding)));
  }
  const auto key = std::ranges::find(to, architecture.name + ".pooling_type",
                                     [](const auto& entry) { return entry.first; });
  if (key != to.end()) key->second = static_cast<uint32_t>(found - kGgufPoolings.begin());
}

}  // namespace

bool is_gguf_name(const fs::path& path) { return has_extension(path, {".gguf"}); }

std::string export_gguf(const fs::path& path, const Task& task,
                        const std::shared_ptr<const TensorSource>& tensors,
                        std::optional<ExportedType> type) {
  if (is_there(path)) throw UsageError(fmt::format("{}: exists already; name a new file", path.string()));
  const auto [family, config] = choose_gguf_family(task);
  const auto& architecture = *gguf_architecture_of(family->model_type);
  const auto foreign = tensor_mapping(*family, task.experiment(), task.purpose(), config)
                           .exported(tensors, ForeignNames::with_prefix);
  const auto stored = tensors_for_gguf(foreign, architecture, config, rotary_tensors(architecture, config));
  GgufMetadata metadata{{"general.architecture", architecture.name},
                        {"general.name", task.experiment().name},
                        {"general.file_type", file_type(*stored, type)}};
  if (type == ExportedType::q8_0 || type == ExportedType::q4_0)
    metadata.emplace_back("general.quantization_version", uint32_t{2});
  for (auto& key : gguf_keys_of(architecture, config)) metadata.push_back(std::move(key));
  set_pooling(architecture, task.experiment().embedding, metadata);
  for (auto& key : gguf_keys_of(vocabulary_of(architecture, task, config.at("vocab_size"))))
    metadata.push_back(std::move(key));
  check_keys(architecture, metadata, config, *stored, task);
  if (path.has_parent_path()) make_directory(path.parent_path());
  replace_file_atomically(path, [&](const fs::path& made) {
    write_gguf(made, metadata, *stored,
               [&](const std::string& name) -> const BlockType& { return format_of(*stored, name, type); });
  });
  return architecture.name;
}

}  // namespace zoo
