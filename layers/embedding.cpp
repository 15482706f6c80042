#include "layers/embedding.h"

#include <torch/nn/init.h>
#include <torch/types.h>

#include "layers/kernels/linear.h"

namespace zoo {

TokenEmbeddingImpl::TokenEmbeddingImpl(const TokenEmbeddingOptions& options_) : options(options_) {
  weight = register_parameter("weight", torch::randn({options.vocab_size(), options.d_model()}));
}

torch::Tensor TokenEmbeddingImpl::forward(const torch::Tensor& ids) {
  const auto vectors = torch::embedding(weight, ids);
  return options.scale() == 1.0 ? vectors : vectors * options.scale();
}

OutputProjectionImpl::OutputProjectionImpl(const OutputProjectionOptions& options_) : options(options_) {
  weight = register_parameter("weight", torch::empty({options.vocab_size(), options.d_model()}));
  torch::nn::init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (options.bias()) bias = register_parameter("bias", torch::zeros({options.vocab_size()}));
}

OutputProjectionImpl::OutputProjectionImpl(const OutputProjectionOptions& options_,
                                           const TokenEmbedding& tied)
    : options(options_), tied_(tied.ptr()) {
  if (options.bias()) bias = register_parameter("bias", torch::zeros({options.vocab_size()}));
}

torch::Tensor OutputProjectionImpl::forward(const torch::Tensor& hidden) {
  const auto scaled = options.scale() == 1.0 ? hidden : hidden * options.scale();
  return linear(scaled, tied_ ? tied_->weight : weight, bias);
}

torch::Tensor log_probabilities(const torch::Tensor& logits) {
  return torch::log_softmax(logits, -1, torch::kFloat32);
}

}  // namespace zoo
