#include "interop/foreign_files.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "interop/foreign_kinds.h"
#include "interop/foreign_sentences.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "io/formats/gguf_file.h"
#include "io/formats/pytorch_file.h"
#include "io/joined_tensors.h"
#include "io/json_document.h"
#include "io/open_file.h"
#include "io/paths.h"
#include "io/safetensors.h"
#include "tokenizers/hub_tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// Where weights are, the first that is there; each may be divided into several files, which an index lists.
constexpr auto kWeights = std::to_array<std::string_view>({"model.safetensors", "pytorch_model.bin"});
constexpr std::string_view kIndexEnding = ".index.json";

/// Beside the files of the tokenizer, hub_file_names().
constexpr auto kOtherFiles = std::to_array<std::string_view>(
    {"config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json",
     "sentencepiece.bpe.model", "chat_template.jinja", "modules.json", "config_sentence_transformers.json",
     "sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json",
     "sentence_xlm-roberta_config.json"});

/// Those of the named files that are there.
std::map<std::string, std::string> read_named(const fs::path& dir, std::span<const std::string_view> names) {
  std::map<std::string, std::string> files;
  for (const auto view : names) {
    const std::string name(view);
    if (has_foreign_file(dir, name)) files.emplace(name, read_foreign_file(dir, name));
  }
  return files;
}

/// Whether a file begins with what no text has, or stands in the place of one that was not downloaded.
bool is_binary(const fs::path& path) {
  std::array<char, kStrayHead> bytes{};
  try {
    const auto file = open_for_reading(path, Follow::links);
    const std::string_view head(bytes.data(), read_at(file, path, 0, bytes));
    return stray_content(head) || head.find('\0') != head.npos;
  } catch (const DataError&) {
    return false;
  }
}

/// A plain name, or one in a folder with a plain name.
bool is_inner_name(const std::string& name) {
  const auto slash = name.find('/');
  if (slash == name.npos) return is_plain_name(name);
  return is_plain_name(name.substr(0, slash)) && is_plain_name(name.substr(slash + 1));
}

std::shared_ptr<const TensorSource> open_shards(const fs::path& dir, const std::string& index_name) {
  const auto index = dir / index_name;
  const auto fail = [&](const std::string& problem) {
    throw CheckpointError(fmt::format("{}: {}", index.string(), problem));
  };
  const auto json = parse_foreign_json(index, read_foreign_file(dir, index_name));
  const auto weight_map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || weight_map == json.end() || !weight_map->is_object())
    fail("it has no object weight_map, which says in which file a tensor is");
  std::map<std::string, std::set<std::string>> names_in;
  for (const auto& [name, file] : weight_map->items()) {
    if (!file.is_string()) fail(fmt::format("the place of '{}' is not the name of a file", excerpt(name)));
    names_in[file.get<std::string>()].insert(name);
  }
  constexpr size_t most_files = 1000;  // each of them stays open
  if (names_in.empty() || names_in.size() > most_files)
    fail(fmt::format("it names {} files; 1 to {} are supported", names_in.size(), most_files));
  std::vector<std::shared_ptr<const TensorSource>> files;
  for (const auto& [file, names] : names_in) {
    if (!is_plain_name(file))
      fail(fmt::format("'{}' is not the name of a file in this directory", excerpt(file)));
    auto tensors = open_tensors_of_file(foreign_file(dir, file));
    for (const auto& name : names) {
      if (!tensors->contains(name)) fail(fmt::format("'{}' is not in {}", excerpt(name), excerpt(file)));
    }
    for (const auto& name : tensors->names()) {
      if (!names.contains(name))
        fail(fmt::format("'{}' in {} is not listed, or is listed in another file", excerpt(name),
                         excerpt(file)));
    }
    files.push_back(std::move(tensors));
  }
  return std::make_shared<JoinedTensors>(index.string(), std::move(files));
}

/// Those of kOtherFiles, and the configurations of the modules of sentence-transformers.
std::map<std::string, std::string> read_others(const fs::path& dir) {
  auto files = read_named(dir, kOtherFiles);
  for (const auto& folder : module_folders(files)) {
    const auto name = folder + "/config.json";
    if (has_foreign_file(dir, name)) files.emplace(name, read_foreign_file(dir, name));
  }
  return files;
}

}  // namespace

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

bool is_foreign(const fs::path& dir) {
  return (has_file(dir / "config.json") && !has_file(dir / "config.yaml")) || is_adapter(dir) ||
         is_file_of_weights(dir);
}

bool is_adapter(const fs::path& dir) {
  if (!has_file(dir / "adapter_config.json") || has_file(dir / "config.yaml")) return false;
  return std::ranges::none_of(kWeights, [&](std::string_view name) {
    return has_file(dir / name) || has_file(dir / (std::string(name) + std::string(kIndexEnding)));
  });
}

bool is_file_of_weights(const fs::path& path) {
  if (!has_file(path)) return false;
  if (has_extension(path, {".safetensors", ".gguf", ".pt", ".pth", ".ckpt"}) || is_gguf(path)) return true;
  return has_extension(path, {".bin"}) && is_binary(path);
}

bool has_foreign_file(const fs::path& dir, const std::string& name) {
  return is_inner_name(name) && has_file(dir / name);
}

fs::path foreign_file(const fs::path& dir, const std::string& name) {
  if (!is_inner_name(name)) {
    throw CheckpointError(
        fmt::format("{}: '{}' is not the name of a file in this directory", dir.string(), excerpt(name)));
  }
  std::error_code missing;
  const auto root = fs::canonical(dir, missing);
  const auto target = missing ? fs::path() : fs::canonical(dir / name, missing);
  if (missing) throw CheckpointError(fmt::format("{}: {}", (dir / name).string(), missing.message()));
  const auto snapshots = root.parent_path();
  const bool is_in_cache =
      snapshots.filename() == "snapshots" && is_within(target, snapshots.parent_path() / "blobs");
  if (!is_within(target, root) && !is_in_cache) {
    throw CheckpointError(fmt::format("{}: a link that leads out of the directory, which is not followed",
                                      (dir / name).string()));
  }
  return target;
}

std::string read_foreign_file(const fs::path& dir, const std::string& name) {
  const auto path = foreign_file(dir, name);
  try {
    auto content = read_file(path, Follow::nothing, kMostForeignBytes);
    if (const auto stray = stray_content(content))
      throw CheckpointError(fmt::format("{}: {}", (dir / name).string(), *stray));
    return content;
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

nlohmann::json parse_foreign_json(const fs::path& path, const std::string& text) {
  try {
    return parse_json(text);
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

std::map<std::string, std::string> read_small_files(const fs::path& dir) {
  auto files = read_others(dir);
  files.merge(read_named(dir, hub_file_names()));
  try {
    const auto read = [&](const std::string& name) { return read_foreign_file(dir, name); };
    add_chat_templates(files, chat_template_files(dir), read);
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("{}: {}", dir.string(), error.what()));
  }
  return files;
}

std::map<std::string, std::string> other_small_files(const fs::path& dir) { return read_others(dir); }

std::shared_ptr<const TensorSource> open_tensors_of_file(const fs::path& path) {
  if (has_extension(path, {".safetensors"})) return std::make_shared<SafetensorsFile>(path);
  return std::make_shared<PytorchFile>(path);
}

std::shared_ptr<const TensorSource> open_foreign_tensors(const fs::path& dir) {
  for (const auto view : kWeights) {
    const std::string name(view), index = name + std::string(kIndexEnding);
    if (has_foreign_file(dir, name)) return open_tensors_of_file(foreign_file(dir, name));
    if (has_foreign_file(dir, index)) return open_shards(dir, index);
  }
  const auto other = other_kind_of(dir);
  throw CheckpointError(
      other ? fmt::format("{}: {}", dir.string(), *other)
            : fmt::format("{}: no weights: there is no {}", dir.string(), fmt::join(kWeights, ", no ")));
}

}  // namespace zoo
