#include "interop/families/esmfold.h"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "interop/families/common.h"
#include "models/families/folding/esmfold.h"

namespace zoo {
namespace {

/// ESM-2's vocabulary, which every published model has.
const nlohmann::json& esm_vocabulary() {
  static const nlohmann::json list = {"<cls>", "<pad>", "<eos>", "<unk>", "L",        "A",     "G", "V", "S",
                                      "E",     "R",     "T",     "I",     "D",        "P",     "K", "Q", "N",
                                      "F",     "Y",     "M",     "H",     "W",        "C",     "X", "B", "U",
                                      "Z",     "O",     ".",     "-",     "<null_1>", "<mask>"};
  return list;
}

/// An object within config.json, empty if there is none. Parts of configurations have the keys of whole ones.
ForeignConfig part_of(ForeignConfig& from, std::string_view key) {
  auto part = from.object(key);
  if (!part) part.emplace(fmt::format("{}: {}", from.place(), key), nlohmann::json::object());
  ignore_common_keys(*part);
  ignore_generation_keys(*part);
  part->ignore({"architectures", "model_type", "problem_type"});
  return std::move(*part);
}

StructureModuleConfig read_structure(ForeignConfig from) {
  StructureModuleConfig to;
  to.residue_width = from.integer("sequence_dim", to.residue_width);
  to.pair_width = from.integer("pairwise_dim", to.pair_width);
  to.head_width = from.integer("ipa_dim", to.head_width);
  to.angle_width = from.integer("resnet_dim", to.angle_width);
  to.n_heads = from.integer("num_heads_ipa", to.n_heads);
  to.query_points = from.integer("num_qk_points", to.query_points);
  to.value_points = from.integer("num_v_points", to.value_points);
  to.dropout = from.number("dropout_rate", to.dropout);
  to.n_blocks = from.integer("num_blocks", to.n_blocks);
  to.transition_layers = from.integer("num_transition_layers", to.transition_layers);
  to.angle_blocks = from.integer("num_resnet_blocks", to.angle_blocks);
  to.unit = from.number("trans_scale_factor", to.unit);
  from.require("num_angles", 7);
  from.require("epsilon", 1e-8);
  from.require("inf", 1e5);
  from.finish();
  return to;
}

/// The heads that vectors of this width have.
int64_t n_heads(ForeignConfig& from, std::string_view key, int64_t usual, int64_t width) {
  const int64_t head_width = from.integer(key, usual);
  if (head_width < 1 || width % head_width != 0)
    from.fail(key, fmt::format("the width {} is not a multiple of it", width));
  return width / head_width;
}

void read_trunk(ForeignConfig from, EsmfoldConfig& to) {
  to.n_blocks = from.integer("num_blocks", 48);
  to.residue_width = from.integer("sequence_state_dim", 1024);
  to.pair_width = from.integer("pairwise_state_dim", 128);
  to.residue_heads = n_heads(from, "sequence_head_width", 32, to.residue_width);
  to.pair_heads = n_heads(from, "pairwise_head_width", 32, to.pair_width);
  to.most_distance = from.integer("position_bins", 32);
  to.dropout = from.number("dropout", 0);
  // With n recycles the published program makes n passes, except that with 0 it makes none.
  to.passes = from.integer("max_recycles", 4);
  if (to.passes < 1) from.fail("max_recycles", "a model without a pass finds no structure");
  const bool has_chunks = !from.has("chunk_size") || !from.json().at("chunk_size").is_null();
  to.chunk_size = has_chunks ? std::optional(from.integer("chunk_size", 128)) : std::nullopt;
  from.ignore({"chunk_size", "layer_drop", "cpu_grad_checkpoint"});  // the last two are for training
  to.structure = read_structure(part_of(from, "structure_module"));
  from.finish();
}

}  // namespace

void read_esmfold(ForeignConfig& from, ModelConfig& to) {
  from.require("vocab_list", esm_vocabulary());
  auto fold = part_of(from, "esmfold_config");
  EsmfoldConfig config;
  config.embed_residues = fold.flag("embed_aa", true);
  config.confidence_width = fold.integer("lddt_head_hid_dim", 128);
  fold.require("use_esm_attn_map", false);
  fold.require("esm_ablate_sequence", false);
  fold.require("bypass_lm", false);
  // The language model is computed in float32 here, also where the published program rounds it to fp16. The
  // others change nothing there.
  fold.ignore({"fp16_esm", "esm_type", "esm_ablate_pairwise", "esm_input_dropout"});
  read_trunk(part_of(fold, "trunk"), config);
  fold.finish();
  to.architecture = Selection("esmfold", std::move(config));
}

void write_esmfold(const ModelConfig& from, nlohmann::json& to) {
  const auto& fold = from.architecture.as<EsmfoldConfig>();
  const auto& structure = fold.structure;
  to["vocab_list"] = esm_vocabulary();
  to["vocab_size"] = from.vocab_size.value_or(std::ssize(esm_vocabulary()));
  to["esmfold_config"] = {
      {"fp16_esm", false},
      {"embed_aa", fold.embed_residues},
      {"lddt_head_hid_dim", fold.confidence_width},
      {"trunk",
       {{"num_blocks", fold.n_blocks},
        {"sequence_state_dim", fold.residue_width},
        {"pairwise_state_dim", fold.pair_width},
        {"sequence_head_width", fold.residue_width / fold.residue_heads},
        {"pairwise_head_width", fold.pair_width / fold.pair_heads},
        {"position_bins", fold.most_distance},
        {"dropout", fold.dropout},
        {"max_recycles", fold.passes},
        {"chunk_size", fold.chunk_size ? nlohmann::json(*fold.chunk_size) : nlohmann::json()},
        {"structure_module",
         {{"sequence_dim", structure.residue_width},
          {"pairwise_dim", structure.pair_width},
          {"ipa_dim", structure.head_width},
          {"resnet_dim", structure.angle_width},
          {"num_heads_ipa", structure.n_heads},
          {"num_qk_points", structure.query_points},
          {"num_v_points", structure.value_points},
          {"dropout_rate", structure.dropout},
          {"num_blocks", structure.n_blocks},
          {"num_transition_layers", structure.transition_layers},
          {"num_resnet_blocks", structure.angle_blocks},
          {"num_angles", 7},
          {"trans_scale_factor", static_cast<int64_t>(structure.unit)},
          {"epsilon", 1e-8},
          {"inf", 1e5}}}}}};
}

void add_esmfold_rules(const ModelConfig& model, TensorRules& rules) {
  using Names = std::pair<const char*, const char*>;  // ours, theirs
  const auto& fold = model.architecture.as<EsmfoldConfig>();
  rules.tensor("language.layer_weights", "esm_s_combine");
  constexpr auto around = std::to_array<Names>(
      {{"language.norm", "esm_s_mlp.0"},
       {"language.in", "esm_s_mlp.1"},
       {"language.out", "esm_s_mlp.3"},
       {"residue_embedding", "embedding"},
       {"distance_head", "distogram_head"},
       {"error_head", "ptm_head"},
       {"residue_head", "lm_head"},
       {"lddt_norm", "lddt_head.0"},
       {"lddt_first", "lddt_head.1"},
       {"lddt_second", "lddt_head.2"},
       {"lddt_head", "lddt_head.3"},
       {"trunk.relative_positions.table", "trunk.pairwise_positional_embedding.embedding"},
       {"trunk.recycled_residues", "trunk.recycle_s_norm"},
       {"trunk.recycled_pairs", "trunk.recycle_z_norm"},
       {"trunk.recycled_distances", "trunk.recycle_disto"},
       {"trunk.to_residues", "trunk.trunk2sm_s"},
       {"trunk.to_pairs", "trunk.trunk2sm_z"}});
  for (const auto& [ours, theirs] : around) rules.module(ours, theirs);

  constexpr auto of_block =
      std::to_array<Names>({{"residue_attention.norm", "layernorm_1"},
                            {"residue_attention.pair_norm", "pair_to_sequence.layernorm"},
                            {"residue_attention.bias", "pair_to_sequence.linear"},
                            {"residue_attention.qkv", "seq_attention.proj"},
                            {"residue_attention.gate", "seq_attention.g_proj"},
                            {"residue_attention.out", "seq_attention.o_proj"},
                            {"residue_transition.norm", "mlp_seq.mlp.0"},
                            {"residue_transition.up", "mlp_seq.mlp.1"},
                            {"residue_transition.down", "mlp_seq.mlp.3"},
                            {"residues_to_pairs.norm", "sequence_to_pair.layernorm"},
                            {"residues_to_pairs.in", "sequence_to_pair.proj"},
                            {"residues_to_pairs.out", "sequence_to_pair.o_proj"},
                            {"pair_transition.norm", "mlp_pair.mlp.0"},
                            {"pair_transition.up", "mlp_pair.mlp.1"},
                            {"pair_transition.down", "mlp_pair.mlp.3"}});
  constexpr auto of_multiplication = std::to_array<Names>({{"norm_in", "layer_norm_in"},
                                                           {"norm_out", "layer_norm_out"},
                                                           {"left", "linear_a_p"},
                                                           {"left_gate", "linear_a_g"},
                                                           {"right", "linear_b_p"},
                                                           {"right_gate", "linear_b_g"},
                                                           {"gate", "linear_g"},
                                                           {"out", "linear_z"}});
  constexpr auto of_attention = std::to_array<Names>({{"norm", "layer_norm"},
                                                      {"bias", "linear"},
                                                      {"q", "mha.linear_q"},
                                                      {"k", "mha.linear_k"},
                                                      {"v", "mha.linear_v"},
                                                      {"gate", "mha.linear_g"},
                                                      {"out", "mha.linear_o"}});
  for (int64_t i = 0; i < fold.n_blocks; ++i) {
    const auto block = fmt::format("trunk.blocks.{}.", i);
    const auto add = [&](const auto& names, const std::string& ours, const std::string& theirs) {
      for (const auto& [our_name, their_name] : names)
        rules.module(block + ours + our_name, block + theirs + their_name);
    };
    add(of_block, "", "");
    add(of_multiplication, "outgoing.", "tri_mul_out.");
    add(of_multiplication, "incoming.", "tri_mul_in.");
    add(of_attention, "starting.", "tri_att_start.");
    add(of_attention, "ending.", "tri_att_end.");
  }

  const std::string part = "trunk.structure_module.";
  constexpr auto of_structure =
      std::to_array<Names>({{"residue_norm", "layer_norm_s"},
                            {"pair_norm", "layer_norm_z"},
                            {"in", "linear_in"},
                            {"attention.q", "ipa.linear_q"},
                            {"attention.kv", "ipa.linear_kv"},
                            {"attention.q_points", "ipa.linear_q_points"},
                            {"attention.kv_points", "ipa.linear_kv_points"},
                            {"attention.bias", "ipa.linear_b"},
                            {"attention.out", "ipa.linear_out"},
                            {"attention_norm", "layer_norm_ipa"},
                            {"transition_norm", "transition.layer_norm"},
                            {"backbone_update", "bb_update.linear"},
                            {"angle_network.in", "angle_resnet.linear_in"},
                            {"angle_network.first_in", "angle_resnet.linear_initial"},
                            {"angle_network.out", "angle_resnet.linear_out"}});
  for (const auto& [ours, theirs] : of_structure) rules.module(part + ours, part + theirs);
  rules.tensor(part + "attention.head_weights", part + "ipa.head_weights");
  const auto add_maps = [&](const std::string& ours, const std::string& theirs, int64_t n_lists,
                            int64_t n_maps) {
    for (int64_t i = 0; i < n_lists; ++i) {
      for (int64_t map = 0; map < n_maps; ++map) {
        rules.module(fmt::format("{}{}.{}.maps.{}", part, ours, i, map),
                     fmt::format("{}{}.{}.linear_{}", part, theirs, i, map + 1));
      }
    }
  };
  add_maps("transition", "transition.layers", fold.structure.transition_layers, 3);
  add_maps("angle_network.blocks", "angle_resnet.layers", fold.structure.angle_blocks, 2);

  // The token of each kind of residue behind that of padding.
  rules.buffer("af2_to_esm", [] {
    const auto tokens = torch::tensor(esm_tokens_of_residues());
    return torch::cat({torch::ones({1}, torch::kInt64), tokens});
  });
}

}  // namespace zoo
