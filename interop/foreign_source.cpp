#include "interop/foreign_source.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "interop/foreign_families.h"
#include "interop/foreign_files.h"
#include "interop/gguf/gguf_model.h"
#include "interop/nanogpt.h"
#include "interop/peft/adapter_task.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "io/formats/gguf_file.h"
#include "io/formats/pytorch_file.h"
#include "io/json_document.h"
#include "io/safetensors.h"
#include "tokenizers/hub_tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> small_files(const fs::path& dir, ForeignParts parts) {
  return parts == ForeignParts::all ? read_small_files(dir) : other_small_files(dir);
}

ForeignSource open_gguf_source(const fs::path& path, ForeignParts parts) {
  ForeignSource source{.dir = path, .config_place = (path / "config.json").string()};
  if (parts == ForeignParts::config) {
    source.files = gguf_config(path);
  } else {
    auto model = open_gguf(path);
    source.files = std::move(model.files);
    source.tensors = std::move(model.tensors);
  }
  return source;
}

ForeignSource open_file_of_weights(const fs::path& path, ForeignParts parts) {
  const auto dir = place_of_tokenizer(path);
  ForeignSource source{.dir = dir, .config_place = (dir / "config.json").string()};
  source.tensors = open_tensors_of_file(path);
  const auto* const file = dynamic_cast<const PytorchFile*>(source.tensors.get());
  const auto config = file ? nanogpt_config(*file) : std::nullopt;
  if (!config && !has_foreign_file(dir, "config.json")) {
    throw CheckpointError(fmt::format(
        "{}: weights alone, which do not say of what model they are: put the model's config.json and "
        "tokenizer beside the file",
        path.string()));
  }
  source.files = small_files(dir, parts);
  if (!config) return source;
  source.files["config.json"] = config->dump();
  source.config_place = path.string() + ": model_args";
  return source;
}

constexpr const char* kAdapterConfig = "adapter_config.json";

/// The directory of the model that an adapter changes. `dir`: of the adapter; `given`: what the user names,
/// or empty.
fs::path base_of(const fs::path& dir, const AdapterConfig& config, const fs::path& given) {
  const fs::path named = given.empty() ? fs::path(config.base) : given;
  for (const auto& base : {named, dir / named}) {
    if (!named.empty() && is_foreign(base) && !is_adapter(base)) return base;
  }
  throw CheckpointError(
      fmt::format("{}: its base '{}' is no directory of a model here: name one with --base DIR",
                  (dir / kAdapterConfig).string(), excerpt(named.string())));
}

std::shared_ptr<const TensorSource> open_adapter_tensors(const fs::path& dir) {
  for (const char* const name : {"adapter_model.safetensors", "adapter_model.bin"})
    if (has_foreign_file(dir, name)) return open_tensors_of_file(foreign_file(dir, name));
  throw CheckpointError(
      fmt::format("{}: it has neither adapter_model.safetensors nor adapter_model.bin", dir.string()));
}

AdapterConfig config_of_adapter(const fs::path& dir) {
  const auto place = (dir / kAdapterConfig).string();
  return read_adapter_config({place, parse_foreign_json(place, read_foreign_file(dir, kAdapterConfig))});
}

bool has_tokenizer(const fs::path& adapter) { return has_foreign_file(adapter, "tokenizer.json"); }

ForeignSource open_adapter(const fs::path& dir, ForeignParts parts, const fs::path& given) {
  Adapter adapter{.config = config_of_adapter(dir), .tensors = open_adapter_tensors(dir)};
  auto source = open_foreign_source(base_of(dir, adapter.config, given), parts);
  const auto text = source.files.find("config.json");
  auto config =
      text == source.files.end() ? nlohmann::json() : parse_foreign_json(source.config_place, text->second);
  // Other mistakes in config.json are found when the model is read.
  const auto type = config.is_object() ? config.value("model_type", nlohmann::json()) : nlohmann::json();
  if (const auto* const family = type.is_string() ? find_foreign_family(type.get<std::string>()) : nullptr) {
    follow_adapter(adapter, (dir / kAdapterConfig).string(), *family, config);
    text->second = json_text(config, 2) + "\n";
  }
  source.adapter = std::move(adapter);
  // It may have tokens of its own.
  if (parts == ForeignParts::config || !has_tokenizer(dir)) return source;
  std::erase_if(source.files, [](const auto& file) { return is_hub_file(file.first); });
  for (auto& [name, content] : read_small_files(dir))
    if (is_hub_file(name)) source.files[name] = std::move(content);
  return source;
}

}  // namespace

fs::path place_of_tokenizer(const fs::path& path, const fs::path& base) {
  if (is_adapter(path) && !has_tokenizer(path))
    return place_of_tokenizer(base_of(path, config_of_adapter(path), base));
  if (!base.empty() && !is_adapter(path))
    throw UsageError(fmt::format("{}: is no adapter of PEFT, so it has no base", path.string()));
  if (!has_file(path) || is_gguf(path)) return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

ForeignSource open_foreign_source(const fs::path& path, ForeignParts parts, const fs::path& base) {
  if (is_adapter(path)) return open_adapter(path, parts, base);
  if (!base.empty())
    throw UsageError(fmt::format("{}: is no adapter of PEFT, so it has no base", path.string()));
  if (is_gguf(path) || has_extension(path, {".gguf"})) return open_gguf_source(path, parts);
  if (has_file(path)) return open_file_of_weights(path, parts);
  return {.dir = path,
          .config_place = (path / "config.json").string(),
          .files = small_files(path, parts),
          .tensors = parts == ForeignParts::all ? open_foreign_tensors(path) : nullptr};
}

}  // namespace zoo
