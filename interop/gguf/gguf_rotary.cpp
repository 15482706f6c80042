#include "interop/gguf/gguf_rotary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/formats/gguf_file.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

/// Llama 3.1's numbers, which its files do not have.
constexpr double kLowFrequency = 1, kHighFrequency = 4;
constexpr int64_t kOriginalLength = 8192;

constexpr const char* kDivisors = "rope_freqs.weight";
constexpr const char* kShortDivisors = "rope_factors_short.weight";
constexpr const char* kLongDivisors = "rope_factors_long.weight";

std::string key_of(std::string_view name) { return std::string(name); }

/// Keys of positions that are not read here have the values that change nothing.
void check_keys(const GgufArchitecture& architecture, const GgufKeys& keys, const GgufTensorFacts& facts) {
  const auto prefix = architecture.name + ".rope.";
  std::vector<std::string_view> known{"dimension_count",  "freq_base",      "scale_linear",
                                      "scaling.type",     "scaling.factor", "scaling.original_context_length",
                                      "scaling.finetuned"};
  if (!architecture.rotary.local_theta.empty()) known.emplace_back("freq_base_swa");
  if (facts.rotary.contains(kShortDivisors)) known.emplace_back("scaling.attn_factor");
  if (architecture.head_width == GgufHeadWidth::latent) known.emplace_back("scaling.yarn_log_multiplier");
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

/// What a file with divisors of Llama 3.1 says.
void read_llama3(const GgufArchitecture& architecture, const GgufKeys& keys, const torch::Tensor& divisors,
                 Json& config) {
  config["rope_scaling"] = {
      {"rope_type", "llama3"},
      {"factor", divisors.max().item<double>()},
      {"low_freq_factor", kLowFrequency},
      {"high_freq_factor", kHighFrequency},
      {"original_max_position_embeddings",
       keys.integer(architecture.name + ".rope.scaling.original_context_length", kOriginalLength)}};
  const auto expected = rotary_tensors(architecture, config).at(kDivisors);
  if (!torch::allclose(expected, divisors, /*rtol=*/1e-4, /*atol=*/0))
    keys.fail(kDivisors, "not the scaling of Llama 3.1, which is the one that is supported");
}

Json numbers_of(const torch::Tensor& tensor) {
  auto numbers = Json::array();
  const auto flat = tensor.to(torch::kFloat).contiguous();
  for (int64_t i = 0; i < flat.numel(); ++i) numbers.push_back(shortest(flat.const_data_ptr<float>()[i]));
  return numbers;
}

void read_longrope(const GgufArchitecture& architecture, const GgufKeys& keys, const GgufTensorFacts& facts,
                   Json& config) {
  const auto prefix = architecture.name + ".rope.scaling.";
  const auto& short_ones = facts.rotary.at(kShortDivisors);
  const auto found = facts.rotary.find(kLongDivisors);
  const auto original =
      keys.integer(prefix + "original_context_length", keys.integer(architecture.name + ".context_length"));
  config["rope_scaling"] = {
      {"rope_type", "longrope"},
      {"short_factor", numbers_of(short_ones)},
      {"long_factor", numbers_of(found == facts.rotary.end() ? short_ones : found->second)},
      {"attention_factor", keys.number(prefix + "attn_factor", 1)},
      {"factor", 1.0},
      {"original_max_position_embeddings", original}};
}

void read_scaling(const GgufArchitecture& architecture, const GgufKeys& keys, const GgufTensorFacts& facts,
                  int64_t width, Json& config) {
  const auto rotary = architecture.name + ".rope.", prefix = rotary + "scaling.";
  const double factor = keys.number(prefix + "factor", keys.number(rotary + "scale_linear", 0));
  const auto type = scaling_type(keys, prefix, factor);
  for (const auto& [name, divisors] : facts.rotary) {
    if (divisors.dim() != 1 || divisors.size(0) * 2 != width)
      keys.fail(name, "not one number for each two of a head");
  }
  const bool has_long = facts.rotary.contains(kShortDivisors);
  if (facts.rotary.contains(kLongDivisors) && !has_long) keys.fail(kShortDivisors, "missing");
  const auto divisors = facts.rotary.find(kDivisors);
  if (divisors != facts.rotary.end()) {
    if (type != "none" || has_long)
      keys.fail(kDivisors, "not the scaling of Llama 3.1, which is the one that is supported");
    return read_llama3(architecture, keys, divisors->second, config);
  }
  if (has_long && (type == "none" || type == "longrope"))
    return read_longrope(architecture, keys, facts, config);
  if (type == "none") return;
  if (has_long || (type != "linear" && type != "yarn"))
    keys.fail(prefix + "type", fmt::format("'{}' is not supported", excerpt(type)));
  config["rope_scaling"] = {{"rope_type", type}, {"factor", factor == 0 ? 1 : factor}};
  if (type == "yarn") {
    config["rope_scaling"]["original_max_position_embeddings"] =
        keys.integer(prefix + "original_context_length");
  }
}

/// The numbers of a head that are turned.
int64_t rotary_width(const GgufArchitecture& architecture, const Json& config) {
  const auto& names = architecture.rotary;
  if (!names.width.empty()) return config.at(key_of(names.width));
  const int64_t width = gguf_heads(architecture, config).width;
  if (names.fraction.empty()) return width;
  return std::llround(static_cast<double>(width) * config.at(key_of(names.fraction)).get<double>());
}

/// The scaling in a config.json, "none" for none.
std::string type_of(const Json& scaling) {
  return scaling.is_object() ? scaling.value("rope_type", scaling.value("type", "default")) : "none";
}

void write_scaling(const Json& config, const GgufKeyWriter& to) {
  const auto scaling = config.value("rope_scaling", Json());
  const auto type = type_of(scaling);
  const auto original = [&] {
    to.integer("rope.scaling.original_context_length",
               scaling.value("original_max_position_embeddings", kOriginalLength));
  };
  if (type == "llama3") return original();
  if (type == "longrope") {
    to.text("rope.scaling.type", type);
    to.number("rope.scaling.attn_factor", scaling.value("attention_factor", 1.0));
    return original();
  }
  if (type != "linear" && type != "yarn") return;
  to.text("rope.scaling.type", type);
  to.number("rope.scaling.factor", scaling.value("factor", 1.0));
  if (type == "yarn") original();
}

torch::Tensor llama3_divisors(const Json& scaling, double theta, int64_t width) {
  const double factor = scaling.at("factor"), original = scaling.at("original_max_position_embeddings");
  const double low = scaling.at("low_freq_factor"), high = scaling.at("high_freq_factor");
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

}  // namespace

bool is_rotary_tensor(std::string_view stored) {
  return stored == kDivisors || stored == kShortDivisors || stored == kLongDivisors;
}

std::map<std::string, torch::Tensor> rotary_tensors(const GgufArchitecture& architecture,
                                                    const Json& config) {
  const auto scaling = config.value("rope_scaling", Json());
  const auto type = type_of(scaling);
  if (architecture.rotary.theta.empty()) return {};
  if (type == "llama3") {
    return {{kDivisors, llama3_divisors(scaling, config.value(key_of(architecture.rotary.theta), 10000.0),
                                        rotary_width(architecture, config))}};
  }
  if (type != "longrope") return {};
  const auto as_tensor = [&](const char* key) {
    return torch::tensor(scaling.at(key).get<std::vector<double>>()).to(torch::kFloat);
  };
  return {{kShortDivisors, as_tensor("short_factor")}, {kLongDivisors, as_tensor("long_factor")}};
}

void read_gguf_rotary(const GgufArchitecture& architecture, const GgufKeys& keys,
                      const GgufTensorFacts& facts, Json& config) {
  const auto& names = architecture.rotary;
  const auto prefix = architecture.name + ".rope.";
  check_keys(architecture, keys, facts);
  config[key_of(names.theta)] = keys.number(prefix + "freq_base", 10000);
  if (!names.local_theta.empty())
    config[key_of(names.local_theta)] = keys.number(prefix + "freq_base_swa", 10000);
  const int64_t head = gguf_heads(architecture, config).width;
  const int64_t width = keys.integer(prefix + "dimension_count", head);
  if (!names.width.empty()) {
    config[key_of(names.width)] = width;
  } else if (!names.fraction.empty()) {
    config[key_of(names.fraction)] =
        static_cast<double>(width) / static_cast<double>(std::max<int64_t>(head, 1));
  } else if (width != head) {
    keys.fail(prefix + "dimension_count", "positions that turn a part of each head are not supported");
  }
  read_scaling(architecture, keys, facts, width, config);
}

void write_gguf_rotary(const GgufArchitecture& architecture, const Json& config, const GgufKeyWriter& to) {
  const auto& names = architecture.rotary;
  to.integer("rope.dimension_count", rotary_width(architecture, config));
  to.number("rope.freq_base", config.value(key_of(names.theta), 10000.0));
  if (!names.local_theta.empty())
    to.number("rope.freq_base_swa", config.value(key_of(names.local_theta), 10000.0));
  write_scaling(config, to);
}

}  // namespace zoo
