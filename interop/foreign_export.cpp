#include "interop/foreign_export.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"
#include "interop/foreign_choice.h"
#include "interop/foreign_generation.h"
#include "interop/foreign_model.h"
#include "interop/foreign_preprocessor.h"
#include "interop/foreign_sentences.h"
#include "interop/peft/adapter_task.h"
#include "io/files.h"
#include "io/json_document.h"
#include "io/safetensors.h"
#include "models/families/recordings.h"
#include "tokenizers/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

std::string_view dtype_name(torch::ScalarType type) {
  return type == torch::kHalf ? "float16" : type == torch::kBFloat16 ? "bfloat16" : "float32";
}

/// Floating-point tensors of another source in one type.
class ConvertedTensors final : public TensorSource {
 public:
  ConvertedTensors(std::shared_ptr<const TensorSource> source, torch::ScalarType type)
      : source_(std::move(source)), type_(type) {}
  std::vector<std::string> names() const override { return source_->names(); }
  bool contains(const std::string& name) const override { return source_->contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override { return source_->shape(name); }
  torch::ScalarType dtype(const std::string& name) const override {
    const auto stored = source_->dtype(name);
    return c10::isFloatingType(stored) ? type_ : stored;
  }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    source_->read_into(to, name);
  }
  std::string place() const override { return source_->place(); }

 private:
  std::shared_ptr<const TensorSource> source_;
  torch::ScalarType type_;
};

torch::ScalarType scalar_type(ExportedType type) {
  // The quantised types are refused before.
  return type == ExportedType::fp16   ? torch::kHalf
         : type == ExportedType::bf16 ? torch::kBFloat16
                                      : torch::kFloat;
}

ChosenFamily chosen_family(const Task& task) {
  std::vector<const ForeignFamily*> families;
  for (const auto& family : foreign_families()) families.push_back(&family);
  try {
    return choose_family(task, families);
  } catch (const ConfigError& error) {
    throw ConfigError(
        fmt::format("no family of transformers computes what this model does: {}", error.what()));
  }
}

void check_target(const fs::path& dir, std::optional<ExportedType> type) {
  if (is_there(dir)) throw UsageError(fmt::format("{}: exists already; name a new directory", dir.string()));
  if (type == ExportedType::q8_0 || type == ExportedType::q4_0) {
    throw UsageError(fmt::format("--weights {}: only a GGUF file can have them; name one, such as model.gguf",
                                 name_of(*type)));
  }
}

/// Which foreign names the exported model of a task has.
ForeignNames names_for(const Task& task) {
  return task.purpose().head == HeadKind::none ? ForeignNames::without_prefix : ForeignNames::with_prefix;
}

/// The type of most numbers.
torch::ScalarType main_type(const TensorSource& source) {
  std::map<torch::ScalarType, int64_t> counts;
  for (const auto& name : source.names())
    counts[source.dtype(name)] += c10::multiply_integers(source.shape(name));
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
}

/// Whether it writes texts, and nothing but a tokenizer is needed for its prompts.
bool writes_texts(const Task& task) {
  return task.purpose().head == HeadKind::language_modeling && task.vocabulary().tokenizer &&
         !reads_recordings(task.experiment().model);
}

/// generation_config.json. `config`: config.json.
std::string generation_of(const Task& task, const nlohmann::json& config) {
  auto generation = generation_json(task.experiment().generation, task.tokenizer());
  const char* const start = "decoder_start_token_id";
  if (config.contains(start)) generation[start] = config[start];
  return json_text(generation, 2) + "\n";
}

/// Adds to tokenizer_config.json in `dir` how many tokens of a text a model reads that was trained here, and
/// that it gets no segments if it has none: transformers adds those of an encoder's vocabulary to a decoder's
/// tokens.
void write_settings(const Task& task, const fs::path& dir) {
  constexpr const char* name = "tokenizer_config.json";
  const auto& data = task.experiment().data;
  if (data.train.empty() || reads_recordings(task.experiment().model) || !is_there(dir / name)) return;
  auto config = parse_ordered_json(read_file(dir / name, Follow::nothing));
  config["model_max_length"] = data.sequence_length;
  constexpr const char* inputs = "model_input_names";
  const bool has_segments = task.experiment().model.n_segments > 0;
  if (!has_segments &&
      (!config.contains(inputs) || config[inputs].dump().find("token_type_ids") != std::string::npos))
    config[inputs] = {"input_ids", "attention_mask"};
  write_file_atomically(dir / name, json_text(config, 2) + "\n");
}

}  // namespace

std::string export_foreign(const fs::path& dir, const Task& task,
                           const std::shared_ptr<const TensorSource>& tensors,
                           std::optional<ExportedType> type, const std::optional<TrainingFigures>& figures) {
  check_target(dir, type);
  auto [family, config] = chosen_family(task);
  auto foreign =
      tensor_mapping(*family, task.experiment(), task.purpose(), config).exported(tensors, names_for(task));
  if (type) foreign = std::make_shared<ConvertedTensors>(foreign, scalar_type(*type));
  // Newer files say dtype, older ones torch_dtype.
  const char* const dtype_key = config.contains("dtype") ? "dtype" : "torch_dtype";
  const bool has_origin = !task.vocabulary().foreign_files.empty();
  if (type || !has_origin || config.contains(dtype_key)) config[dtype_key] = dtype_name(main_type(*foreign));
  // A model that came with a file, or without one, keeps it so, unless it reads pictures in another way now.
  auto files = task.vocabulary().foreign_files;
  const auto& pixels = task.vocabulary().pixels;
  const bool keeps_preprocessor =
      has_origin && (!pixels || prepares_pictures_alike(files, task.experiment(), *pixels));
  const auto preprocessor = keeps_preprocessor ? std::nullopt : preprocessor_of(task.experiment(), pixels);
  if (preprocessor) files.erase("processor_config.json");
  if (!has_origin && writes_texts(task)) files["generation_config.json"] = generation_of(task, config);
  const auto readme =
      model_card({.name = excerpt((dir.has_filename() ? dir : dir.parent_path()).filename().string()),
                  .class_name = config.at("architectures").front(),
                  .model_type = family->model_type,
                  .n_parameters = n_elements(*tensors),
                  .figures = figures},
                 task);
  if (dir.has_parent_path()) make_directory(dir.parent_path());
  write_directory_atomically(dir, [&](const fs::path& made) {
    for (const auto& [name, content] : files) {
      if (name == "config.json") continue;
      make_directory((made / name).parent_path());
      write_file_atomically(made / name, content);
    }
    write_dense_maps(made, files, task.vocabulary().dense);
    write_file_atomically(made / "config.json", json_text(config, 2) + "\n");
    write_file_atomically(made / "README.md", readme);
    if (preprocessor) write_file_atomically(made / "preprocessor_config.json", *preprocessor);
    if (const auto& tokenizer = task.vocabulary().tokenizer)
      export_files(*tokenizer, made, frame_of_task(task));
    write_settings(task, made);
    copy_safetensors(made / "model.safetensors", *foreign, {{"format", "pt"}});
  });
  return family->model_type;
}

std::string export_adapter(const fs::path& dir, const Task& task, const TrainedAdapter& trained,
                           std::optional<ExportedType> type) {
  check_target(dir, type);
  const auto [family, config] = chosen_family(task);
  const auto name = config.at("architectures").front().get<std::string>();
  const auto described = std::ranges::find(family->classes, name, &ForeignClass::name);
  auto files = adapter_files(
      trained, tensor_mapping(*family, task.experiment(), task.purpose(), config),
      {.name = name, .peft_task = std::string(peft_task_of(described->task)), .names = names_for(task)});
  if (type) {
    for (auto& [tensor_name, tensor] : files.tensors) tensor = tensor.to(scalar_type(*type));
  }
  if (dir.has_parent_path()) make_directory(dir.parent_path());
  write_directory_atomically(dir, [&](const fs::path& made) {
    write_file_atomically(made / "adapter_config.json", json_text(files.config, 2) + "\n");
    save_safetensors(made / "adapter_model.safetensors", files.tensors, {{"format", "pt"}});
  });
  return family->model_type;
}

}  // namespace zoo
