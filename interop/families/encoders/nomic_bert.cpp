// NomicBERT (Nussbaum et al. 2024): BERT with rotary positions, gated networks, and few biases. The names of
// tensors are those of its authors' files, which transformers 5 reads and writes, too.

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

/// The keys of the authors' program, which stand beside those of transformers in newer files.
void check_authors_keys(ForeignConfig& from, const ModelConfig& model) {
  from.require("n_embd", model.d_model);
  from.require("n_layer", model.n_layers);
  from.require("n_head", model.n_heads);
  from.require("n_inner", model.feed_forward_width());
  from.require("layer_norm_epsilon", model.norm_eps);
  from.require("rotary_emb_base", model.rotary.theta);
  from.require("rotary_emb_fraction", 1.0);
  from.require("rotary_emb_interleaved", false);
  from.require("rotary_emb_scale_base", nullptr);
  from.require("activation_function", "swiglu");
  from.require("scale_attn_weights", true);
  for (const auto* const key :
       {"prenorm", "parallel_block", "parallel_block_tied_norm", "causal", "use_rms_norm", "qkv_proj_bias",
        "mlp_fc1_bias", "mlp_fc2_bias", "scale_attn_by_inverse_layer_idx"})
    from.require(key, false);
  // Texts longer than those of the training, which transformers does not stretch positions for.
  from.ignore({"n_positions", "max_trained_positions", "rotary_scaling_factor"});
  // Training, how the program divides and fuses its work, and heads of GPT-2.
  from.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop", "dense_seq_output", "fused_bias_fc",
               "fused_dropout_add_ln", "pad_vocab_size_multiple", "reorder_and_upcast_attn", "use_flash_attn",
               "use_xentropy", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
               "summary_type", "summary_use_proj"});
}

void read_nomic_bert(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder;
  model.vocab_size = from.integer("vocab_size", 30528);
  read_bert_keys(from, 0, model);
  model.head_dim = from.optional_integer("head_dim");
  model.activation = read_gated_activation(from, "hidden_act", "silu");
  model.projection = Projection::fused;
  model.qkv_bias = model.out_bias = model.ff_bias = false;
  model.norm_placement = NormPlacement::post;
  model.embedding_norm = true;
  model.max_positions = from.integer("max_position_embeddings", 2048);
  read_rotary(from, {.theta = 1000}, model);
  model.n_segments = from.integer("type_vocab_size", 2);
  if (model.n_segments < 1)
    from.fail("type_vocab_size", "a model without segments is not supported: at least 1");
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.output_bias = true;
  model.pooler = to.task.type == "text_classification";
  model.init_residual_scaling = false;
  from.ignore({"classifier_dropout"});
  check_authors_keys(from, model);
}

void write_nomic_bert(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  write_bert_keys(model, to);
  to["head_dim"] = model.head_width();
  to["hidden_act"] = foreign_name(model.activation);
  to["type_vocab_size"] = model.n_segments;
  to["max_position_embeddings"] = model.max_positions;
  write_rotary(model, to);
}

TensorRules nomic_bert_rules(const Experiment& experiment) {
  const std::string body = "nomic_bert.", ours = "encoder.layers.{}.", theirs = body + "encoder.layers.{}.";
  TensorRules rules;
  rules.prefix(body).layers(experiment.model.n_layers);
  rules.module("token_embedding", body + "embeddings.word_embeddings");
  rules.module("encoder_embedder.segment_embedding", body + "embeddings.token_type_embeddings");
  rules.module("encoder_embedder.embedding_norm", body + "emb_ln");
  add_stacked_attention(experiment.model, ours + "self_attention.", theirs + "attn.Wqkv", 1, rules);
  rules.module(ours + "self_attention.out", theirs + "attn.out_proj");
  rules.module(ours + "residual.self_attention_norm", theirs + "norm1");
  rules.module(ours + "feed_forward.up", theirs + "mlp.fc11");
  rules.module(ours + "feed_forward.gate", theirs + "mlp.fc12");
  rules.module(ours + "feed_forward.down", theirs + "mlp.fc2");
  rules.module(ours + "residual.feed_forward_norm", theirs + "norm2");
  rules.ignore("*inv_freq");  // follows from the configuration
  if (fills_masks(experiment)) {
    add_masked_head(experiment,
                    {.transform = "cls.predictions.transform.dense",
                     .norm = "cls.predictions.transform.layer_norm",
                     .output = "cls.predictions.",
                     .table = body + "embeddings.word_embeddings"},
                    rules);
    rules.ignore(body + "pooler.*");
    return rules;
  }
  rules.module("head.pooler", body + "pooler.dense");
  rules.module("head.classifier", "classifier");
  rules.ignore("cls.*");
  if (experiment.task.type != "text_classification") rules.ignore(body + "pooler.*");
  return rules;
}

}  // namespace

ForeignFamily nomic_bert_foreign() {
  return {.model_type = "nomic_bert",
          .doc = "NomicBERT (Nussbaum et al. 2024): BERT with rotary positions and gated networks",
          .classes = {{"NomicBertForMaskedLM", "masked_language_modeling"},
                      {"NomicBertForSequenceClassification", "text_classification"},
                      {"NomicBertForTokenClassification", "token_classification"},
                      {"NomicBertModel", "text_features"}},
          .read = read_nomic_bert,
          .write = write_nomic_bert,
          .rules = nomic_bert_rules};
}

}  // namespace zoo
