#include "interop/foreign_kinds.h"

#include <array>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "io/file_kind.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct OtherKind {
  std::string_view name, what;  // of a file that the directory has
};

constexpr auto kKinds = std::to_array<OtherKind>({
    {"model_index.json",
     "a pipeline of the library diffusers, which has several models: none of its kinds is here"},
    {"tf_model.h5",
     "only weights of TensorFlow; transformers 4 converts them: "
     "AutoModel.from_pretrained(DIR, from_tf=True).save_pretrained(NEW)"},
    {"model.ckpt.index",
     "only weights of TensorFlow 1; a script of transformers 4 converts them: "
     "convert_bert_original_tf_checkpoint_to_pytorch.py"},
    {"bert_model.ckpt.index",
     "only weights of TensorFlow 1, Google's own; a script of transformers 4 converts them: "
     "convert_bert_original_tf_checkpoint_to_pytorch.py"},
    {"openvino_model.xml", "only a model for OpenVINO, which is not read: take the weights in safetensors"},
    {"flax_model.msgpack",
     "only weights of Flax; transformers 4 converts them: "
     "AutoModel.from_pretrained(DIR, from_flax=True).save_pretrained(NEW)"},
    {"params.json",
     "a model in the form of its authors, not of transformers: take the directory with config.json"},
});

/// A file in `dir` or in its folder onnx whose name ends so.
std::optional<std::string> find_file(const fs::path& dir, std::string_view ending) {
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    if (has_extension(at->path(), {ending})) return at->path().filename().string();
  }
  return std::nullopt;
}

/// The first folder of `dir` that holds a model: a checkpoint of the Trainer, a snapshot of the Hub's cache.
/// One with weights, if there is one: other modules of sentence-transformers have a config.json alone.
std::optional<std::string> find_model_below(const fs::path& dir) {
  std::optional<std::string> first;
  bool has_weights = false;
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    const auto& path = at->path();
    if (!has_file(path / "config.json")) continue;
    const bool is_whole = find_file(path, ".safetensors") || find_file(path, ".bin");
    const auto name = path.filename().string();
    const bool is_better = !first || is_whole > has_weights || (is_whole == has_weights && name < *first);
    if (!is_better) continue;
    first = name;
    has_weights = is_whole;
  }
  return first;
}

/// Where transformers' own names are missing, a file of weights with a name that is like them.
std::optional<std::string> advice_on_weights(const fs::path& dir) {
  const auto rename = [](const std::string& from, std::string_view to) {
    return fmt::format("the weights are in {}: rename the file to {}", from, to);
  };
  if (const auto name = find_file(dir, ".safetensors")) return rename(*name, "model.safetensors");
  if (const auto name = find_file(dir, ".bin"); name && name->starts_with("pytorch_model"))
    return rename(*name, "pytorch_model.bin");
  return std::nullopt;
}

}  // namespace

std::optional<std::string> other_kind_of(const fs::path& dir) {
  for (const auto& kind : kKinds) {
    if (has_file(dir / kind.name)) return fmt::format("{}: {}", kind.name, kind.what);
  }
  if (const auto name = find_file(dir, ".gguf"))
    return fmt::format("it has a GGUF file: name the file {}", *name);
  for (const auto& folder : {dir, dir / "onnx"}) {
    if (find_file(folder, ".onnx"))
      return "only a model for ONNX, which is not read: take the weights in safetensors";
  }
  if (const auto snapshot = find_model_below(dir / "snapshots"))
    return fmt::format("a directory of the Hub's cache: name {}", (dir / "snapshots" / *snapshot).string());
  if (const auto folder = find_model_below(dir))
    return fmt::format("it has models in its folders: name {}", (dir / *folder).string());
  if (has_file(dir / "config.json")) return advice_on_weights(dir);
  if (find_file(dir, ".safetensors") || find_file(dir, ".bin"))
    return "weights without the config.json that says of what model they are";
  return std::nullopt;
}

}  // namespace zoo
