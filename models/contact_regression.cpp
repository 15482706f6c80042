#include "models/contact_regression.h"

#include <torch/types.h>

#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {

torch::Tensor corrected_maps(const torch::Tensor& maps) {
  const auto symmetric = maps + maps.transpose(1, 2);
  const auto rows = symmetric.sum(2, /*keepdim=*/true), columns = symmetric.sum(1, /*keepdim=*/true);
  return symmetric - rows * columns / symmetric.sum({1, 2}, /*keepdim=*/true);
}

ContactRegressionImpl::ContactRegressionImpl(int64_t n_maps)
    : weight(register_buffer("weight", torch::zeros({1, n_maps}, parameter_options()))),
      bias(register_buffer("bias", torch::zeros({1}, parameter_options()))) {}

torch::Tensor ContactRegressionImpl::forward(const torch::Tensor& maps) const {
  return (torch::tensordot(weight[0], corrected_maps(maps), {0}, {0}) + bias).sigmoid();
}

void ContactRegressionImpl::pretty_print(std::ostream& stream) const {
  stream << Description("ContactRegression").add("n_maps", weight.size(1));
}

}  // namespace zoo
