#pragma once
// Averages of weights: a moving one while a model is trained, and the mean of several files.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "io/safetensors.h"

namespace zoo {

/// Exponential moving average of the parameters of a model: after update number t = 0, 1, …
///   average ← d·average + (1 - d)·parameter, d = min(decay, (1 + t)/(10 + t)).
/// The warm-up of d keeps the first weights, which are noise, from staying in the average (as
/// tf.train.ExponentialMovingAverage with num_updates).
class MovingAverage {
 public:
  /// Starts at the parameters as they are, on their device. `decay` in (0, 1).
  MovingAverage(const torch::nn::Module& model, double decay);

  /// To be called after each step of the optimiser.
  void update();
  /// The averages by the names of the parameters. Shared.
  TensorMap weights() const;
  /// All there is to go on with: the averages, and how many updates they have seen. Shared: load by copying
  /// into it.
  TensorMap state() const;

 private:
  double decay_;
  std::vector<std::string> names_;
  std::vector<torch::Tensor> parameters_, averages_;
  torch::Tensor n_updates_;  // int64, on the CPU
};

/// While it lives, a model has other weights; then it has its own again, to the last bit. Nothing is copied:
/// what is written to either meanwhile stays written.
class SubstituteWeights {
 public:
  /// `weights` has a tensor for every parameter of `model`, with its shape, type and device.
  SubstituteWeights(torch::nn::Module& model, const TensorMap& weights);
  ~SubstituteWeights() { exchange(); }
  SubstituteWeights(const SubstituteWeights&) = delete;
  SubstituteWeights& operator=(const SubstituteWeights&) = delete;

 private:
  void exchange();

  struct Pair {
    torch::Tensor parameter, other;
  };
  std::vector<Pair> pairs_;
};

/// The mean of the weights of `model` and of those in `files`, which must be of the same architecture, by
/// name and on the model's device (Vaswani et al. 2017, section 6.1). Tensors that hold no real numbers are
/// the model's. Throws CheckpointError.
TensorMap mean_weights(const torch::nn::Module& model, const std::vector<std::filesystem::path>& files);

}  // namespace zoo
