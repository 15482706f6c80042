#include "interop/gguf/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "interop/gguf/gguf_tokenizer.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

/// Llama 3.1's numbers, which its files do not have.
constexpr double kLowFrequency = 1, kHighFrequency = 4;
constexpr int64_t kOriginalLength = 8192;

int64_t head_width(const Json& config) {
  const int64_t width = config.at("hidden_size"), n_heads = config.at("num_attention_heads");
  const auto given = config.value("head_dim", Json());
  return given.is_null() ? width / std::max<int64_t>(n_heads, 1) : given.get<int64_t>();
}

void read_tokens(const GgufKeys& keys, Json& config) {
  const auto id = [&](const char* name) { return gguf_token_id(keys, name); };
  if (id("bos") >= 0) config["bos_token_id"] = id("bos");
  if (id("padding") >= 0) config["pad_token_id"] = id("padding");
  auto ends = Json::array();
  for (const char* const name : {"eos", "eot", "eom"}) {
    if (id(name) >= 0 && std::ranges::find(ends, Json(id(name))) == ends.end()) ends.push_back(id(name));
  }
  if (!ends.empty()) config["eos_token_id"] = ends.size() == 1 ? ends.front() : ends;
}

void read_head_width(const GgufArchitecture& architecture, const GgufKeys& keys, Json& config) {
  const auto key = architecture.name + ".attention.key_length";
  if (!keys.has(key)) {
    if (architecture.has_head_width) config["head_dim"] = head_width(config);
    return;
  }
  const int64_t width = keys.integer(key);
  if (keys.integer(architecture.name + ".attention.value_length", width) != width)
    keys.fail(architecture.name + ".attention.value_length", "values are not as wide as keys");
  if (!architecture.has_head_width && width != head_width(config))
    keys.fail(key, "another width than that of the model over the number of heads is not supported");
  if (architecture.has_head_width) config["head_dim"] = width;
}

/// Keys of positions that are not read here have the values that change nothing.
void check_rotary_keys(const std::string& prefix, const GgufKeys& keys) {
  constexpr auto known = std::to_array<std::string_view>(
      {"dimension_count", "freq_base", "scale_linear", "scaling.type", "scaling.factor",
       "scaling.original_context_length", "scaling.finetuned"});
  using Value = std::pair<std::string_view, double>;
  constexpr auto usual = std::to_array<Value>({{"freq_base_swa", 10000},
                                               {"dimension_count_swa", -1},
                                               {"scaling.attn_factor", 1},
                                               {"scaling.yarn_log_multiplier", 0},
                                               {"scaling.yarn_ext_factor", 1},
                                               {"scaling.yarn_attn_factor", 1},
                                               {"scaling.yarn_beta_fast", 32},
                                               {"scaling.yarn_beta_slow", 1}});
  for (const auto& key : keys.names(prefix)) {
    const auto name = std::string_view(key).substr(prefix.size());
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto found = std::ranges::find(usual, name, &Value::first);
    if (found == usual.end()) keys.fail(key, "this key of the positions is not known");
    const double wanted =
        name == "dimension_count_swa" ? keys.number(prefix + "dimension_count", -1) : found->second;
    if (keys.number(key) != wanted) keys.fail(key, fmt::format("only {:g} is supported", wanted));
  }
}

/// "linear" if the file has a factor and no type, as in llama.cpp.
std::string scaling_type(const GgufKeys& keys, const std::string& prefix, double factor) {
  const auto type = keys.text(prefix + "type", "linear");
  return type == "linear" && (factor == 0 || factor == 1) ? "none" : type;
}

void read_scaling(const GgufArchitecture& architecture, const GgufKeys& keys, const GgufTensorFacts& facts,
                  Json& config) {
  const auto rotary = architecture.name + ".rope.", prefix = rotary + "scaling.";
  check_rotary_keys(rotary, keys);
  const double factor = keys.number(prefix + "factor", keys.number(rotary + "scale_linear", 0));
  const auto type = scaling_type(keys, prefix, factor);
  if (facts.rotary_divisors.defined()) {
    if (facts.rotary_divisors.dim() != 1 || facts.rotary_divisors.size(0) * 2 != head_width(config))
      keys.fail("rope_freqs.weight", "not one number for each two of a head");
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", facts.rotary_divisors.max().item<double>()},
                              {"low_freq_factor", kLowFrequency},
                              {"high_freq_factor", kHighFrequency},
                              {"original_max_position_embeddings",
                               keys.integer(prefix + "original_context_length", kOriginalLength)}};
    const auto expected = rotary_divisors(config);
    const bool is_known =
        type == "none" && torch::allclose(*expected, facts.rotary_divisors, /*rtol=*/1e-4, /*atol=*/0);
    if (!is_known)
      keys.fail("rope_freqs.weight", "not the scaling of Llama 3.1, which is the one that is supported");
    return;
  }
  if (type == "none") return;
  if (type != "linear" && type != "yarn")
    keys.fail(prefix + "type", fmt::format("'{}' is not supported", excerpt(type)));
  config["rope_scaling"] = {{"rope_type", type}, {"factor", factor == 0 ? 1 : factor}};
  if (type == "yarn") {
    config["rope_scaling"]["original_max_position_embeddings"] =
        keys.integer(prefix + "original_context_length");
  }
}

/// Reads the keys of models with rotary positions.
void read_rotary_decoder(const GgufArchitecture& architecture, const GgufKeys& keys,
                         const GgufTensorFacts& facts, Json& config) {
  const auto& prefix = architecture.name;
  config["num_key_value_heads"] =
      keys.integer(prefix + ".attention.head_count_kv", config["num_attention_heads"].get<int64_t>());
  config["rope_theta"] = keys.number(prefix + ".rope.freq_base", 10000);
  read_head_width(architecture, keys, config);
  if (const int64_t n = keys.integer(prefix + ".rope.dimension_count", head_width(config));
      n != head_width(config))
    keys.fail(prefix + ".rope.dimension_count", "positions that turn a part of each head are not supported");
  read_scaling(architecture, keys, facts, config);
}

/// llama.cpp's rule for the scale of attention: 1/√Dh, and in the largest model 1/√(D/H).
void read_gemma_scale(Json& config) {
  constexpr int64_t layers_of_largest = 62;
  const int64_t width = config["hidden_size"], n_heads = config["num_attention_heads"];
  const bool is_largest = config["num_hidden_layers"] == layers_of_largest;
  config["query_pre_attn_scalar"] = is_largest ? width / std::max<int64_t>(n_heads, 1) : head_width(config);
}

/// What llama.cpp makes of the vectors of a text's tokens, of which models of a rank are others than ours.
enum class GgufPooling { none = 0, mean = 1, cls = 2, last = 3 };

void read_encoder(const GgufArchitecture& architecture, const GgufKeys& keys, Json& config) {
  const auto causal = architecture.name + ".attention.causal";
  if (keys.flag(causal, false)) keys.fail(causal, "an encoder that sees no later tokens is not supported");
  const auto pooling = architecture.name + ".pooling_type";
  if (const int64_t type = keys.integer(pooling, 0);
      type < 0 || type > static_cast<int64_t>(GgufPooling::last))
    keys.fail(pooling, fmt::format("{} is not supported: only the vectors of tokens are read", type));
  config["add_pooling_layer"] = false;
  config["type_vocab_size"] = keys.integer("tokenizer.ggml.token_type_count");
}

void read_encoder_decoder(const GgufArchitecture& architecture, const GgufKeys& keys,
                          const GgufTensorFacts& facts, Json& config) {
  const auto& prefix = architecture.name;
  const auto value_length = prefix + ".attention.value_length";
  if (keys.integer(value_length, config["d_kv"].get<int64_t>()) != config["d_kv"])
    keys.fail(value_length, "values are not as wide as keys");
  config["num_decoder_layers"] =
      keys.integer(prefix + ".decoder_block_count", config["num_layers"].get<int64_t>());
  config["feed_forward_proj"] = facts.is_gated ? "gated-gelu" : "relu";
  config["is_encoder_decoder"] = true;
  const auto start = prefix + ".decoder_start_token_id";
  if (keys.has(start)) config["decoder_start_token_id"] = keys.integer(start);
}

void write_scaling(const std::string& prefix, const Json& config, GgufMetadata& to) {
  const auto scaling = config.value("rope_scaling", Json());
  if (!scaling.is_object()) return;
  const auto type = scaling.value("rope_type", scaling.value("type", "default"));
  const auto original = [&] {
    const auto key = prefix + "original_context_length";
    to.emplace_back(
        key, static_cast<uint32_t>(scaling.value("original_max_position_embeddings", kOriginalLength)));
  };
  if (type == "llama3") return original();
  if (type != "linear" && type != "yarn") return;
  to.emplace_back(prefix + "type", type);
  to.emplace_back(prefix + "factor", static_cast<float>(scaling.value("factor", 1.0)));
  if (type == "yarn") original();
}

}  // namespace

Json config_of_gguf(const GgufArchitecture& architecture, const GgufKeys& keys,
                    const GgufTensorFacts& facts) {
  Json config{{"model_type", architecture.model_type}, {"architectures", {architecture.class_name}}};
  const auto vocab_size = architecture.name + ".vocab_size";
  config["vocab_size"] =
      keys.has(vocab_size) ? keys.integer(vocab_size) : std::ssize(keys.texts("tokenizer.ggml.tokens"));
  read_tokens(keys, config);
  for (const auto& [stored, foreign, kind] : architecture.keys) {
    const auto key = fmt::format("{}.{}", architecture.name, stored);
    if (kind == GgufKeyName::Kind::integer) {
      config[std::string(foreign)] = keys.integer(key);
    } else {
      config[std::string(foreign)] = keys.number(key);
    }
  }
  for (const auto& [foreign, value] : architecture.fixed) config[std::string(foreign)] = value;
  config["tie_word_embeddings"] = facts.is_tied;
  switch (architecture.body) {
    case GgufBody::plain_decoder:
      break;
    case GgufBody::rotary_decoder:
      read_rotary_decoder(architecture, keys, facts, config);
      if (architecture.name == "gemma3") read_gemma_scale(config);
      break;
    case GgufBody::encoder:
      read_encoder(architecture, keys, config);
      break;
    case GgufBody::encoder_decoder:
      read_encoder_decoder(architecture, keys, facts, config);
      break;
  }
  return config;
}

namespace {

/// Adds keys of one architecture.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufArchitecture& architecture, GgufMetadata& keys)
      : prefix_(architecture.name + "."), keys_(keys) {}
  void whole(const std::string& key, int64_t value) const {
    keys_.emplace_back(prefix_ + key, static_cast<uint32_t>(value));
  }
  void number(const std::string& key, float value) const { keys_.emplace_back(prefix_ + key, value); }
  void flag(const std::string& key, bool value) const { keys_.emplace_back(prefix_ + key, value); }

 private:
  std::string prefix_;
  GgufMetadata& keys_;
};

void write_rotary_decoder(const GgufArchitecture& architecture, const Json& config, GgufMetadata& to) {
  const ArchitectureKeys keys(architecture, to);
  keys.whole("attention.head_count_kv",
             config.value("num_key_value_heads", config.at("num_attention_heads")));
  keys.whole("attention.key_length", head_width(config));
  keys.whole("attention.value_length", head_width(config));
  keys.whole("rope.dimension_count", head_width(config));
  keys.number("rope.freq_base", config.value("rope_theta", 10000.0F));
  write_scaling(architecture.name + ".rope.scaling.", config, to);
}

/// `zoo embed` takes the mean over the tokens, so the file asks for it.
void write_encoder(const GgufArchitecture& architecture, const Json& config, GgufMetadata& to) {
  const ArchitectureKeys keys(architecture, to);
  keys.flag("attention.causal", false);
  keys.whole("pooling_type", static_cast<int64_t>(GgufPooling::mean));
  to.emplace_back("tokenizer.ggml.token_type_count", config.at("type_vocab_size").get<uint32_t>());
}

void write_encoder_decoder(const GgufArchitecture& architecture, const Json& config, GgufMetadata& to) {
  const ArchitectureKeys keys(architecture, to);
  // Positions are relative, so this length, which T5 was trained with, limits nothing.
  constexpr int64_t usual_length = 512;
  keys.whole("context_length", config.value("n_positions", usual_length));
  keys.whole("attention.value_length", config.at("d_kv"));
  keys.number("attention.layer_norm_epsilon", config.at("layer_norm_epsilon"));
  const auto n_decoder_layers = config.value("num_decoder_layers", Json());
  const int64_t n_layers = config.at("num_layers");
  const int64_t n_decoded = n_decoder_layers.is_null() ? n_layers : n_decoder_layers.get<int64_t>();
  if (n_decoded > n_layers) {
    throw ConfigError(fmt::format("llama.cpp runs no decoder with more layers ({}) than the encoder ({})",
                                  n_decoded, n_layers));
  }
  keys.whole("decoder_block_count", n_decoded);
  for (const char* const key : {"decoder_start_token_id", "bos_token_id"}) {
    const auto id = config.value(key, Json());
    if (id.is_null()) continue;
    keys.whole("decoder_start_token_id", id);
    break;
  }
}

}  // namespace

GgufMetadata gguf_keys_of(const GgufArchitecture& architecture, const Json& config) {
  GgufMetadata keys;
  const ArchitectureKeys own(architecture, keys);
  own.whole("vocab_size", config.at("vocab_size"));
  for (const auto& [stored, foreign, kind] : architecture.keys) {
    const auto& value = config.at(std::string(foreign));
    if (kind == GgufKeyName::Kind::integer) {
      own.whole(std::string(stored), value);
    } else {
      own.number(std::string(stored), value);
    }
  }
  switch (architecture.body) {
    case GgufBody::plain_decoder:
      break;
    case GgufBody::rotary_decoder:
      write_rotary_decoder(architecture, config, keys);
      break;
    case GgufBody::encoder:
      write_encoder(architecture, config, keys);
      break;
    case GgufBody::encoder_decoder:
      write_encoder_decoder(architecture, config, keys);
      break;
  }
  return keys;
}

std::optional<torch::Tensor> rotary_divisors(const Json& config) {
  const auto scaling = config.value("rope_scaling", Json());
  if (!scaling.is_object() || scaling.value("rope_type", scaling.value("type", "")) != "llama3")
    return std::nullopt;
  const double theta = config.value("rope_theta", 10000.0), factor = scaling.at("factor");
  const double low = scaling.at("low_freq_factor"), high = scaling.at("high_freq_factor");
  const double original = scaling.at("original_max_position_embeddings");
  const int64_t width = head_width(config);
  std::vector<float> divisors;
  for (int64_t i = 0; i < width; i += 2) {
    const double frequency = std::pow(theta, -static_cast<double>(i) / static_cast<double>(width));
    // How often a wave fits into the length of the first training.
    const double waves = original * frequency / (2 * std::numbers::pi);
    const double smooth = std::clamp((waves - low) / (high - low), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - smooth) / factor + smooth)));
  }
  return torch::tensor(divisors);
}

}  // namespace zoo
