#include "interop/foreign_generation.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "interop/foreign_files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

int64_t token_id(ForeignConfig& from, std::string_view key) {
  const auto id = from.optional_integer(key);
  // Some files have -1 for "none".
  if (!id || *id == -1) return -1;
  if (*id < 0) from.fail(key, "not a token id");
  return *id;
}

/// A list of token ids in a list of them, or with other things.
std::vector<int64_t> token_ids(const ForeignConfig& from, std::string_view key, const Json& list) {
  const auto is_id = [](const Json& id) { return id.is_number_integer() && id.get<int64_t>() >= 0; };
  if (!list.is_array() || list.empty() || !std::ranges::all_of(list, is_id))
    from.fail(key, "expected lists of token ids");
  return list.get<std::vector<int64_t>>();
}

/// The entries of a list; none if the key is missing or null.
std::vector<Json> entries_of(ForeignConfig& from, std::string_view key) {
  from.ignore({key});
  if (!from.has(key)) return {};
  const auto& value = *from.json().find(key);
  if (!value.is_array()) from.fail(key, "expected a list");
  return value.get<std::vector<Json>>();
}

void read_tokens(ForeignConfig& from, ForeignGeneration& to) {
  to.bos = token_id(from, "bos_token_id");
  to.pad = token_id(from, "pad_token_id");
  to.start = token_id(from, "decoder_start_token_id");
  to.ends = from.integer_or_integers("eos_token_id");
  std::erase(to.ends, -1);
  if (std::ranges::any_of(to.ends, [](int64_t id) { return id < 0; }))
    from.fail("eos_token_id", "not a token id");
  from.ignore({"sep_token_id"});
}

/// bad_words_ids: single tokens are never generated, of longer sequences the last token. An end token cannot
/// be forbidden so.
void read_forbidden_sequences(ForeignConfig& from, ForeignGeneration& to) {
  for (const auto& entry : entries_of(from, "bad_words_ids")) {
    auto ids = token_ids(from, "bad_words_ids", entry);
    if (ids.size() > 1) {
      to.options.sequence_biases.push_back({.tokens = std::move(ids)});
    } else if (std::ranges::find(to.ends, ids.front()) == to.ends.end()) {
      to.options.suppress_tokens.push_back(ids.front());
    }
  }
  for (const auto& entry : entries_of(from, "sequence_bias")) {
    if (!entry.is_array() || entry.size() != 2 || !entry[1].is_number())
      from.fail("sequence_bias", "expected pairs of a list of token ids and a number");
    to.options.sequence_biases.push_back(
        {.tokens = token_ids(from, "sequence_bias", entry[0]), .bias = entry[1].get<double>()});
  }
}

void read_named_tokens(ForeignConfig& from, ForeignGeneration& to) {
  auto& options = to.options;
  if (const auto id = token_id(from, "forced_bos_token_id"); id >= 0) options.forced_first_token = id;
  // Files of 2020 say so that it is the first token.
  if (from.flag("force_bos_token_to_be_generated", false) && to.bos >= 0) options.forced_first_token = to.bos;
  const auto last = from.integer_or_integers("forced_eos_token_id");
  if (last.size() > 1) from.fail("forced_eos_token_id", "only one token is supported");
  if (!last.empty() && last.front() != -1) options.forced_last_token = last.front();
  options.suppress_tokens = from.integers("suppress_tokens");
  read_forbidden_sequences(from, to);
}

void read_lengths(ForeignConfig& from, GenerationConfig& to) {
  to.max_new_tokens = from.optional_integer("max_new_tokens");
  to.max_length = from.optional_integer("max_length");
  to.min_length = from.integer("min_length", 0);
  // In transformers it goes before min_length.
  if (const auto least = from.optional_integer("min_new_tokens")) {
    to.min_new_tokens = *least;
    to.min_length = 0;
  }
  if (from.has("stop_strings")) {
    const auto& stop = from.json()["stop_strings"];
    to.stop = stop.is_string() ? std::vector{stop.get<std::string>()} : from.texts("stop_strings");
  }
  from.ignore({"stop_strings"});
  if (const auto decay = entries_of(from, "exponential_decay_length_penalty"); !decay.empty()) {
    if (decay.size() != 2 || !decay[0].is_number() || !decay[1].is_number())
      from.fail("exponential_decay_length_penalty", "expected a start and a factor");
    to.exponential_decay_length_penalty = {decay[0].get<double>(), decay[1].get<double>()};
  }
}

/// Reads the keys that mean the same in transformers.
class SameKeysReader final : public SilentVisitor {
 public:
  SameKeysReader(ForeignConfig& from, bool samples) : from_(from), samples_(samples) {}

 protected:
  void leaf(const FieldInfo& field, bool& value) override {
    take(field, value, [&](auto name) { return from_.flag(name, value); });
  }
  void leaf(const FieldInfo& field, int64_t& value) override {
    take(field, value, [&](auto name) { return from_.integer(name, value); });
  }
  void leaf(const FieldInfo& field, double& value) override {
    take(field, value, [&](auto name) { return from_.number(name, value); });
  }
  void leaf(const FieldInfo& field, std::vector<int64_t>& value) override {
    take(field, value, [&](auto name) { return from_.integers(name); });
  }

 private:
  template <class T, class Read>
  void take(const FieldInfo& field, T& value, const Read& read) const {
    const auto name = field.name_in(&Elsewhere::transformers);
    if (name.empty()) return;
    auto found = read(name);
    if (field.elsewhere.use != OptionUse::sampling || samples_) value = std::move(found);
  }

  ForeignConfig& from_;
  bool samples_;
};

/// transformers samples only if do_sample says so, and then among 50 tokens if top_k says nothing.
void read_sampling(ForeignConfig& from, GenerationConfig& to) {
  constexpr int64_t usual_top_k = 50;
  const bool samples = from.flag("do_sample", false);
  SameKeysReader same_keys(from, samples);
  describe(same_keys, to);
  to.temperature = from.number("temperature", 1);
  if (!samples) to.temperature = 0;
  const int64_t top_k = from.integer("top_k", usual_top_k);
  to.top_k = samples ? top_k : 0;
  if (samples && from.has("top_h")) from.fail("top_h", "this way of sampling is not supported");
  from.ignore({"top_h"});
  if (samples && to.beam > 1)
    from.fail("do_sample", "beams that sample are not supported: set it to false, or num_beams to 1");
  // Contrastive search is greedy.
  if (!samples && top_k > 1 && to.beam == 1 && from.number("penalty_alpha", 0) > 0)
    from.fail("penalty_alpha", "contrastive search is not supported: remove the key");
  from.ignore({"penalty_alpha"});
}

void read_beams(ForeignConfig& from, GenerationConfig& to) {
  to.beam_groups = from.integer("num_beam_groups", 1);
  const double diversity = from.number("diversity_penalty", 0);
  if (to.beam_groups > 1) to.diversity_penalty = diversity;
  // Beams end in transformers' own way unless the file says otherwise.
  to.early_stopping = EarlyStopping::heuristic;
  from.ignore({"early_stopping"});
  if (!from.has("early_stopping")) return;
  const auto& stopping = *from.json().find("early_stopping");
  if (stopping == true) {
    to.early_stopping = EarlyStopping::first_finished;
  } else if (stopping == "never") {
    to.early_stopping = EarlyStopping::never;
  } else if (stopping != false) {
    from.fail("early_stopping", "expected true, false or \"never\"");
  }
}

/// The token of `name` in an object of names and ids, as Whisper's languages and tasks; -1 if there is none.
int64_t named_token(const ForeignConfig& from, std::string_view key, const std::string& name) {
  const auto names = from.json().find(key);
  if (names == from.json().end() || !names->is_object() || !names->contains(name)) return -1;
  const auto& id = (*names)[name];
  if (!id.is_number_integer()) from.fail(key, "not the ids of tokens by their names");
  return id.get<int64_t>();
}

/// The tokens that a model of recordings reads before an output: those that are forced, or Whisper's language
/// (English if there is none), task (to transcribe) and the token that says that no times are written.
void read_start_tokens(ForeignConfig& from, GenerationConfig& to) {
  std::vector<int64_t> ids;
  bool is_whole = true;
  for (const auto& entry : entries_of(from, "forced_decoder_ids")) {
    const bool is_pair =
        entry.is_array() && entry.size() == 2 && entry[0] == static_cast<int64_t>(ids.size()) + 1;
    is_whole = is_whole && is_pair && entry[1].is_number_integer();
    if (is_whole) ids.push_back(entry[1].get<int64_t>());
  }
  if (is_whole) to.start_tokens = std::move(ids);
  const auto none = token_id(from, "no_timestamps_token_id");
  // "en" and "<|en|>" are said alike.
  auto language = from.optional_text("language").value_or("en");
  if (!language.starts_with("<|")) language = "<|" + language + "|>";
  const auto task = from.optional_text("task").value_or("transcribe");
  const bool is_multilingual = from.flag("is_multilingual", from.has("lang_to_id"));
  from.ignore({"lang_to_id", "task_to_id"});
  if (!is_multilingual) return;
  if (const int64_t id = named_token(from, "lang_to_id", language); id >= 0) {
    to.start_tokens = {id};
    if (const int64_t what = named_token(from, "task_to_id", task); what >= 0)
      to.start_tokens.push_back(what);
    if (none >= 0) to.start_tokens.push_back(none);
  }
}

/// The keys of Whisper. Those that only matter where times are written, or recordings are longer than 30
/// seconds, change nothing.
void read_keys_of_whisper(ForeignConfig& from, GenerationConfig& to) {
  read_start_tokens(from, to);
  if (const auto latest = from.optional_integer("max_initial_timestamp_index"))
    to.max_initial_timestamp = *latest;
  from.require("return_timestamps", false);
  for (const auto* const key : {"compression_ratio_threshold", "logprob_threshold", "no_speech_threshold"}) {
    if (from.has(key)) from.fail(key, "repeated attempts at another temperature are not supported");
  }
  from.ignore({"alignment_heads", "prev_sot_token_id", "median_filter_width", "return_token_timestamps",
               "condition_on_prev_tokens", "prompt_condition_type", "return_segments", "num_segment_frames",
               "time_precision", "compression_ratio_threshold", "logprob_threshold", "no_speech_threshold"});
}

/// Keys that would change the outputs in ways that are not here.
void refuse_others(ForeignConfig& from) {
  from.require("guidance_scale", 1);
  from.require("token_healing", false);
  for (const auto* const key : {"watermarking_config", "dola_layers", "constraints", "force_words_ids",
                                "max_time", "custom_generate"}) {
    if (from.has(key)) from.fail(key, "this is not supported: remove the key");
    from.ignore({key});
  }
}

/// Keys that say what is returned, or how the same outputs are computed faster or with less memory. Values
/// that are not numbers (remove_invalid_values) are an error here in any case.
void ignore_others(ForeignConfig& from) {
  from.ignore({"use_cache", "cache_implementation", "cache_config", "max_cache_len", "return_legacy_cache",
               "prefill_chunk_size", "compile_config", "disable_compile", "continuous_batching_config",
               "low_memory", "output_attentions", "output_hidden_states", "output_scores", "output_logits",
               "return_dict_in_generate", "remove_invalid_values"});
  from.ignore({"is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule",
               "assistant_confidence_threshold", "assistant_early_exit", "assistant_lookbehind",
               "target_lookbehind", "assistant_ensemble_weight", "speculation_type",
               "prompt_lookup_num_tokens", "max_matching_ngram_size", "use_mtp"});
}

/// Keys of generation_config.json alone: where it comes from.
void ignore_origin(ForeignConfig& from) {
  from.ignore({"transformers_version", "_from_model_config", "_commit_hash", "_name_or_path",
               "_original_object_hash", "trust_remote_code", "transformers.js_config"});
}

void read_keys(ForeignConfig& from, bool is_whisper, ForeignGeneration& to) {
  read_tokens(from, to);
  read_named_tokens(from, to);
  read_lengths(from, to.options);
  read_sampling(from, to.options);
  read_beams(from, to.options);
  if (is_whisper) {
    read_keys_of_whisper(from, to.options);
  } else {
    from.require("forced_decoder_ids", Json::array());
  }
  refuse_others(from);
  ignore_others(from);
}

}  // namespace

ForeignGeneration read_generation(const fs::path& dir, const std::map<std::string, std::string>& files,
                                  ForeignConfig& config) {
  const auto type = config.json().find("model_type");
  const bool is_whisper = type != config.json().end() && *type == "whisper";
  ForeignGeneration result;
  const auto found = files.find("generation_config.json");
  if (found == files.end()) {
    result.place = config.place();
    read_keys(config, is_whisper, result);
    return result;
  }
  const auto path = dir / found->first;
  ForeignConfig own(path.string(), parse_foreign_json(path, found->second));
  result.place = own.place();
  read_keys(own, is_whisper, result);
  config.ignore_keys_of(own);
  ignore_origin(own);
  own.finish();
  // As in transformers: what it does not say, nothing says, but a decoder has to begin with some token.
  result.options.ignore_eos = result.ends.empty();
  if (result.start < 0 && result.bos < 0) result.start = token_id(config, "decoder_start_token_id");
  return result;
}

namespace {

using OrderedJson = nlohmann::ordered_json;

void write_tokens(const GenerationConfig& options, const Tokenizer& tokenizer, OrderedJson& to) {
  const auto& special = tokenizer.special();
  const auto set = [&](const char* key, int64_t id) {
    if (id >= 0) to[key] = id;
  };
  set("bos_token_id", special.bos);
  set("pad_token_id", special.pad);
  set("decoder_start_token_id", special.start);
  const auto ends = end_tokens(special);
  if (!ends.empty() && !options.ignore_eos)
    to["eos_token_id"] = ends.size() == 1 ? OrderedJson(ends.front()) : OrderedJson(ends);
  auto suppressed = tokenizer.never_generated();
  suppressed.insert(suppressed.end(), options.suppress_tokens.begin(), options.suppress_tokens.end());
  if (!suppressed.empty()) to["suppress_tokens"] = suppressed;
}

/// Writes the keys that mean the same in transformers and are not as they are there without a key.
class SameKeysWriter final : public SilentVisitor {
 public:
  SameKeysWriter(const GenerationConfig& from, OrderedJson& to) : from_(from), to_(to) {}

 protected:
  void leaf(const FieldInfo& field, bool& value) override { add(field, value); }
  void leaf(const FieldInfo& field, int64_t& value) override { add(field, value); }
  void leaf(const FieldInfo& field, double& value) override { add(field, value); }
  void leaf(const FieldInfo& field, std::vector<int64_t>& value) override { add(field, value); }

 private:
  template <class T>
  void add(const FieldInfo& field, const T& value) const {
    const auto name = field.name_in(&Elsewhere::transformers);
    const bool beams = from_.beam > 1, samples = !beams && from_.temperature > 0;
    const auto use = field.elsewhere.use;
    if (name.empty() || (use == OptionUse::sampling && !samples) || (use == OptionUse::beams && !beams))
      return;
    to_[std::string(name)] = value;
  }

  const GenerationConfig& from_;
  OrderedJson& to_;
};

/// Leaves out a key whose value is the default on both sides.
void write_same_keys(const GenerationConfig& from, OrderedJson& to) {
  auto given = OrderedJson::object(), usual = given;
  auto options = from;
  GenerationConfig none;
  SameKeysWriter writer(from, given), usual_writer(from, usual);
  describe(writer, options);
  describe(usual_writer, none);
  for (const auto& [key, value] : given.items())
    if (value != usual[key]) to[key] = value;
}

void write_search(const GenerationConfig& from, OrderedJson& to) {
  if (from.beam > 1) {
    const auto stopping = from.early_stopping;
    to["early_stopping"] = stopping == EarlyStopping::never
                               ? OrderedJson("never")
                               : OrderedJson(stopping == EarlyStopping::first_finished);
    if (from.beam_groups > 1) {
      to["num_beam_groups"] = from.beam_groups;
      to["diversity_penalty"] = from.diversity_penalty;
    }
  }
  const bool samples = from.beam == 1 && from.temperature > 0;
  to["do_sample"] = samples;
  if (!samples) return;
  to["temperature"] = from.temperature;
  to["top_k"] = from.top_k;  // transformers takes 50 tokens where there is no key
}

void write_rules(const GenerationConfig& from, OrderedJson& to) {
  const auto set = [&](const char* key, const auto& value, const auto& otherwise) {
    if (value != otherwise) to[key] = value;
  };
  const GenerationConfig none;
  set("min_new_tokens", from.min_new_tokens, none.min_new_tokens);
  set("min_length", from.min_length, none.min_length);
  set("exponential_decay_length_penalty", from.exponential_decay_length_penalty,
      none.exponential_decay_length_penalty);
  set("stop_strings", from.stop, none.stop);
  if (from.forced_first_token) to["forced_bos_token_id"] = *from.forced_first_token;
  if (from.forced_last_token) to["forced_eos_token_id"] = *from.forced_last_token;
  for (const auto& [tokens, bias] : from.sequence_biases) {
    if (bias) {
      to["sequence_bias"].push_back({tokens, *bias});
    } else {
      to["bad_words_ids"].push_back(tokens);
    }
  }
}

}  // namespace

nlohmann::ordered_json generation_json(const GenerationConfig& options, const Tokenizer& tokenizer) {
  auto json = OrderedJson::object();
  write_tokens(options, tokenizer, json);
  if (options.max_new_tokens || !options.max_length) {
    json["max_new_tokens"] = options.max_new_tokens.value_or(kUsualNewTokens);
  } else {
    json["max_length"] = *options.max_length;
  }
  write_search(options, json);
  write_same_keys(options, json);
  write_rules(options, json);
  return json;
}

}  // namespace zoo
