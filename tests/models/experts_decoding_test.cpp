// Decoding a row reads the experts that work for it, and no others.

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/experts.h"
#include "layers/weights/weights.h"
#include "models/inference_scope.h"
#include "tests/support/page_watch.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

constexpr int64_t kExperts = 16, kActive = 2;

ModelConfig mixture() {
  auto config = small_config(Architecture::decoder);
  config.d_model = 256;
  config.n_layers = 1;
  config.d_ff = 768;  // an expert has many pages in every format
  config.activation = Activation::swiglu;
  config.experts = ExpertsConfig{.count = kExperts, .active = kActive};
  return config;
}

std::vector<torch::Tensor> stored_tensors(const Model& model) {
  auto tensors = model.parameters();
  const auto buffers = model.buffers();
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  return tensors;
}

/// The bytes of all tensors, but of the matrices of experts those of the ones that work.
int64_t active_bytes(const Model& model) {
  int64_t bytes = 0;
  for (const auto& tensor : stored_tensors(model)) bytes += static_cast<int64_t>(tensor.nbytes());
  for (const auto& experts : experts_of(model)) {
    for (const auto& map : {experts->gate, experts->up, experts->down})
      bytes -= map->matrix().bytes() / kExperts * (kExperts - kActive);
  }
  return bytes;
}

TEST(DecodingWithExperts, ReadsThoseThatWork) {
  for (const auto format : {WeightFormat::fp32, WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    const auto name = std::string(name_of(format));
    SCOPED_TRACE(name);
    const auto model = random_model(mixture());
    store_weights(*model, format);
    const InferenceScope scope(*model);
    DecodingState state;
    model->generative()->prefill({.input = {.ids = torch::tensor({{3, 4, 5}})}}, state);
    const auto tensors = stored_tensors(*model);
    int64_t touched = 0, watched = 0;
    {
      const PageWatch watch(tensors);
      model->generative()->forward({.ids = torch::tensor({{6}})}, state);
      touched = watch.touched_bytes();
      watched = watch.watched_bytes();
    }
    const auto active = static_cast<double>(active_bytes(*model));
    const double share = static_cast<double>(touched) / active;
    RecordProperty("read_of_active_" + name, std::to_string(share));
    EXPECT_LE(share, 1.1);
    EXPECT_GE(share, 0.8);  // what is read is seen, except for parts of pages
    EXPECT_GE(static_cast<double>(watched), 4 * active);
  }
}

}  // namespace
}  // namespace zoo::testing
