#include "layers/weights/embedding.h"

#include <cmath>

#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/types.h>

#include "base/error.h"
#include "kernels/soft_cap.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

torch::Tensor normal_table(int64_t rows, int64_t width) {
  return drawn_tensor({rows, width}, [](torch::Tensor& table) { table.normal_(); });
}

}  // namespace

TokenEmbeddingImpl::TokenEmbeddingImpl(const TokenEmbeddingOptions& options_) : options(options_) {
  set_weight(normal_table(options.vocab_size(), options.d_model()));
}

torch::Tensor TokenEmbeddingImpl::forward(const torch::Tensor& ids) {
  if (ids.is_cpu() && ids.numel() > 0) check(ids.max().item<int64_t>());
  const auto vectors = matrix().rows(ids);
  return options.scale() == 1.0 ? vectors : vectors * options.scale();
}

void TokenEmbeddingImpl::check(int64_t highest) const {
  if (highest < options.vocab_size()) return;
  throw DataError(fmt::format(
      "the model has no vector for the token {}: it has model.vocab_size, {}, which is fewer than "
      "the tokenizer has: leave the token out of the text",
      highest, options.vocab_size()));
}

void TokenEmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << Description("TokenEmbedding")
                .add("vocab_size", options.vocab_size())
                .add("d_model", options.d_model())
                .add("scale", options.scale())
                .add("format", matrix().format());
}

void TokenEmbeddingImpl::visit_weights(const WeightVisitor& visit) const {
  visit({matrix().parameter(), 0, matrix().n_rows(), WeightUse::token_table});
}

torch::nn::Embedding make_table(int64_t rows, int64_t width) {
  torch::nn::Embedding table(torch::nn::EmbeddingOptions(rows, width)._weight(normal_table(rows, width)));
  table->options._weight({});  // a clone would share it
  return table;
}

void count_table(CostAccount& account, std::string name, int64_t rows, int64_t width, double n_tokens,
                 int64_t n_sides) {
  account.add({.name = std::move(name),
               .kind = "embedding",
               .shape = account.text("{} × {}", rows, width),
               .activation_bytes = bytes_of(n_tokens, width),
               .n_sides = n_sides});
}

OutputProjectionImpl::OutputProjectionImpl(const OutputProjectionOptions& options_,
                                           const TokenEmbedding& tied)
    : options(options_), tied_(tied ? tied.ptr() : nullptr) {
  if (!tied_) {
    set_weight(drawn_tensor({options.vocab_size(), options.d_model()},
                            [](torch::Tensor& w) { torch::nn::init::kaiming_uniform_(w, std::sqrt(5.0)); }));
  }
  if (options.bias())
    bias = register_parameter("bias", torch::zeros({options.vocab_size()}, parameter_options()));
}

torch::Tensor OutputProjectionImpl::forward(const torch::Tensor& hidden) {
  const auto scaled = options.scale() == 1.0 ? hidden : hidden * options.scale();
  return soft_capped((tied_ ? tied_->matrix() : matrix()).product(scaled, bias), options.softcap());
}

void OutputProjectionImpl::pretty_print(std::ostream& stream) const {
  stream << Description("OutputProjection")
                .add("d_model", options.d_model())
                .add("vocab_size", options.vocab_size())
                .add("bias", options.bias())
                .add("scale", options.scale())
                .add("softcap", options.softcap())
                .add("tied", tied_ != nullptr)
                .add("format", (tied_ ? tied_->matrix() : matrix()).format());
}

void OutputProjectionImpl::visit_weights(const WeightVisitor& visit) const {
  if (!tied_) visit({matrix().parameter(), 0, matrix().n_rows(), WeightUse::lm_head});
}

torch::Tensor log_probabilities(const torch::Tensor& logits) {
  return torch::log_softmax(logits, -1, torch::kFloat32);
}

}  // namespace zoo
