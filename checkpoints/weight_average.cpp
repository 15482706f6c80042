#include "checkpoints/weight_average.h"

#include <algorithm>
#include <set>

#include <torch/utils.h>

#include "checkpoints/base_weights.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/finite.h"

namespace zoo {

namespace {

/// The tensors of a model that are averaged; frozen ones do not change. They are those of the modules
/// themselves, whose data can be exchanged.
TensorMap averaged_tensors(const torch::nn::Module& model) {
  TensorMap tensors;
  for (const auto& item : model.named_parameters()) {
    if (item.value().requires_grad()) tensors.emplace(item.key(), item.value());
  }
  for (const auto& item : model.named_buffers()) {
    if (item.value().is_floating_point()) tensors.emplace(item.key(), item.value());
  }
  return tensors;
}

}  // namespace

MovingAverage::MovingAverage(const torch::nn::Module& model, double decay)
    : decay_(decay), n_updates_(torch::zeros({}, torch::kInt64)) {
  for (const auto& [name, tensor] : averaged_tensors(model)) {
    names_.push_back(name);
    parameters_.push_back(tensor);
    averages_.push_back(tensor.detach().clone());
  }
}

void MovingAverage::update() {
  const torch::NoGradGuard no_grad;
  const auto t = static_cast<double>(n_updates_.item<int64_t>());
  const double decay = std::min(decay_, (1 + t) / (10 + t));
  at::_foreach_lerp_(averages_, parameters_, 1 - decay);
  n_updates_.add_(1);
}

TensorMap MovingAverage::weights() const {
  TensorMap weights;
  for (size_t i = 0; i < names_.size(); ++i) weights.emplace(names_[i], averages_[i]);
  return weights;
}

TensorMap MovingAverage::state() const {
  auto state = weights();
  state.emplace("n_updates", n_updates_);
  return state;
}

SubstituteWeights::SubstituteWeights(torch::nn::Module& model, const TensorMap& weights) {
  for (const auto& [name, tensor] : averaged_tensors(model)) pairs_.push_back({tensor, weights.at(name)});
  exchange();
}

void SubstituteWeights::exchange() {
  for (auto& [parameter, other] : pairs_) {
    const auto data = parameter.tensor_data();
    parameter.set_data(other);
    other = data;
  }
}

TensorMap mean_weights(const torch::nn::Module& model, const std::vector<std::filesystem::path>& files) {
  const torch::NoGradGuard no_grad;
  const auto own = stored_tensors(model);
  TensorMap means, loaded;
  std::set<std::string> equal;  // in all files so far: their mean must not differ by rounding
  for (const auto& [name, tensor] : own) {
    means.emplace(name, tensor.clone());
    loaded.emplace(name, torch::empty_like(tensor));
    equal.insert(name);
  }
  for (const auto& file : files) {
    load_tensors(file, loaded);
    TensorMap weights;
    for (const auto& item : model.named_parameters()) {
      if (loaded.contains(item.key())) weights.emplace(item.key(), loaded.at(item.key()));
    }
    check_finite(file, weights);
    for (auto& [name, mean] : means) {
      if (!torch::equal(own.at(name), loaded.at(name))) equal.erase(name);
      if (mean.is_floating_point()) mean.add_(loaded.at(name));
    }
  }
  for (auto& [name, mean] : means) {
    if (!mean.is_floating_point()) continue;
    if (equal.contains(name)) {
      mean.copy_(own.at(name));
    } else {
      mean.div_(static_cast<double>(files.size() + 1));
    }
  }
  return means;
}

}  // namespace zoo
