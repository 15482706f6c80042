#include "models/initialize.h"

#include <cmath>

#include <torch/nn/init.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/weights/linear.h"
#include "layers/weights/weights.h"

namespace zoo {
namespace {

using torch::nn::init::normal_;
using torch::nn::init::uniform_;
using torch::nn::init::xavier_uniform_;

void visit_weights(const torch::nn::Module& model, const WeightVisitor& visit) {
  for (const auto& module : model.modules()) {
    if (const auto* owner = dynamic_cast<const WeightOwner*>(module.get())) owner->visit_weights(visit);
  }
}

/// Visits each parameter once. Matrices that are stacked in one parameter count as one, with the use of the
/// first. Distance tables and convolutions are left out: their modules have already initialised them.
void visit_parameters(const torch::nn::Module& model, const WeightVisitor& visit) {
  visit_weights(model, [&](const Weight& weight) {
    const bool is_ready = weight.use == WeightUse::distance_table || weight.use == WeightUse::convolution;
    if (weight.first == 0 && !is_ready) visit(weight);
  });
}

double inverse_root(int64_t n) { return 1.0 / std::sqrt(static_cast<double>(n)); }

bool is_table(WeightUse use) {
  return use == WeightUse::table || use == WeightUse::token_table || use == WeightUse::object_table;
}

// Every parameter is drawn once; parameters with another distribution are then drawn again. This order gives
// the same weights for a seed in all versions of this program.

void initialize_normal(const torch::nn::Module& model, const ModelConfig& config) {
  const double std = config.init_std;
  const double n_sub_layers = 2.0 * static_cast<double>(config.n_layers);
  const double output_std = config.init_residual_scaling ? std / std::sqrt(n_sub_layers) : std;
  visit_parameters(model, [&](const Weight& weight) { normal_(weight.parameter, 0, std); });
  visit_weights(model, [&](const Weight& weight) {
    if (weight.use == WeightUse::residual_output) normal_(weight.rows(), 0, output_std);
    if (weight.use == WeightUse::distance_table) normal_(weight.rows(), 0, std);
  });
}

void initialize_xavier(const torch::nn::Module& model, const ModelConfig& config) {
  const double embedding_std = inverse_root(config.d_model);
  visit_parameters(model, [&](const Weight& weight) {
    is_table(weight.use) ? normal_(weight.parameter, 0, embedding_std) : xavier_uniform_(weight.parameter);
  });
  // Each stacked matrix is drawn again with its own fan-out.
  visit_weights(model, [](const Weight& weight) {
    if (weight.count < weight.parameter.size(0)) xavier_uniform_(weight.rows());
  });
}

// As DETR.query_embed and PositionEmbeddingLearned in the authors' code. With queries that are nearly equal,
// all of them learn to find the same object.
void initialize_detr(const torch::nn::Module& model, const ModelConfig& config) {
  initialize_xavier(model, config);
  visit_weights(model, [](const Weight& weight) {
    if (weight.use == WeightUse::object_table) normal_(weight.rows(), 0, 1);
    if (weight.use == WeightUse::table) uniform_(weight.rows(), 0, 1);
  });
}

// As T5PreTrainedModel._init_weights in transformers, factor 1.
void initialize_t5(const torch::nn::Module& model, const ModelConfig& config) {
  const double by_d_model = inverse_root(config.d_model);
  const double query_std = by_d_model * inverse_root(config.head_width());
  visit_parameters(model, [&](const Weight& weight) {
    const bool of_tokens = weight.use == WeightUse::token_table || weight.use == WeightUse::lm_head;
    normal_(weight.parameter, 0, of_tokens ? 1.0 : by_d_model);
  });
  visit_weights(model, [&](const Weight& weight) {
    if (weight.use == WeightUse::query) normal_(weight.rows(), 0, query_std);
    // The fan-in is H·Dh in attention and F in a feed-forward.
    if (weight.use == WeightUse::residual_output)
      normal_(weight.rows(), 0, inverse_root(weight.parameter.size(1)));
  });
}

}  // namespace

void initialize(torch::nn::Module& model, const ModelConfig& config) {
  const torch::NoGradGuard no_grad;
  switch (config.init) {
    case Initialization::normal:
      initialize_normal(model, config);
      break;
    case Initialization::xavier_uniform:
      initialize_xavier(model, config);
      break;
    case Initialization::detr:
      initialize_detr(model, config);
      break;
    case Initialization::t5:
      initialize_t5(model, config);
      break;
  }
  visit_weights(model, [](const Weight& weight) {
    if (weight.use == WeightUse::modulation) weight.rows().zero_();
  });
  for (const auto& module : model.modules()) {
    if (auto* linear = module->as<LinearImpl>(); linear && linear->bias.defined()) linear->bias.zero_();
  }
}

}  // namespace zoo
