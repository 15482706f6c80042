// Directories in Hugging Face's form: config.json, and the list of files of weights.

#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "interop/foreign_files.h"
#include "interop/foreign_model.h"
#include "io/files.h"
#include "io/safetensors.h"
#include "tests/fuzz/targets.h"

namespace zoo::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTinyTokenizer = R"({"version": "1.0", "added_tokens": [], "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  "post_processor": null, "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<end>": 3}, "merges": ["a b"]}})";

/// The tensors of the first seed, a tiny GPT-2 with two layers, in two files.
void write_weights(const fs::path& dir) {
  TensorMap first, second;
  const auto add = [&](TensorMap& to, const std::string& name, std::vector<int64_t> shape) {
    to.emplace("transformer." + name, torch::ones(shape));
  };
  add(first, "wte.weight", {4, 8});
  add(first, "wpe.weight", {6, 8});
  for (const char* layer : {"h.0.", "h.1."}) {
    auto& to = layer[2] == '0' ? first : second;
    const auto linear = [&](const std::string& name, int64_t in, int64_t out) {
      add(to, layer + name + ".weight", {in, out});
      add(to, layer + name + ".bias", {out});
    };
    for (const char* norm : {"ln_1", "ln_2"}) {
      add(to, layer + std::string(norm) + ".weight", {8});
      add(to, layer + std::string(norm) + ".bias", {8});
    }
    linear("attn.c_attn", 8, 24);
    linear("attn.c_proj", 8, 8);
    linear("mlp.c_fc", 8, 10);
    linear("mlp.c_proj", 10, 8);
  }
  add(second, "ln_f.weight", {8});
  add(second, "ln_f.bias", {8});
  save_safetensors(dir / "model-1.safetensors", first);
  save_safetensors(dir / "model-2.safetensors", second);
  first.merge(second);
  save_safetensors(dir / "model.safetensors", first);
}

void read_all(const TensorSource& tensors) {
  for (const auto& name : tensors.names()) tensors.tensor(name).sum();
}

}  // namespace

std::vector<Target> hub_targets(const testing::TempDir& work, const fs::path& sources) {
  const auto whole = work / "foreign", sharded = work / "index";
  for (const auto& dir : {whole, sharded}) {
    fs::create_directories(dir);
    write_weights(dir);
    write_file_atomically(dir / "tokenizer.json", kTinyTokenizer);
  }
  fs::remove(sharded / "model.safetensors");
  fs::copy_file(sources / "tests/fuzz/seeds/foreign/gpt2.json", sharded / "config.json",
                fs::copy_options::overwrite_existing);
  std::vector<Target> targets;
  targets.push_back({"foreign", "config.json in Hugging Face's form, with weights and a tokenizer",
                     mutate_text, [whole](const std::string& input) {
                       write_file_atomically(whole / "config.json", input);
                       read_foreign_experiment(whole);
                       try {
                         read_all(*open_foreign(whole).tensors);
                       } catch (const CheckpointError&) {
                         // The weights are those of one seed.
                       }
                     }});
  targets.push_back({"index", "model.safetensors.index.json: where the tensors of a model are", mutate_text,
                     [sharded](const std::string& input) {
                       write_file_atomically(sharded / "model.safetensors.index.json", input);
                       read_all(*open_foreign(sharded).tensors);
                     }});
  return targets;
}

}  // namespace zoo::fuzz
