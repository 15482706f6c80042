// The role of each parameter in its model.

#include "optimizers/parameters.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "models/embedders/resnet.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

/// The role by name only, independently of the modules.
ParameterRole role_by_name(const Parameter& parameter) {
  const auto& name = parameter.name;
  const auto has = [&](const char* part) { return name.find(part) != name.npos; };
  if (parameter.tensor.dim() < 2) return ParameterRole::vector;
  if (has("_embedding.") || has("position_bias.") || has("relative_")) return ParameterRole::embedding;
  if (has("head.output.") || has("head.classifier.")) return ParameterRole::other_matrix;
  return ParameterRole::hidden_matrix;
}

void expect_roles(const ModelConfig& config, const ModelPurpose& purpose) {
  SCOPED_TRACE(described(config));
  const auto model = initialized_model(config, purpose);
  const auto parameters = parameters_of(*model);
  EXPECT_EQ(parameters.size(), model->parameters().size());
  int64_t hidden = 0;
  for (const auto& parameter : parameters) {
    EXPECT_EQ(parameter.role, role_by_name(parameter)) << parameter.name;
    hidden += parameter.role == ParameterRole::hidden_matrix;
  }
  EXPECT_GE(hidden, 2 * 4);  // each of two layers: at least two matrices of attention, two of feed-forward
}

TEST(Parameters, HaveTheRolesThatTheirNamesTell) {
  for (const auto architecture : kArchitectures) {
    for (const auto& config : varied_configs(architecture)) expect_roles(config, purpose_of(architecture));
  }
  for (const auto architecture : {Architecture::encoder, Architecture::decoder}) {
    expect_roles(small_config(architecture),
                 {.head = HeadKind::classification, .vocab_size = kVocabulary, .n_classes = 3});
  }
}

TEST(Parameters, OfConvolutionsAreHiddenMatrices) {
  ModelConfig config;
  config.architecture = Selection("resnet", ResnetConfig{.depth = ResnetDepth::layers_18, .width = 2});
  const auto model = initialized_model(
      config,
      {.head = HeadKind::classification, .n_classes = 2, .image = {.channels = 1, .height = 8, .width = 8}});
  for (const auto& parameter : parameters_of(*model))
    EXPECT_EQ(parameter.role, role_by_name(parameter)) << parameter.name;
}

TEST(Parameters, OfFusedLayersTellTheirMatrices) {
  auto config = small_config(Architecture::decoder);
  config.n_kv_heads = 2;
  config.projection = Projection::fused;
  config.activation = Activation::swiglu;
  config.gate = GateProjection::fused;
  int n_stacked = 0;
  for (const auto& parameter : parameters_of(*random_model(config))) {
    const bool is_qkv = parameter.name.ends_with("qkv.weight"),
               is_gate = parameter.name.ends_with("gate_up.weight");
    n_stacked += parameter.stacked_rows.empty() ? 0 : 1;
    const std::vector<int64_t> expected = is_qkv    ? std::vector<int64_t>{24, 12, 12}
                                          : is_gate ? std::vector<int64_t>{40, 40}
                                                    : std::vector<int64_t>();
    EXPECT_EQ(parameter.stacked_rows, expected) << parameter.name;
  }
  EXPECT_EQ(n_stacked, 4) << "two in each of two layers";
}

TEST(Parameters, ThatAreFrozenAreLeftOut) {
  const auto model = random_model(small_config(Architecture::decoder));
  const auto all = parameters_of(*model).size();
  model->named_parameters()["token_embedding.weight"].set_requires_grad(false);
  const auto rest = parameters_of(*model);
  EXPECT_EQ(rest.size(), all - 1);
  for (const auto& parameter : rest) EXPECT_NE(parameter.name, "token_embedding.weight");
}

}  // namespace
}  // namespace zoo::testing
