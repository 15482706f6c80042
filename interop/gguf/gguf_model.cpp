#include "interop/gguf/gguf_model.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"
#include "interop/gguf/gguf_architectures.h"
#include "interop/gguf/gguf_config.h"
#include "interop/gguf/gguf_rotary.h"
#include "interop/gguf/gguf_tensors.h"
#include "io/formats/gguf_file.h"
#include "io/formats/gguf_keys.h"
#include "io/json_document.h"
#include "text/gguf/gguf_tokenizer.h"

namespace zoo {
namespace {

const GgufArchitecture& architecture_of(const GgufKeys& keys) {
  if (const int64_t n = keys.integer("split.count", 1); n > 1)
    keys.fail(
        "split.count",
        fmt::format("one of {} files of a model: llama-gguf-split --merge FIRST NEW makes one of them", n));
  if (const auto* found = find_gguf_architecture(keys)) return *found;
  const auto name = keys.text("general.architecture");
  std::set<std::string> known;
  for (const auto& one : gguf_architectures()) known.insert(one.name);
  keys.fail("general.architecture",
            fmt::format("'{}' is not supported; {} are", excerpt(name), fmt::join(known, ", ")));
}

/// Whether the output has the numbers of the embeddings. Reads them until they differ.
bool is_stored_twice(const GgufFile& file) {
  const char *const embeddings = "token_embd.weight", *const output = "output.weight";
  const auto shape = file.contains(embeddings) ? file.shape(embeddings) : std::vector<int64_t>();
  if (shape.size() != 2 || shape != file.shape(output) ||
      file.stored_as(embeddings).id != file.stored_as(output).id)
    return false;
  constexpr int64_t step = 4096;  // rows
  for (int64_t first = 0; first < shape[0]; first += step) {
    auto one = torch::empty({std::min(step, shape[0] - first), shape[1]});
    auto other = torch::empty_like(one);
    file.read_rows_into(one, embeddings, first);
    file.read_rows_into(other, output, first);
    if (!one.equal(other)) return false;
  }
  return true;
}

bool is_tied(const GgufFile& file, const GgufArchitecture& architecture) {
  if (!file.contains("output.weight")) return true;
  switch (architecture.tied_output) {
    case GgufTiedOutput::absent:
      return false;
    case GgufTiedOutput::often_there:
      // Copies in different formats are taken for equal.
      return (file.contains("token_embd.weight") &&
              file.shape("token_embd.weight") == file.shape("output.weight") &&
              file.stored_as("token_embd.weight").id != file.stored_as("output.weight").id) ||
             is_stored_twice(file);
    case GgufTiedOutput::always_there:
      return is_stored_twice(file);
  }
  return false;
}

GgufTensorFacts facts_of(const GgufFile& file, const GgufArchitecture& architecture) {
  GgufTensorFacts facts{.is_tied = is_tied(file, architecture)};
  for (const auto& name : file.names()) {
    facts.names.insert(name);
    if (!is_rotary_tensor(name)) continue;
    constexpr int64_t most = 1 << 16;  // far more than a head is wide
    const auto shape = file.shape(name);
    if (shape.size() != 1 || shape.front() > most)
      throw CheckpointError(fmt::format("{}: {}: not the numbers of one head", file.place(), name));
    facts.rotary.emplace(name, file.tensor(name).to(torch::kFloat));
  }
  return facts;
}

nlohmann::json config_of(const GgufFile& file, const GgufKeys& keys, const GgufArchitecture& architecture) {
  // Building a model of many layers takes time, and a file can ask for any number.
  const auto n_layers = architecture.name + ".block_count";
  if (keys.integer(n_layers) > std::ssize(file.names()))
    keys.fail(n_layers, "it has fewer tensors than layers");
  return config_of_gguf(architecture, keys, facts_of(file, architecture));
}

/// config.json, and where the file has another pooling than the mean, the files that say so in
/// sentence-transformers' form.
std::map<std::string, std::string> config_files(const GgufKeys& keys, const GgufArchitecture& architecture,
                                                const nlohmann::json& config) {
  std::map<std::string, std::string> files{{"config.json", json_text(config)}};
  const auto key = architecture.name + ".pooling_type";
  const int64_t pooling = keys.has(key) ? keys.integer(key) : 0;
  if (architecture.body != GgufBody::encoder || pooling < 2) return files;
  const auto modules =
      nlohmann::json::array({{{"path", ""}, {"type", "sentence_transformers.models.Transformer"}},
                             {{"path", "1_Pooling"}, {"type", "sentence_transformers.models.Pooling"}}});
  files.emplace("modules.json", json_text(modules));
  const char* const mode = pooling == 2 ? "cls" : "lasttoken";
  files.emplace("1_Pooling/config.json",
                json_text(nlohmann::json{{"pooling_mode", mode}, {"include_prompt", true}}));
  return files;
}

}  // namespace

GgufModel open_gguf(const std::filesystem::path& path) {
  const auto file = std::make_shared<GgufFile>(path);
  const GgufKeys keys(path.string(), file->metadata());
  const auto& architecture = architecture_of(keys);
  const auto config = config_of(*file, keys, architecture);
  GgufModel model{.files = tokenizer_files(keys), .tensors = tensors_of_gguf(file, architecture, config)};
  model.files.merge(config_files(keys, architecture, config));
  return model;
}

std::map<std::string, std::string> gguf_config(const std::filesystem::path& path) {
  const GgufFile file(path);
  const GgufKeys keys(path.string(), file.metadata());
  const auto& architecture = architecture_of(keys);
  return config_files(keys, architecture, config_of(file, keys, architecture));
}

std::map<std::string, std::string> gguf_tokenizer(const std::filesystem::path& path) {
  const GgufFile file(path);
  return tokenizer_files(GgufKeys(path.string(), file.metadata()));
}

}  // namespace zoo
