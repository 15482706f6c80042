// The tensors of files that other programs read: their places, forms and types.

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "checkpoints/import_run.h"
#include "checkpoints/run.h"
#include "interop/gguf/gguf_tensors.h"
#include "io/config/config_file.h"
#include "io/formats/gguf_writer.h"
#include "io/safetensors.h"
#include "models/families/families.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

/// What a GGUF file would have of these tensors of transformers.
std::shared_ptr<const TensorSource> in_gguf(const std::string& architecture, const TempDir& dir,
                                            const TensorMap& tensors, const nlohmann::json& config) {
  save_safetensors(dir.path() / "x.safetensors", tensors);
  return tensors_for_gguf(std::make_shared<SafetensorsFile>(dir.path() / "x.safetensors"),
                          *find_gguf_architecture(architecture), config, {});
}

// The rows are numbered. Of four rows of a head, llama.cpp turns the first and the second one together.
TEST(GgufTensors, HaveTheRowsOfEachHeadInPairs) {
  const TempDir dir;
  const auto rows = [](int64_t n) { return torch::arange(n, torch::kFloat).unsqueeze(1).repeat({1, 3}); };
  const std::string attention = "model.layers.0.self_attn.";
  const auto stored =
      in_gguf("llama", dir, {{attention + "q_proj.weight", rows(16)}, {attention + "k_proj.weight", rows(8)}},
              {{"num_attention_heads", 4}, {"num_key_value_heads", 2}});
  const auto order = [&](const std::string& name) {
    return stored->tensor(name).select(1, 0).to(torch::kInt64);
  };
  EXPECT_TRUE(torch::equal(order("blk.0.attn_k.weight"), torch::tensor({0, 2, 1, 3, 4, 6, 5, 7})));
  EXPECT_TRUE(torch::equal(order("blk.0.attn_q.weight"),
                           torch::tensor({0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15})));
}

// Gemma's norms multiply by 1 + weight, and llama.cpp's by what is stored.
TEST(GgufTensors, HaveTheWholeGainsOfGemma) {
  const TempDir dir;
  const auto gains = torch::tensor({-0.5, 0.0, 2.0});
  const auto stored = in_gguf("gemma3", dir, {{"model.norm.weight", gains}}, {{"num_attention_heads", 1}});
  EXPECT_TRUE(torch::equal(stored->tensor("output_norm.weight"), gains + 1));
}

/// What transformers would have of these tensors of a GGUF file.
std::shared_ptr<const TensorSource> from_gguf(const std::string& architecture, const TempDir& dir,
                                              const TensorMap& tensors, const nlohmann::json& config) {
  save_safetensors(dir.path() / "x.safetensors", tensors);
  write_gguf(dir.path() / "x.gguf", {{"general.architecture", architecture}},
             SafetensorsFile(dir.path() / "x.safetensors"),
             [](const std::string&) -> const BlockType& { return plain_block_type(torch::kFloat); });
  return tensors_of_gguf(std::make_shared<GgufFile>(dir.path() / "x.gguf"),
                         *find_gguf_architecture(architecture), config);
}

// The matrices of all experts are one tensor in a file, and tensors of their own in transformers.
TEST(GgufTensors, DivideExperts) {
  const TempDir dir;
  const auto matrices = torch::arange(3 * 2 * 5, torch::kFloat).view({3, 2, 5});
  const nlohmann::json config{{"tie_word_embeddings", false}};
  const auto foreign = from_gguf("olmoe", dir, {{"blk.7.ffn_up_exps.weight", matrices}}, config);
  EXPECT_EQ(foreign->names().size(), 3);
  for (int64_t e = 0; e < 3; ++e) {
    const auto name = "model.layers.7.mlp.experts." + std::to_string(e) + ".up_proj.weight";
    EXPECT_TRUE(torch::equal(foreign->tensor(name), matrices[e])) << name;
  }
  const auto flat = from_gguf("olmoe", dir, {{"blk.7.ffn_up_exps.weight", torch::zeros({3})}}, config);
  EXPECT_THAT(
      message_of<CheckpointError>([&] { flat->shape("model.layers.7.mlp.experts.0.up_proj.weight"); }),
      ::testing::HasSubstr("not one matrix for each expert"));
}

// The columns of gpt-oss's gates and of its other matrices take turns.
TEST(GgufTensors, JoinGatesWithWhatTheyAreTimes) {
  const TempDir dir;
  const nlohmann::json config{{"tie_word_embeddings", false}};
  const std::string gates = "blk.0.ffn_gate_exps.weight", others = "blk.0.ffn_up_exps.weight";
  const std::string joined = "model.layers.0.mlp.experts.gate_up_proj";
  const auto foreign =
      from_gguf("gpt-oss", dir, {{gates, torch::zeros({2, 3, 4})}, {others, torch::ones({2, 3, 4})}}, config);
  const auto found = foreign->tensor(joined);
  EXPECT_EQ(found.sizes(), (std::vector<int64_t>{2, 4, 6}));
  EXPECT_TRUE(torch::equal(found[1][2], torch::tensor({0.0, 1.0, 0.0, 1.0, 0.0, 1.0})));
  const auto problem = [&](const TensorMap& tensors) {
    return message_of<CheckpointError>([&] { from_gguf("gpt-oss", dir, tensors, config)->shape(joined); });
  };
  EXPECT_THAT(problem({{others, torch::ones({2, 3, 4})}}), ::testing::HasSubstr("without its other part"));
  EXPECT_THAT(problem({{gates, torch::ones({2, 3, 4})}, {others, torch::ones({2, 4, 4})}}),
              ::testing::HasSubstr("another shape than its other part"));
}

// ESMFold's files have numbers of tokens among the weights.
TEST(Exports, OfAnotherTypeKeepWholeNumbers) {
  const TempDir dir;
  const auto experiment = parse_complete_experiment(R"(
task: structure_prediction
model:
  architecture:
    type: esmfold
    passes: 2
    n_blocks: 1
    residue_width: 16
    pair_width: 8
    residue_heads: 2
    pair_heads: 2
    chunk_size: 128
    structure: {residue_width: 12, pair_width: 6, n_blocks: 2, n_heads: 2, head_width: 4, angle_width: 8}
  vocab_size: 33
  position: rotary
  d_model: 16
  n_layers: 2
  n_heads: 2
)",
                                                    "fold.yaml");
  torch::manual_seed(1);
  const auto model = initialized_model(experiment.model, {.head = HeadKind::none});
  write_run(dir / "fold", experiment, {}, *model);
  export_run(dir / "fold", dir / "out", {.type = ExportedType::fp16});
  const SafetensorsFile exported(dir / "out/model.safetensors");
  size_t n_whole = 0;
  for (const auto& name : exported.names()) {
    const bool is_whole = name.ends_with("af2_to_esm");
    EXPECT_EQ(exported.dtype(name), is_whole ? torch::kInt64 : torch::kHalf) << name;
    n_whole += is_whole ? 1 : 0;
  }
  EXPECT_EQ(n_whole, 1);
}

}  // namespace
}  // namespace zoo::testing
