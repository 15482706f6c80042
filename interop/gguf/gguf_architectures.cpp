#include "interop/gguf/gguf_architectures.h"

#include <algorithm>
#include <iterator>

#include "interop/gguf/gguf_families.h"

namespace zoo {
namespace {

std::vector<GgufArchitecture> make_all() {
  std::vector<GgufArchitecture> all;
  for (auto* const part : {gguf_llama_kindred, gguf_mixtures, gguf_parallel_decoders, gguf_encoders}) {
    auto some = part();
    std::ranges::move(some, std::back_inserter(all));
  }
  return all;
}

}  // namespace

const std::vector<GgufArchitecture>& gguf_architectures() {
  static const auto architectures = make_all();
  return architectures;
}

const GgufArchitecture* find_gguf_architecture(const GgufKeys& keys) {
  const auto name = keys.text("general.architecture");
  const auto& all = gguf_architectures();
  const auto found = std::ranges::find_if(all, [&](const GgufArchitecture& one) {
    return one.name == name && (one.is_meant == nullptr || one.is_meant(keys));
  });
  return found == all.end() ? nullptr : &*found;
}

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  const auto& all = gguf_architectures();
  const auto found = std::ranges::find(all, name, &GgufArchitecture::name);
  return found == all.end() ? nullptr : &*found;
}

const GgufArchitecture* gguf_architecture_of(std::string_view model_type) {
  const auto& all = gguf_architectures();
  const auto found = std::ranges::find(all, model_type, &GgufArchitecture::model_type);
  return found == all.end() ? nullptr : &*found;
}

GgufHeads gguf_heads(const GgufArchitecture& architecture, const nlohmann::json& config) {
  const auto number = [&](std::string_view key, int64_t otherwise) {
    const auto found = config.find(std::string(key));
    return found == config.end() || found->is_null() ? otherwise : found->get<int64_t>();
  };
  const auto by_stored = [&](std::string_view stored) {
    const auto found = std::ranges::find(architecture.keys, stored, &GgufKeyName::stored);
    return found == architecture.keys.end() ? 0 : number(found->foreign, 0);
  };
  GgufHeads heads{.d_model = by_stored("embedding_length"), .n_heads = by_stored("attention.head_count")};
  heads.n_kv_heads =
      architecture.kv_heads.empty() ? heads.n_heads : number(architecture.kv_heads, heads.n_heads);
  heads.width = number("head_dim", heads.d_model / std::max<int64_t>(heads.n_heads, 1));
  heads.plain_width = number("qk_nope_head_dim", 0);
  heads.value_width = number("v_head_dim", 0);
  return heads;
}

GgufVariant variant_of(const nlohmann::json& config) {
  const bool is_full = config.value("feed_forward_proj", "").starts_with("gated-") ||
                       config.value("num_ln_in_parallel_attn", nlohmann::json()) == 2;
  return is_full ? GgufVariant::full : GgufVariant::simple;
}

bool is_in_left_out_head(const GgufArchitecture& architecture, std::string_view foreign) {
  return std::ranges::any_of(architecture.head_modules,
                             [&](std::string_view module) { return foreign.starts_with(module); });
}

}  // namespace zoo
