#include "interop/nanogpt.h"

#include <fmt/format.h>

#include "base/error.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_nanogpt(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::decoder;
  model.vocab_size = from.integer("vocab_size");
  model.d_model = from.integer("n_embd");
  model.n_layers = from.integer("n_layer");
  model.n_heads = from.integer("n_head");
  model.max_positions = from.integer("block_size");
  model.bias = from.flag("bias", true);  // older versions have no such key, and always biases
  model.dropout = model.attention_dropout = from.number("dropout", 0.0);
  model.activation = Activation::gelu;
  model.norm_eps = 1e-5;
  model.tie_embeddings = true;
  model.position = Position::learned;
  model.projection = Projection::fused;
}

void write_nanogpt(const Experiment& /*from*/, nlohmann::json& /*to*/) {
  throw ConfigError("nanogpt: checkpoints of nanoGPT are only read");
}

TensorRules nanogpt_rules(const Experiment& experiment) {
  TensorRules rules;
  rules.layers(experiment.model.n_layers);
  add_gpt2_body(Move::plain, rules);
  rules.copy("lm_head.weight", "transformer.wte.weight");
  // Tables of masks, which it has where PyTorch has no fast attention.
  rules.ignore("transformer.h.*.attn.bias");
  return rules;
}

}  // namespace

std::optional<nlohmann::json> nanogpt_config(const PytorchFile& file) {
  auto config = file.value_beside("model_args");
  if (!config) return std::nullopt;
  if (!config->is_object())
    throw CheckpointError(fmt::format("'{}': its model_args are no dict, as nanoGPT has it", file.place()));
  (*config)["model_type"] = "nanogpt";
  (*config)["architectures"] = {"GPT"};
  return config;
}

ForeignFamily nanogpt_foreign() {
  return {.model_type = "nanogpt",
          .doc = "GPT-2 as nanoGPT trains it",
          .classes = {{"GPT", "language_modeling"}},
          .read = read_nanogpt,
          .write = write_nanogpt,
          .rules = nanogpt_rules};
}

}  // namespace zoo
