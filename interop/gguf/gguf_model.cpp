#include "interop/gguf/gguf_model.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"
#include "interop/gguf/gguf_keys.h"
#include "interop/gguf/gguf_tokenizer.h"
#include "io/gguf/gguf_file.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

/// What happened to a tensor on its way into the file.
enum class Change {
  none,
  transposed,        // GPT-2's matrices
  interleaved_rows,  // queries and keys of llama: of each head the rows i and i + Dh/2 lie beside each other
};

struct StoredTensor {
  std::string name;  // in the file
  Change change = Change::none;
  int64_t n_heads = 0;  // interleaved_rows: of the matrix
};

/// The tensors of a GGUF file as transformers has them.
class TensorsOfGguf final : public TensorSource {
 public:
  TensorsOfGguf(std::shared_ptr<const GgufFile> file, std::map<std::string, StoredTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, stored] : tensors_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override { return tensors_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override {
    const auto& tensor = stored(name);
    auto shape = file_->shape(tensor.name);
    if (tensor.change == Change::transposed) std::ranges::reverse(shape);
    return shape;
  }
  torch::ScalarType dtype(const std::string& name) const override { return file_->dtype(stored(name).name); }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    const auto& tensor = stored(name);
    switch (tensor.change) {
      case Change::none:
        return file_->read_into(to, tensor.name);
      case Change::transposed:
        return file_->read_into(to.t(), tensor.name);
      case Change::interleaved_rows:
        // (H, Dh/2, 2, …) of the file is (H, 2, Dh/2, …) here.
        return read_interleaved(to, tensor);
    }
  }
  std::string place() const override { return file_->place(); }

 private:
  const StoredTensor& stored(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) return found->second;
    throw CheckpointError(fmt::format("'{}' has no tensor '{}'", place(), excerpt(name)));
  }

  void read_interleaved(const torch::Tensor& to, const StoredTensor& tensor) const {
    const int64_t rows = to.size(0), H = tensor.n_heads;
    if (rows % (2 * H) != 0)
      throw CheckpointError(fmt::format("'{}': the rows of '{}' are not those of {} heads", place(), tensor.name, H));
    const auto as_stored = torch::empty(to.sizes(), to.options());
    file_->read_into(as_stored, tensor.name);
    const int64_t half = rows / (2 * H);
    const auto columns = to.dim() == 2 ? to.size(1) : 1;
    torch::Tensor(to).copy_(as_stored.view({H, half, 2, columns}).transpose(1, 2).reshape(to.sizes()));
  }

  std::shared_ptr<const GgufFile> file_;
  std::map<std::string, StoredTensor> tensors_;
};

/// Names of modules: in the file, and in transformers; {} is the number of the layer.
struct Names {
  std::string_view stored, foreign;
};
constexpr auto kLlama = std::to_array<Names>({{"token_embd", "model.embed_tokens"},
                                              {"output_norm", "model.norm"},
                                              {"output", "lm_head"},
                                              {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
                                              {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
                                              {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
                                              {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
                                              {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
                                              {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"},
                                              {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"},
                                              {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
                                              {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
                                              {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
                                              {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"}});
constexpr auto kGpt2 = std::to_array<Names>({{"token_embd", "transformer.wte"},
                                             {"position_embd", "transformer.wpe"},
                                             {"output_norm", "transformer.ln_f"},
                                             {"output", "lm_head"},
                                             {"blk.{}.attn_norm", "transformer.h.{}.ln_1"},
                                             {"blk.{}.attn_qkv", "transformer.h.{}.attn.c_attn"},
                                             {"blk.{}.attn_output", "transformer.h.{}.attn.c_proj"},
                                             {"blk.{}.ffn_norm", "transformer.h.{}.ln_2"},
                                             {"blk.{}.ffn_up", "transformer.h.{}.mlp.c_fc"},
                                             {"blk.{}.ffn_down", "transformer.h.{}.mlp.c_proj"}});

std::string replaced(std::string_view pattern, const std::string& number) {
  std::string name(pattern);
  if (const auto at = name.find("{}"); at != name.npos) name.replace(at, 2, number);
  return name;
}

/// "blk.12.attn_q" → "12"; empty for names without a layer.
std::string layer_of(const std::string& name) {
  if (!name.starts_with("blk.")) return {};
  const auto end = name.find('.', 4);
  return end == name.npos ? std::string() : name.substr(4, end - 4);
}

/// What every architecture has.
Json common_config(const GgufKeys& keys, const std::string& prefix, const std::string& model_type,
                   const char* class_name) {
  const auto tokens = keys.texts("tokenizer.ggml.tokens").size();
  Json config{{"model_type", model_type}, {"architectures", {class_name}}};
  config["vocab_size"] = keys.integer(prefix + "vocab_size", static_cast<int64_t>(tokens));
  const auto id = [&](const char* key, const char* name) {
    if (const int64_t given = keys.integer(key, -1); given >= 0) config[name] = given;
  };
  id("tokenizer.ggml.bos_token_id", "bos_token_id");
  id("tokenizer.ggml.eos_token_id", "eos_token_id");
  id("tokenizer.ggml.padding_token_id", "pad_token_id");
  return config;
}

/// The scaling of rotary positions. llama.cpp writes Llama 3's as a tensor.
void add_scaling(const GgufKeys& keys, const std::string& prefix, const GgufFile& file, Json& config) {
  if (file.contains("rope_freqs.weight"))
    keys.fail("rope_freqs.weight", "scaled rotary positions of Llama 3.1 are not supported here");
  const auto type = keys.text(prefix + "rope.scaling.type", "none");
  if (type == "none") return;
  if (type != "linear") keys.fail(prefix + "rope.scaling.type", fmt::format("'{}' is not supported", excerpt(type)));
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", keys.number(prefix + "rope.scaling.factor")}};
}

Json llama_config(const GgufKeys& keys, const GgufFile& file, const std::string& architecture,
                  const char* class_name) {
  const auto prefix = architecture + ".";
  auto config = common_config(keys, prefix, architecture, class_name);
  const auto copy = [&](const char* to, const char* from) { config[to] = keys.integer(prefix + from); };
  copy("hidden_size", "embedding_length");
  copy("intermediate_size", "feed_forward_length");
  copy("num_hidden_layers", "block_count");
  copy("num_attention_heads", "attention.head_count");
  copy("max_position_embeddings", "context_length");
  const int64_t n_heads = keys.integer(prefix + "attention.head_count");
  config["num_key_value_heads"] = keys.integer(prefix + "attention.head_count_kv", n_heads);
  if (keys.has(prefix + "attention.key_length")) {
    copy("head_dim", "attention.key_length");
    if (keys.integer(prefix + "attention.value_length") != keys.integer(prefix + "attention.key_length"))
      keys.fail(prefix + "attention.value_length", "values are not as wide as keys");
  }
  config["rms_norm_eps"] = keys.number(prefix + "attention.layer_norm_rms_epsilon");
  config["rope_theta"] = keys.number(prefix + "rope.freq_base", 10000);
  config["tie_word_embeddings"] = !file.contains("output.weight");
  config["hidden_act"] = "silu";
  add_scaling(keys, prefix, file, config);
  return config;
}

Json gpt2_config(const GgufKeys& keys) {
  const std::string prefix = "gpt2.";
  auto config = common_config(keys, prefix, "gpt2", "GPT2LMHeadModel");
  const auto copy = [&](const char* to, const char* from) { config[to] = keys.integer(prefix + from); };
  copy("n_embd", "embedding_length");
  copy("n_inner", "feed_forward_length");
  copy("n_layer", "block_count");
  copy("n_head", "attention.head_count");
  copy("n_positions", "context_length");
  config["layer_norm_epsilon"] = keys.number(prefix + "attention.layer_norm_epsilon");
  return config;
}

Change change_of(const std::string& architecture, const std::string& module, const std::string& part) {
  const auto ends = [&](std::string_view name) { return module.ends_with(name); };
  if (architecture == "llama" && (ends(".attn_q") || ends(".attn_k"))) return Change::interleaved_rows;
  const bool is_matrix = ends(".attn_qkv") || ends(".attn_output") || ends(".ffn_up") || ends(".ffn_down");
  if (architecture == "gpt2" && is_matrix && part == ".weight") return Change::transposed;
  return Change::none;
}

template <size_t kN>
std::map<std::string, StoredTensor> named(const GgufFile& file, const std::string& architecture,
                                          const std::array<Names, kN>& names, const Json& config) {
  std::map<std::string, StoredTensor> result;
  for (const auto& stored : file.names()) {
    const auto dot = stored.rfind('.');
    const auto module = stored.substr(0, dot), part = dot == stored.npos ? "" : stored.substr(dot);
    const auto layer = layer_of(stored);
    const auto found = std::ranges::find_if(
        names, [&](const Names& one) { return replaced(one.stored, layer) == module; });
    if (found == names.end()) {
      throw CheckpointError(fmt::format("{}: the tensor '{}' is not known in the architecture {}", file.place(),
                                        excerpt(stored), architecture));
    }
    StoredTensor tensor{.name = stored, .change = change_of(architecture, module, part)};
    if (tensor.change == Change::interleaved_rows)
      tensor.n_heads = config[module.ends_with("attn_q") ? "num_attention_heads" : "num_key_value_heads"];
    // GPT-2 has one matrix for tokens and outputs, which llama.cpp stores twice.
    if (architecture == "gpt2" && stored == "output.weight") continue;
    result.emplace(replaced(found->foreign, layer) + part, std::move(tensor));
  }
  return result;
}

}  // namespace

GgufModel open_gguf(const std::filesystem::path& path) {
  const auto file = std::make_shared<GgufFile>(path);
  const GgufKeys keys(path.string(), file->metadata());
  const auto architecture = keys.text("general.architecture");
  Json config;
  std::map<std::string, StoredTensor> tensors;
  if (architecture == "gpt2") {
    config = gpt2_config(keys);
    tensors = named(*file, architecture, kGpt2, config);
  } else {
    constexpr auto classes = std::to_array<std::pair<std::string_view, const char*>>(
        {{"llama", "LlamaForCausalLM"}, {"qwen2", "Qwen2ForCausalLM"}, {"qwen3", "Qwen3ForCausalLM"}});
    const auto* const found = std::ranges::find(classes, architecture, [](const auto& one) { return one.first; });
    if (found == classes.end()) {
      keys.fail("general.architecture", fmt::format("'{}' is not supported; llama, qwen2, qwen3 and gpt2 are",
                                                    excerpt(architecture)));
    }
    config = llama_config(keys, *file, architecture, found->second);
    tensors = named(*file, architecture, kLlama, config);
  }
  GgufModel model{.files = tokenizer_files(keys), .tensors = nullptr};
  model.files.emplace("config.json", config.dump());
  model.tensors = std::make_shared<TensorsOfGguf>(file, std::move(tensors));
  return model;
}

}  // namespace zoo
