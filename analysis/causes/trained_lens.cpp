#include "analysis/causes/trained_lens.h"

#include <string>
#include <tuple>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/finite.h"
#include "io/files.h"
#include "io/safetensors.h"
#include "models/observation_scope.h"

namespace zoo {
namespace {

constexpr const char* kModelHash = "lens_of_model";  // in the metadata

/// By the names in a file.
TensorMap tensors_of(const TrainedLens& lens) {
  TensorMap tensors;
  for (size_t depth = 0; depth < lens.size(); ++depth) {
    tensors.emplace(fmt::format("depths.{}.weight", depth), lens[depth].weight);
    tensors.emplace(fmt::format("depths.{}.bias", depth), lens[depth].bias);
  }
  return tensors;
}

std::string hash_of_model(const Model& model) { return hash_of_tensors(named_tensors(model)); }

void require_shape(const SafetensorsFile& file, const TrainedLens& lens) {
  const auto name = "depths.0.bias";
  const auto shape = file.contains(name) ? file.shape(name) : std::vector<int64_t>();
  const auto width = lens.front().bias.sizes();
  if (file.n_tensors() == 2 * lens.size() && shape == width) return;
  throw CheckpointError(fmt::format(
      "{}: is the lens of a model with {} layers of width {}, and this model has {} of width {}: "
      "train a lens of this model",
      file.place(), file.n_tensors() / 2, shape.empty() ? 0 : shape.front(), lens.size(), width.front()));
}

}  // namespace

torch::Tensor LensMap::operator()(const torch::Tensor& x) const { return x + torch::linear(x, weight, bias); }

TrainedLens untrained_lens(const Model& model) {
  const auto stacks = stacks_of(model);
  if (stacks.empty() || stacks.back()->layers.empty())
    throw UsageError("this model has no stack of layers, so it has no lens: choose a transformer");
  const auto& stack = *stacks.back();
  const int64_t D = std::get<0>(stack.arguments()).d_model;
  const auto options = torch::TensorOptions(torch::kFloat).device(model.device());
  TrainedLens lens;
  for (size_t depth = 0; depth < stack.layers.size(); ++depth)
    lens.push_back({.weight = torch::zeros({D, D}, options), .bias = torch::zeros({D}, options)});
  return lens;
}

void save_lens(const std::filesystem::path& path, const TrainedLens& lens, const Model& model) {
  replace_file_atomically(path, [&](const std::filesystem::path& temporary) {
    save_safetensors(temporary, tensors_of(lens), {{kModelHash, hash_of_model(model)}});
  });
}

bool is_lens(const std::filesystem::path& path) {
  try {
    return SafetensorsFile(path).metadata().contains(kModelHash);
  } catch (const CheckpointError&) {
    return false;
  }
}

TrainedLens load_lens(const std::filesystem::path& path, const Model& model) {
  const SafetensorsFile file(path);
  const auto hash = file.metadata().find(kModelHash);
  if (hash == file.metadata().end())
    throw CheckpointError(fmt::format(
        "{}: is no trained lens: make one with `zoo lens RUN --train FILE --out LENS.safetensors`",
        path.string()));
  auto lens = untrained_lens(model);
  require_shape(file, lens);
  const auto tensors = tensors_of(lens);
  load_tensors(path, tensors);
  check_finite(path, tensors);
  if (hash->second != hash_of_model(model))
    throw CheckpointError(fmt::format(
        "{}: is the lens of a model with other weights: train a lens of this model", path.string()));
  return lens;
}

}  // namespace zoo
