#pragma once
// Steps behind a sum that are made linear: each keeps the factor that it has for the whole sum, so that it
// can be applied to the parts.

#include <functional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "layers/weights/norm.h"

namespace zoo {

/// The parts of a sum of vectors, in double on the CPU. Each part is (P, D).
class Parts {
 public:
  void add(std::string name, const torch::Tensor& part);
  /// Adds to the part of this name, which is made if there is none.
  void add_to(const std::string& name, const torch::Tensor& part);
  torch::Tensor sum() const;
  /// Replaces every part by map(part).
  void transform(const std::function<torch::Tensor(const torch::Tensor&)>& map);

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<torch::Tensor>& parts() const { return parts_; }

 private:
  std::vector<std::string> names_;
  std::vector<torch::Tensor> parts_;
};

/// A norm with the scale that it has for `whole`, (P, D).
class FrozenNorm {
 public:
  FrozenNorm(const NormImpl& norm, const torch::Tensor& whole);
  /// The norm of a part without the bias.
  torch::Tensor operator()(const torch::Tensor& part) const;
  /// (D); undefined: there is none.
  const torch::Tensor& bias() const { return bias_; }

 private:
  bool centred_;
  torch::Tensor gain_, scale_, bias_;
};

/// Sends parts through a norm; its bias goes to the part "norms.bias".
void normalise(Parts& parts, const NormImpl& norm);

}  // namespace zoo
