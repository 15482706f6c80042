#include "interop/gguf/gguf_config.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/gguf/gguf_rotary.h"
#include "text/gguf/gguf_tokenizer.h"

namespace zoo {
namespace {

using Json = nlohmann::json;
using Kind = GgufKeyName::Kind;

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

void read_heads(const GgufArchitecture& architecture, const GgufKeys& keys, Json& config) {
  if (architecture.head_width == GgufHeadWidth::latent) return;
  const auto attention = architecture.name + ".attention.";
  const auto heads = gguf_heads(architecture, config);
  const int64_t kv_heads = keys.integer(attention + "head_count_kv", heads.n_heads);
  if (!architecture.kv_heads.empty()) {
    config[std::string(architecture.kv_heads)] = kv_heads;
  } else if (kv_heads != heads.n_heads) {
    keys.fail(attention + "head_count_kv",
              "fewer heads of keys and values than of queries are not supported");
  }
  const int64_t width = keys.integer(attention + "key_length", heads.width);
  if (keys.integer(attention + "value_length", width) != width)
    keys.fail(attention + "value_length", "values are not as wide as keys");
  if (architecture.head_width == GgufHeadWidth::of_key) {
    config["head_dim"] = width;
  } else if (width != heads.width) {
    keys.fail(attention + "key_length",
              "another width than that of the model over the number of heads is not supported");
  }
}

void write_heads(const GgufArchitecture& architecture, const Json& config, const GgufKeyWriter& to) {
  const bool has_keys = !architecture.kv_heads.empty() || !architecture.rotary.theta.empty();
  if (architecture.head_width == GgufHeadWidth::latent || !has_keys) return;
  const auto heads = gguf_heads(architecture, config);
  to.integer("attention.head_count_kv", heads.n_kv_heads);
  to.integer("attention.key_length", heads.width);
  to.integer("attention.value_length", heads.width);
}

/// What llama.cpp makes of the vectors of a text's tokens, of which models of a rank are others than ours.
enum class GgufPooling { none = 0, mean = 1, cls = 2, last = 3 };

void read_encoder(const GgufArchitecture& architecture, const GgufKeys& keys) {
  const auto causal = architecture.name + ".attention.causal";
  if (keys.flag(causal, false)) keys.fail(causal, "an encoder that sees no later tokens is not supported");
  const auto pooling = architecture.name + ".pooling_type";
  if (const int64_t type = keys.integer(pooling, 0);
      type < 0 || type > static_cast<int64_t>(GgufPooling::last))
    keys.fail(pooling, fmt::format("{} is not supported: only the vectors of tokens are read", type));
}

/// `zoo embed` takes the mean over the tokens, so the file asks for it.
void write_encoder(const GgufKeyWriter& to) {
  to.flag("attention.causal", false);
  to.integer("pooling_type", static_cast<int64_t>(GgufPooling::mean));
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
    auto& value = config[std::string(foreign)];
    switch (kind) {
      case Kind::integer:
        value = keys.integer(key);
        break;
      case Kind::number:
        value = keys.number(key);
        break;
      case Kind::flag:
        value = keys.flag(key, false);
        break;
    }
  }
  for (const auto& [foreign, value] : architecture.fixed) config[std::string(foreign)] = value;
  config["tie_word_embeddings"] = facts.is_tied;
  if (architecture.body != GgufBody::encoder_decoder) read_heads(architecture, keys, config);
  if (architecture.body == GgufBody::encoder) read_encoder(architecture, keys);
  if (!architecture.rotary.theta.empty()) read_gguf_rotary(architecture, keys, facts, config);
  if (architecture.read != nullptr) architecture.read(keys, facts, config);
  keys.finish(architecture.name + ".");
  return config;
}

GgufMetadata gguf_keys_of(const GgufArchitecture& architecture, const Json& config) {
  GgufMetadata keys;
  const GgufKeyWriter own(architecture.name, keys);
  own.integer("vocab_size", config.at("vocab_size"));
  for (const auto& [stored, foreign, kind] : architecture.keys) {
    const auto value = config.value(std::string(foreign), Json());
    if (value.is_null()) {
      throw ConfigError(fmt::format("llama.cpp cannot express this model: its architecture {} needs {}",
                                    architecture.name, foreign));
    }
    switch (kind) {
      case Kind::integer:
        own.integer(stored, value);
        break;
      case Kind::number:
        own.number(stored, value);
        break;
      case Kind::flag:
        own.flag(stored, value);
        break;
    }
  }
  write_heads(architecture, config, own);
  if (architecture.body == GgufBody::encoder) write_encoder(own);
  if (!architecture.rotary.theta.empty()) write_gguf_rotary(architecture, config, own);
  if (architecture.write != nullptr) architecture.write(config, own);
  return keys;
}

}  // namespace zoo
