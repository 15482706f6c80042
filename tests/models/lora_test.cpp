// Adapters of models: what they add to which rows of which matrices.

#include "models/lora.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "models/trained_adapters.h"
#include "tests/support/small_models.h"

namespace zoo {
namespace {

using namespace testing;  // NOLINT: the helpers of these tests

// A matrix of queries, keys and values has several adapters, each for the rows of its part.
TEST(Adapters, TellTheRowsThatTheyChange) {
  for (const auto projection : {Projection::separate, Projection::fused}) {
    SCOPED_TRACE(name_of(projection));
    auto config = small_config(Architecture::decoder);
    config.projection = projection;
    config.n_kv_heads = 2;
    const auto model = random_model(config);
    const LoraConfig lora{.rank = 3, .alpha = 12, .targets = {"*.q", "*.k", "*.v", "*.down"}};
    add_adapters(*model, lora, HeadKind::language_modeling);
    const torch::NoGradGuard no_grad;
    std::map<std::string, torch::Tensor> expected;
    for (const auto& item : model->named_parameters()) {
      if (item.key().find("lora_b") != std::string::npos) item.value().normal_();
      if (item.key().ends_with(".weight")) expected[item.key()] = item.value().clone();
    }
    const auto adapters = adapters_of(*model, lora);
    ASSERT_EQ(adapters.size(), 8u);
    for (const auto& adapter : adapters) {
      EXPECT_DOUBLE_EQ(adapter.scale, 4);
      expected.at(adapter.matrix)
          .narrow(0, adapter.first_row, adapter.b.size(0))
          .add_(adapter.b.matmul(adapter.a), adapter.scale);
    }
    EXPECT_EQ(merge_adapters(*model), 8);
    for (const auto& item : model->named_parameters()) {
      EXPECT_TRUE(item.value().requires_grad()) << item.key();
      if (expected.contains(item.key())) {
        EXPECT_TRUE(close(item.value(), expected[item.key()])) << item.key();
      }
    }
    EXPECT_TRUE(adapters_of(*model, lora).empty());
  }
}

}  // namespace
}  // namespace zoo
