#include "interop/gguf/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

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

void read_scaling(const GgufArchitecture& architecture, const GgufKeys& keys, const GgufTensorFacts& facts,
                  Json& config) {
  const auto prefix = architecture.name + ".rope.scaling.";
  const auto type = keys.text(prefix + "type", "none");
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
  config["rope_scaling"] = {{"rope_type", type}, {"factor", keys.number(prefix + "factor")}};
  if (type == "yarn") {
    config["rope_scaling"]["original_max_position_embeddings"] =
        keys.integer(prefix + "original_context_length");
  }
}

/// Reads the keys of models with rotary positions, which are all but GPT-2.
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
  if (architecture.name == "gpt2") return config;
  read_rotary_decoder(architecture, keys, facts, config);
  if (architecture.name == "gemma3") read_gemma_scale(config);
  return config;
}

GgufMetadata gguf_keys_of(const GgufArchitecture& architecture, const Json& config) {
  GgufMetadata keys;
  const auto prefix = architecture.name + ".";
  const auto whole = [&](const std::string& key, int64_t value) {
    keys.emplace_back(prefix + key, static_cast<uint32_t>(value));
  };
  whole("vocab_size", config.at("vocab_size"));
  for (const auto& [stored, foreign, kind] : architecture.keys) {
    const auto& value = config.at(std::string(foreign));
    if (kind == GgufKeyName::Kind::integer) {
      whole(std::string(stored), value);
    } else {
      keys.emplace_back(prefix + std::string(stored), value.get<float>());
    }
  }
  if (architecture.name == "gpt2") return keys;
  whole("attention.head_count_kv", config.value("num_key_value_heads", config.at("num_attention_heads")));
  whole("attention.key_length", head_width(config));
  whole("attention.value_length", head_width(config));
  whole("rope.dimension_count", head_width(config));
  keys.emplace_back(prefix + "rope.freq_base", config.value("rope_theta", 10000.0F));
  write_scaling(prefix + "rope.scaling.", config, keys);
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
