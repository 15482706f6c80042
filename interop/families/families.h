#pragma once
// The families of this folder. A family is listed in interop/foreign_families.cpp.

#include <string>

#include "interop/families/foreign_family.h"

namespace zoo {

ForeignFamily gpt2_foreign();
ForeignFamily llama_foreign();
ForeignFamily mistral_foreign();
ForeignFamily qwen2_foreign();
ForeignFamily qwen3_foreign();
ForeignFamily olmo2_foreign();
ForeignFamily mixtral_foreign();
ForeignFamily olmoe_foreign();
ForeignFamily qwen2_moe_foreign();
ForeignFamily qwen3_moe_foreign();
ForeignFamily gpt_neox_foreign();
ForeignFamily gptj_foreign();
ForeignFamily opt_foreign();
ForeignFamily bloom_foreign();
ForeignFamily mpt_foreign();
ForeignFamily falcon_foreign();
ForeignFamily phi_foreign();
ForeignFamily phi3_foreign();
ForeignFamily olmo_foreign();
ForeignFamily granite_foreign();
ForeignFamily smollm3_foreign();
ForeignFamily starcoder2_foreign();
ForeignFamily cohere_foreign();
ForeignFamily cohere2_foreign();
ForeignFamily glm_foreign();
ForeignFamily glm4_foreign();
ForeignFamily bert_foreign();
ForeignFamily roberta_foreign();
ForeignFamily big_bird_foreign();
ForeignFamily distilbert_foreign();
ForeignFamily longformer_foreign();
ForeignFamily esm_foreign();
ForeignFamily gemma2_foreign();
ForeignFamily gemma3_foreign();
ForeignFamily t5_foreign();
ForeignFamily bart_foreign();
ForeignFamily marian_foreign();
ForeignFamily vit_foreign();
ForeignFamily ijepa_foreign();
ForeignFamily deit_foreign();
ForeignFamily dinov2_foreign();
ForeignFamily clip_foreign();
ForeignFamily siglip_foreign();
ForeignFamily detr_foreign();
ForeignFamily whisper_foreign();
ForeignFamily xlm_roberta_foreign();
ForeignFamily mt5_foreign();
ForeignFamily mbart_foreign();
ForeignFamily m2m_100_foreign();
ForeignFamily albert_foreign();
ForeignFamily electra_foreign();
ForeignFamily mpnet_foreign();
ForeignFamily modernbert_foreign();
ForeignFamily gpt_oss_foreign();
ForeignFamily deepseek_v2_foreign();
ForeignFamily deepseek_v3_foreign();
ForeignFamily deberta_v2_foreign();
ForeignFamily nomic_bert_foreign();
ForeignFamily wav2vec2_foreign();
ForeignFamily hubert_foreign();
ForeignFamily beit_foreign();
ForeignFamily pegasus_foreign();

// ---- What families share with those that were made from them

/// The sizes of BERT and of the families made from it: hidden_size, num_hidden_layers, num_attention_heads,
/// intermediate_size, and layer_norm_eps. `usual_dropout`: of hidden states and weights, where a file says
/// nothing.
void read_bert_keys(ForeignConfig& from, double usual_dropout, ModelConfig& to);
void write_bert_keys(const ModelConfig& from, nlohmann::json& to);
/// The linear maps of layers that are called "encoder.layers.{}." here and "bert.encoder.layer.{}." there,
/// for example; `attention`: what the names of queries, keys and values begin with.
void add_bert_maps(const std::string& ours, const std::string& theirs, const std::string& attention,
                   TensorRules& rules);

/// The embeddings, layers and last norm of GPT-2. `move`: how a linear map is stored.
void add_gpt2_body(Move move, TensorRules& rules);

/// The values of keys that a config.json of BART, and of the families made from it, may lack.
struct BartDefaults {
  int64_t d_model = 1024, n_layers = 12, n_heads = 16, d_ff = 4096;
  std::string activation = "gelu";
  double dropout = 0.1, attention_dropout = 0;
};

/// The sizes, the activation and the dropouts of both stacks.
void read_bart_keys(ForeignConfig& from, const BartDefaults& defaults, ModelConfig& to);
void write_bart_keys(const ModelConfig& from, nlohmann::json& to);
/// The names that the layers of `side`, "encoder" or "decoder", have in BART and in the families made from
/// it.
void add_bart_layers(const std::string& side, TensorRules& rules);

/// Both stacks of a model like BART. `norms`: pre (mBART) or post. All but the positions and the norm on the
/// embeddings.
struct BartShape {
  int64_t vocab_size = 50265;
  NormPlacement norms = NormPlacement::post;
  bool scales_embeddings = false;
  BartDefaults defaults = {};
};
void read_bart_like(ForeignConfig& from, const BartShape& shape, Experiment& to);
void write_bart(const Experiment& from, nlohmann::json& to);
TensorRules bart_rules(const Experiment& experiment);

/// The rules of RoBERTa, for a model whose tensors have names that begin with `body`: "roberta.".
TensorRules roberta_rules(const Experiment& experiment, const std::string& body);
/// Its heads alone, which ESM has, too.
void add_roberta_head(const Experiment& experiment, const std::string& body, TensorRules& rules);

}  // namespace zoo
