#include "checkpoints/base_weights.h"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/finite.h"
#include "io/files.h"
#include "io/sha256.h"
#include "models/lora.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHash = "sha256";  // of the base itself
constexpr const char* kBase = "base";    // in weights: the hash of the base to which they belong

std::string metadata_of(const fs::path& path, const char* key) {
  const SafetensorsFile file(path);
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

}  // namespace

TensorMap base_tensors(const torch::nn::Module& model) {
  TensorMap tensors;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) tensors.emplace(item.key(), item.value().detach());
  }
  return tensors;
}

TensorMap stored_tensors(const torch::nn::Module& model) {
  auto tensors = named_tensors(model);
  if (!has_adapters(model)) return tensors;
  for (const auto& [name, tensor] : base_tensors(model)) tensors.erase(name);
  return tensors;
}

std::string weights_name(const torch::nn::Module& model) {
  return has_adapters(model) ? "adapter.safetensors" : "model.safetensors";
}

std::string hash_of_tensors(const TensorMap& tensors) {
  std::string all;
  for (const auto& [name, tensor] : tensors) {
    const auto values = tensor.detach().cpu().contiguous();
    const std::string_view bytes(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
    all += fmt::format("{}\n{}\n{}\n", sha256(name), fmt::join(values.sizes(), " "), sha256(bytes));
  }
  return sha256(all);
}

std::string save_base(const fs::path& run_dir, const torch::nn::Module& model) {
  const auto tensors = base_tensors(model);
  const auto hash = hash_of_tensors(tensors);
  replace_file_atomically(run_dir / kBaseFile, [&](const fs::path& temporary) {
    save_safetensors(temporary, tensors, {{kHash, hash}});
  });
  return hash;
}

std::string load_base(const fs::path& run_dir, const torch::nn::Module& model, BaseCheck check) {
  const auto path = run_dir / kBaseFile;
  const auto tensors = base_tensors(model);
  load_tensors(path, tensors);
  check_finite(path, tensors);
  const auto hash = metadata_of(path, kHash);
  if (check == BaseCheck::hash && hash_of_tensors(tensors) != hash) {
    throw CheckpointError(
        fmt::format("{}: damaged: its tensors do not have the hash that it names", path.string()));
  }
  return hash;
}

std::string hash_of_base(const SafetensorsFile& base) {
  const auto found = base.metadata().find(kHash);
  return found == base.metadata().end() ? "" : found->second;
}

StringMap belongs_to(const std::string& base) {
  return base.empty() ? StringMap() : StringMap{{kBase, base}};
}

void check_belongs_to(const fs::path& weights, const std::string& base) {
  if (metadata_of(weights, kBase) == base) return;
  throw CheckpointError(
      fmt::format("{}: belongs to another {} than the one in this run", weights.string(), kBaseFile));
}

}  // namespace zoo
