#include "interop/families/common.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/mixers/window.h"
#include "tasks/experiment.h"

namespace zoo {
namespace {

struct NamedActivation {
  std::string_view name;
  Activation plain;
  std::optional<Activation> gated;
};

/// The first name of an activation is the one that is written.
constexpr auto kActivations = std::to_array<NamedActivation>({
    {"relu", Activation::relu, Activation::reglu},
    {"gelu", Activation::gelu, Activation::geglu},
    {"gelu_python", Activation::gelu, Activation::geglu},
    {"gelu_new", Activation::gelu_tanh, Activation::geglu_tanh},
    {"gelu_pytorch_tanh", Activation::gelu_tanh, Activation::geglu_tanh},
    {"gelu_fast", Activation::gelu_tanh, Activation::geglu_tanh},
    {"quick_gelu", Activation::quick_gelu, std::nullopt},
    {"silu", Activation::silu, Activation::swiglu},
    {"swish", Activation::silu, Activation::swiglu},
});

const NamedActivation& find_activation(ForeignConfig& from, std::string_view key,
                                       const std::string& default_name) {
  const auto name = from.text(key, default_name);
  const auto* const found = std::ranges::find(kActivations, name, &NamedActivation::name);
  if (found == kActivations.end()) from.fail(key, "this activation is not known");
  return *found;
}

/// The shortest list that repeats over `values`.
std::vector<bool> shortest_period(const std::vector<bool>& values) {
  size_t period = 1;
  const auto repeats = [&] {
    for (size_t i = period; i < values.size(); ++i) {
      if (values[i] != values[i - period]) return false;
    }
    return true;
  };
  while (period < values.size() && !repeats()) ++period;
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(period, values.size()))};
}

/// Whether auto_map names the program that transformers has itself: the authors published their model before
/// it was there, as "modeling_phi3.Phi3ForCausalLM" of model_type phi3, or without the version of the family,
/// as "modeling_deepseek" of deepseek_v3. transformers then takes its own.
bool has_usual_program(const nlohmann::json& config) {
  const auto type = config.value("model_type", std::string());
  const auto& map = config.at("auto_map");
  if (!map.is_object()) return false;
  for (const auto& [key, entry] : map.items()) {
    if (key == "AutoTokenizer") continue;  // its files are read
    if (!entry.is_string()) return false;
    auto name = entry.get<std::string>();
    if (const auto repository = name.find("--"); repository != name.npos) name.erase(0, repository + 2);
    const auto is_of = [&](const std::string& family) {
      return name.starts_with("configuration_" + family + ".") ||
             name.starts_with("modeling_" + family + ".");
    };
    if (!is_of(type) && !is_of(type.substr(0, type.find("_v")))) return false;
  }
  return true;
}

}  // namespace

void ignore_common_keys(ForeignConfig& config) {
  // Where a file comes from, and in what types it is opened.
  config.ignore({"transformers_version", "torch_dtype", "dtype", "_name_or_path", "_commit_hash",
                 "_attn_implementation", "_attn_implementation_autoset", "attn_implementation",
                 "unsloth_version", "unsloth_fixed", "transformers.js_config", "use_bfloat16",
                 "torchscript"});
  // Tokens and labels, which are read elsewhere.
  config.ignore({"tokenizer_class", "id2label", "label2id", "num_labels", "_num_labels", "model_max_length",
                 "eos_token_ids", "bos_token", "eos_token", "pad_token", "unk_token", "prefix",
                 "task_specific_params", "finetuning_task"});
  // The first values of weights, the form of outputs, and what other keys say again.
  config.ignore({"initializer_range", "initializer_factor", "is_decoder", "is_encoder_decoder",
                 "output_attentions", "output_hidden_states", "return_dict", "chunk_size_feed_forward",
                 "tie_encoder_decoder", "cross_attention_hidden_size", "tf_legacy_loss",
                 "gradient_checkpointing", "output_past", "use_return_dict"});
  config.require("pruned_heads", nlohmann::json::object());
  // It would need a program of the author's.
  if (config.has("auto_map") && !has_usual_program(config.json()))
    config.fail("auto_map", "this is not supported");
  config.ignore({"auto_map"});
}

// Older versions wrote these into config.json, whatever the model is.
void ignore_generation_keys(ForeignConfig& config) {
  // Sampling and beams.
  config.ignore({"do_sample", "temperature", "top_k", "top_p", "min_p", "typical_p", "num_beams",
                 "num_beam_groups", "diversity_penalty", "length_penalty", "repetition_penalty",
                 "encoder_no_repeat_ngram_size", "no_repeat_ngram_size", "early_stopping",
                 "num_return_sequences"});
  // Lengths, single tokens, and the form of outputs.
  config.ignore({"max_new_tokens", "min_new_tokens", "max_length", "min_length", "output_scores",
                 "return_dict_in_generate", "remove_invalid_values", "exponential_decay_length_penalty",
                 "suppress_tokens", "begin_suppress_tokens", "bad_words_ids", "forced_bos_token_id",
                 "forced_decoder_ids", "forced_eos_token_id", "sep_token_id", "use_cache"});
}

Activation read_activation(ForeignConfig& from, std::string_view key, const std::string& default_name) {
  return find_activation(from, key, default_name).plain;
}

Activation read_gated_activation(ForeignConfig& from, std::string_view key, const std::string& default_name) {
  const auto& gated = find_activation(from, key, default_name).gated;
  if (!gated) from.fail(key, "this activation has no gate");
  return *gated;
}

std::string foreign_name(const KindSelection<Activation>& activation) {
  const auto* const found = std::ranges::find_if(kActivations, [&](const NamedActivation& named) {
    return activation == named.plain || (named.gated && activation == *named.gated);
  });
  if (found == kActivations.end()) {
    throw UsageError(fmt::format(
        "model.activation {} is a type of this program: no family of transformers has it", activation.type));
  }
  return std::string(found->name);
}

namespace {

/// YaRN's factor on cosine and sine, if a file gives one: itself, or by the two numbers of DeepSeek.
std::optional<double> yarn_amplitude(ForeignConfig& scaling, double factor) {
  const auto given = scaling.optional_number("attention_factor");
  const double mscale = scaling.number("mscale", 0), all_dim = scaling.number("mscale_all_dim", 0);
  if (given || mscale == 0 || all_dim == 0) return given;
  const auto logarithmic = [&](double scale) { return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1; };
  return logarithmic(mscale) / logarithmic(all_dim);
}

/// The angles are those of short texts, and longer ones are refused: transformers turns a whole text by other
/// angles once it is longer.
void read_longrope(ForeignConfig& scaling, int64_t original, ModelConfig& to) {
  auto& rotary = to.rotary;
  rotary.scaling = RotaryScaling::longrope;
  const double factor = scaling.number(
      "factor", static_cast<double>(to.max_positions) / static_cast<double>(std::max<int64_t>(original, 1)));
  const double usual =
      factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original)));
  rotary.attention_factor = scaling.number("attention_factor", usual);
  rotary.divisors = scaling.numbers("short_factor");
  if (rotary.divisors.empty()) scaling.fail("short_factor", "expected a list of numbers");
  scaling.ignore({"long_factor"});
  to.max_positions = std::min(to.max_positions, original);
}

/// What stands in rope_scaling, or in rope_parameters beside the base. `original`: the length of the first
/// training, if it stands outside.
void read_scaling(ForeignConfig& scaling, std::optional<int64_t> original, const RotaryDefaults& defaults,
                  ModelConfig& to) {
  auto& rotary = to.rotary;
  // Older files name the kind "type".
  const auto kind = scaling.has("rope_type") ? scaling.text("rope_type") : scaling.text("type", "default");
  scaling.ignore({"type", "rope_type", "finetuned"});
  if (defaults.fraction)
    rotary.fraction = scaling.number("partial_rotary_factor", rotary.fraction);
  else
    scaling.require("partial_rotary_factor", 1.0);
  // No text that is read is longer than max_position_embeddings, and up to there nothing is scaled.
  if (kind == "dynamic") scaling.ignore({"factor", "alpha", "original_max_position_embeddings"});
  // transformers writes this key for kinds that do not use it, too.
  if (kind == "default" || kind == "linear") scaling.ignore({"original_max_position_embeddings"});
  if (kind == "default" || kind == "dynamic") return scaling.finish();
  const auto original_length = [&] {
    const int64_t inside = scaling.integer("original_max_position_embeddings", to.max_positions);
    return original.value_or(inside);
  };
  if (kind == "longrope" || kind == "su") {
    read_longrope(scaling, original_length(), to);
    return scaling.finish();
  }
  rotary.factor = scaling.number("factor");
  if (kind == "linear") {
    rotary.scaling = RotaryScaling::linear;
  } else if (kind == "llama3") {
    rotary.scaling = RotaryScaling::llama3;
    rotary.low_frequency_factor = scaling.number("low_freq_factor");
    rotary.high_frequency_factor = scaling.number("high_freq_factor");
    rotary.original_max_positions = original_length();
  } else if (kind == "yarn") {
    rotary.scaling = RotaryScaling::yarn;
    rotary.original_max_positions = original_length();
    rotary.attention_factor = yarn_amplitude(scaling, rotary.factor);
    rotary.beta_fast = scaling.number("beta_fast", 32);
    rotary.beta_slow = scaling.number("beta_slow", 1);
    rotary.rounded = scaling.flag("truncate", true);
  } else {
    scaling.fail(scaling.has("rope_type") ? "rope_type" : "type",
                 "only default, linear, dynamic, llama3, yarn and longrope are supported");
  }
  // A factor of 1 scales nothing, and our configuration then has no scaling.
  if (rotary.factor == 1) {
    const auto read = std::exchange(rotary, RotaryConfig());
    rotary.theta = read.theta;
    rotary.fraction = read.fraction;
  }
  scaling.finish();
}

}  // namespace

bool fills_masks(const Experiment& experiment) { return experiment.task.type == "masked_language_modeling"; }

void require_gelu_to_fill_masks(const ForeignConfig& from, const Experiment& to) {
  if (fills_masks(to) && to.model.activation != Activation::gelu)
    from.fail("hidden_act", "only gelu is supported with a head for masked tokens");
}

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

void read_rotary(ForeignConfig& from, const RotaryDefaults& defaults, ModelConfig& to) {
  to.position = Position::rotary;
  to.rotary.theta = from.number(defaults.theta_key, defaults.theta);
  if (defaults.fraction) to.rotary.fraction = from.number(defaults.fraction_key, *defaults.fraction);
  const auto original = from.optional_integer("original_max_position_embeddings");
  auto parameters = from.object("rope_parameters");
  auto scaling = from.object("rope_scaling");
  if (parameters && scaling) from.fail("rope_scaling", "rope_parameters says how positions are scaled, too");
  if (!parameters) {
    if (scaling) read_scaling(*scaling, original, defaults, to);
    return;
  }
  // Of a model whose layers with windows have angles of their own there is an object for each kind of layer.
  if (auto windows = parameters->object("sliding_attention")) {
    to.rotary.local_theta = windows->number("rope_theta", defaults.theta);
    windows->require("rope_type", "default");
    windows->require("partial_rotary_factor", 1.0);
    windows->finish();
  }
  auto full = parameters->object("full_attention");
  if (!full && to.rotary.local_theta) parameters->fail("full_attention", "is missing");
  auto& values = full ? *full : *parameters;
  to.rotary.theta = values.number("rope_theta", to.rotary.theta);
  read_scaling(values, original, defaults, to);
  parameters->finish();
}

void write_rotary(const ModelConfig& from, nlohmann::json& to) {
  const auto& rotary = from.rotary;
  to.erase("rope_parameters");  // every version of transformers reads the older keys
  to["rope_theta"] = rotary.theta;
  to["rope_scaling"] = nullptr;
  if (rotary.scaling == RotaryScaling::none) return;
  if (rotary.scaling == RotaryScaling::longrope) {
    to["rope_scaling"] = {{"rope_type", name_of(rotary.scaling)},
                          {"factor", 1.0},
                          {"attention_factor", rotary.attention_factor.value_or(1.0)},
                          {"short_factor", rotary.divisors},
                          {"long_factor", rotary.divisors},
                          {"original_max_position_embeddings", from.max_positions}};
    return;
  }
  nlohmann::json scaling = {{"rope_type", name_of(rotary.scaling)}, {"factor", rotary.factor}};
  if (rotary.scaling == RotaryScaling::llama3) {
    scaling["low_freq_factor"] = rotary.low_frequency_factor;
    scaling["high_freq_factor"] = rotary.high_frequency_factor;
  }
  if (rotary.scaling == RotaryScaling::llama3 || rotary.scaling == RotaryScaling::yarn)
    scaling["original_max_position_embeddings"] = rotary.original_max_positions;
  if (rotary.scaling == RotaryScaling::yarn) {
    scaling["beta_fast"] = rotary.beta_fast;
    scaling["beta_slow"] = rotary.beta_slow;
    if (rotary.attention_factor) scaling["attention_factor"] = *rotary.attention_factor;
    if (!rotary.rounded) scaling["truncate"] = false;
  }
  to["rope_scaling"] = std::move(scaling);
}

void set_turns(const std::vector<bool>& is_turned, ModelConfig& to) {
  const auto turns = shortest_period(is_turned);
  to.rotary.turns.assign(turns.begin(), turns.end());
  if (turns == std::vector<bool>{true}) to.rotary.turns.clear();
}

std::vector<bool> windows_with_period(int64_t n_layers, int64_t period) {
  std::vector<bool> result;
  for (int64_t layer = 0; layer < n_layers; ++layer) result.push_back((layer + 1) % period != 0);
  return result;
}

std::vector<bool> read_windows(ForeignConfig& from, const std::vector<bool>& rule) {
  const auto types = from.texts("layer_types");
  if (types.empty()) return rule;
  if (types.size() != rule.size()) from.fail("layer_types", "has not one entry for each layer");
  std::vector<bool> result;
  for (const auto& type : types) {
    if (type != "full_attention" && type != "sliding_attention")
      from.fail("layer_types", "only full_attention and sliding_attention are supported");
    result.push_back(type == "sliding_attention");
  }
  return result;
}

nlohmann::json layer_types_of(const ModelConfig& model) {
  auto types = nlohmann::json::array();
  for (const bool is_window : windows_of(model))
    types.push_back(is_window ? "sliding_attention" : "full_attention");
  return types;
}

void set_windows(const std::vector<bool>& is_window, int64_t size, ModelConfig& to) {
  to.attention.clear();
  for (const bool is : shortest_period(is_window))
    to.attention.push_back(is ? Selection("window", WindowConfig{.size = size - 1}) : Selection("full"));
}

nlohmann::json window_value(const ModelConfig& model) {
  const auto size = window_of(model);
  return size ? nlohmann::json(*size) : nlohmann::json(nullptr);
}

double reciprocal_of(double x) {
  const double usual = 1 / x;
  for (const double y : {usual, std::nextafter(usual, 0.0), std::nextafter(usual, 2 * usual)}) {
    if (1 / y == x) return y;
  }
  return usual;
}

void add_stacked_attention(const ModelConfig& model, const std::string& ours, const std::string& theirs,
                           int64_t n_groups, TensorRules& rules) {
  const int64_t q_rows = model.n_heads * model.head_width(), kv_rows = model.kv_heads() * model.head_width();
  const RowGroups groups{.count = n_groups, .sections = {q_rows, kv_rows, kv_rows}};
  // Our model has qkv, or q, k and v.
  if (n_groups == 1) {
    rules.module(ours + "qkv", theirs);
    rules.modules({ours + "q", ours + "k", ours + "v"}, {theirs});
    return;
  }
  rules.grouped({ours + "qkv"}, theirs, groups);
  rules.grouped({ours + "q", ours + "k", ours + "v"}, theirs, groups);
}

void add_decoder_heads(const Experiment& experiment, const std::string& output, const std::string& table,
                       TensorRules& rules) {
  rules.module("head.output", output);
  rules.module("head.classifier", "score");
  if (experiment.model.tie_embeddings) rules.tied(output + ".weight", table + ".weight");
  if (experiment.task.type == "language_modeling") return;
  rules.ignore(output + ".weight");
  if (experiment.model.output_bias) rules.ignore(output + ".bias");
}

void add_masked_head(const Experiment& experiment, const MaskedHeadNames& names, TensorRules& rules) {
  const auto& output = names.output;
  rules.module("head.transform", names.transform);
  rules.module("head.norm", names.norm);
  rules.tensor("head.output.bias", output + "bias");
  rules.tensor("head.output.weight", output + "decoder.weight");
  rules.copy(output + "decoder.bias", output + "bias");
  if (experiment.model.tie_embeddings) rules.tied(output + "decoder.weight", names.table + ".weight");
}

void add_stacked_gate(const std::string& ours, const std::string& theirs, TensorRules& rules) {
  rules.module(ours + "gate_up", theirs);
  rules.modules({ours + "gate", ours + "up"}, {theirs});
}

std::vector<bool> windows_of(const ModelConfig& model) {
  std::vector<bool> result;
  for (int64_t layer = 0; layer < model.n_layers; ++layer)
    result.push_back(model.attention_of(layer).type == "window");
  return result;
}

std::optional<int64_t> window_of(const ModelConfig& model) {
  for (const auto& selection : model.attention) {
    if (selection.type == "window") return selection.as<WindowConfig>().size + 1;
  }
  return std::nullopt;
}

}  // namespace zoo
