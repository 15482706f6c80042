#pragma once
// Averages of weights: a moving average during training, and the mean of several files.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "io/safetensors.h"

namespace zoo {

/// Exponential moving average of the trained parameters of a model and of its floating-point buffers, such as
/// the running means of batch norm, which belong to the parameters: after update number t = 0, 1, …
///   average ← d·average + (1 - d)·parameter, d = min(decay, (1 + t)/(10 + t)).
/// The warm-up of d removes the first weights, which are noise, from the average (as in
/// tf.train.ExponentialMovingAverage with num_updates).
class MovingAverage {
 public:
  /// Starts with the current parameters, on their device. `decay` is in (0, 1).
  MovingAverage(const torch::nn::Module& model, double decay);

  /// To be called after each step of the optimiser.
  void update();
  /// The averages by the names of the parameters and buffers. The tensors are shared.
  TensorMap weights() const;
  /// The state to save: the averages and the number of updates. The tensors are shared: load a state by
  /// copying into them.
  TensorMap state() const;

 private:
  double decay_;
  std::vector<std::string> names_;
  std::vector<torch::Tensor> parameters_, averages_;
  torch::Tensor n_updates_;  // int64, on the CPU
};

/// While it lives, a model has other weights. Afterwards it has its own again, to the last bit. Nothing is
/// copied, so changes of either weights meanwhile persist.
class SubstituteWeights {
 public:
  /// `weights` has a tensor for every trained parameter and floating-point buffer of `model`, with the same
  /// shape, type and device.
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

/// The mean of the weights of `model` and the weights in `files`, by name, on the model's device (Vaswani et
/// al. 2017, section 6.1). All must have the same architecture. Tensors that are not floating-point are taken
/// from the model; so are those that are equal in all. Throws CheckpointError.
TensorMap mean_weights(const torch::nn::Module& model, const std::vector<std::filesystem::path>& files);

}  // namespace zoo
