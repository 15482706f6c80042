#include "layers/weights/linear.h"

#include <cmath>

#include <torch/nn/init.h>
#include <torch/types.h>

#include "layers/modules/construction.h"
#include "layers/modules/description.h"

namespace zoo {

LinearImpl::LinearImpl(const LinearOptions& options_) : options(options_) {
  TORCH_CHECK(!options.parts().empty(), "a linear map has at least one part");
  set_weight(drawn_tensor({n_outputs(), n_inputs()},
                          [](torch::Tensor& w) { torch::nn::init::kaiming_uniform_(w, std::sqrt(5.0)); }));
  if (!options.bias()) return;
  const double bound = n_inputs() > 0 ? 1.0 / std::sqrt(static_cast<double>(n_inputs())) : 0.0;
  bias = register_parameter(
      "bias", drawn_tensor({n_outputs()}, [&](torch::Tensor& b) { b.uniform_(-bound, bound); }));
}

int64_t LinearImpl::rows_before(size_t part) const {
  int64_t rows = 0;
  for (size_t i = 0; i < part; ++i) rows += options.parts()[i].n_outputs;
  return rows;
}

int64_t LinearImpl::n_outputs() const { return rows_before(options.parts().size()); }

torch::Tensor LinearImpl::forward_some(const torch::Tensor& x, const LinearParts& parts) const {
  const int64_t begin = rows_before(parts.first), end = rows_before(parts.first + parts.count);
  return matrix().product(x, bias, begin, end - begin);
}

std::vector<torch::Tensor> LinearImpl::forward_parts(const torch::Tensor& x) const {
  std::vector<int64_t> sizes;
  for (const auto& part : options.parts()) sizes.push_back(part.n_outputs);
  return forward(x).split_with_sizes(sizes, -1);
}

std::shared_ptr<torch::nn::Module> LinearImpl::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<LinearImpl>(options);
}

void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << Description("Linear")
                .add("n_inputs", n_inputs())
                .add("n_outputs", n_outputs())
                .add("bias", options.bias())
                .add("format", matrix().format());
}

void LinearImpl::visit_weights(const WeightVisitor& visit) const {
  for (size_t i = 0; i < options.parts().size(); ++i) {
    visit({.parameter = matrix().parameter(),
           .first = rows_before(i),
           .count = options.parts()[i].n_outputs,
           .use = options.parts()[i].use});
  }
}

}  // namespace zoo
