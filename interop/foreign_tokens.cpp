#include "interop/foreign_tokens.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "data/text/hub_tokenizer.h"
#include "data/text/id_tokenizer.h"
#include "interop/families/common.h"
#include "interop/foreign_files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

int64_t token_id(ForeignConfig& from, std::string_view key) {
  const auto id = from.optional_integer(key);
  // Some files have -1 for "none".
  if (!id || *id == -1) return -1;
  if (*id < 0) from.fail(key, "not a token id");
  return *id;
}

void read_tokens(ForeignConfig& from, ForeignGeneration& to) {
  const auto set = [&](std::string_view key, int64_t& id) {
    const int64_t given = token_id(from, key);
    if (given >= 0) id = given;
  };
  set("bos_token_id", to.bos);
  set("pad_token_id", to.pad);
  set("decoder_start_token_id", to.start);
  auto ends = from.integer_or_integers("eos_token_id");
  std::erase(ends, -1);
  if (std::ranges::any_of(ends, [](int64_t id) { return id < 0; }))
    from.fail("eos_token_id", "not a token id");
  if (!ends.empty()) to.ends = std::move(ends);
}

/// The single tokens of a list of forbidden sequences. Longer sequences are not supported.
std::vector<int64_t> forbidden_tokens(ForeignConfig& from) {
  std::vector<int64_t> ids;
  const auto found = from.json().find("bad_words_ids");
  if (found == from.json().end() || found->is_null()) return ids;
  if (!found->is_array()) from.fail("bad_words_ids", "expected a list of lists of token ids");
  for (const auto& sequence : *found) {
    if (!sequence.is_array() || sequence.size() != 1 || !sequence[0].is_number_integer())
      from.fail("bad_words_ids", "only single tokens are supported");
    ids.push_back(sequence[0].get<int64_t>());
  }
  return ids;
}

void read_forced_tokens(ForeignConfig& from, GenerationConfig& to) {
  if (const auto id = token_id(from, "forced_bos_token_id"); id >= 0) to.forced_first_token = id;
  if (const auto id = token_id(from, "forced_eos_token_id"); id >= 0) to.forced_last_token = id;
  if (auto ids = from.integers("suppress_tokens"); !ids.empty()) to.suppress_tokens = std::move(ids);
  if (auto ids = forbidden_tokens(from); !ids.empty()) to.suppress_tokens = std::move(ids);
  if (auto ids = from.integers("begin_suppress_tokens"); !ids.empty())
    to.suppress_first_tokens = std::move(ids);
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
  TokenIds ids;
  const auto forced = from.json().find("forced_decoder_ids");
  bool is_whole = true;
  if (forced != from.json().end() && forced->is_array()) {
    for (const auto& entry : *forced) {
      const bool is_pair = entry.is_array() && entry.size() == 2 && entry[0] == std::size(ids) + 1;
      is_whole = is_whole && is_pair && entry[1].is_number_integer();
      if (is_whole) ids.push_back(entry[1].get<int64_t>());
    }
    if (is_whole && !ids.empty()) to.start_tokens = ids;
  }
  if (!from.flag("is_multilingual", from.has("lang_to_id"))) return;
  // "en" and "<|en|>" are said alike.
  auto language = from.optional_text("language").value_or("en");
  if (!language.starts_with("<|")) language = "<|" + language + "|>";
  const auto task = from.optional_text("task").value_or("transcribe");
  if (const int64_t id = named_token(from, "lang_to_id", language); id >= 0) {
    to.start_tokens = {id};
    if (const int64_t what = named_token(from, "task_to_id", task); what >= 0)
      to.start_tokens.push_back(what);
    if (const auto none = token_id(from, "no_timestamps_token_id"); none >= 0)
      to.start_tokens.push_back(none);
  }
}

/// transformers samples only if do_sample says so, and then among 50 tokens if top_k says nothing.
void read_options(ForeignConfig& from, GenerationConfig& to) {
  constexpr int64_t usual_top_k = 50;
  const bool samples = from.flag("do_sample", false);
  to.temperature = samples ? from.number("temperature", 1) : 0;
  to.top_k = samples ? from.integer("top_k", usual_top_k) : 0;
  to.top_p = samples ? from.number("top_p", 1) : 1;
  to.min_p = samples ? from.number("min_p", 0) : 0;
  to.typical_p = samples ? from.number("typical_p", 1) : 1;
  to.min_new_tokens = from.integer("min_new_tokens", 0);
  to.beam = from.integer("num_beams", 1);
  to.beam_groups = from.integer("num_beam_groups", 1);
  to.diversity_penalty = from.number("diversity_penalty", 0);
  to.length_penalty = from.number("length_penalty", 1);
  to.repetition_penalty = from.number("repetition_penalty", 1);
  to.no_repeat_ngram_size = from.integer("no_repeat_ngram_size", 0);
  if (const auto most = from.optional_integer("max_new_tokens")) to.max_new_tokens = *most;
  // Beams end in transformers' own way unless the file says otherwise.
  to.early_stopping = EarlyStopping::heuristic;
  const auto stopping = from.json().find("early_stopping");
  if (stopping != from.json().end()) {
    if (*stopping == true) to.early_stopping = EarlyStopping::first_finished;
    if (*stopping == "never") to.early_stopping = EarlyStopping::never;
  }
}

}  // namespace

ForeignGeneration read_generation(const fs::path& dir, const std::map<std::string, std::string>& files,
                                  ForeignConfig& config) {
  ForeignGeneration result;
  read_tokens(config, result);
  read_forced_tokens(config, result.options);
  read_start_tokens(config, result.options);
  const auto found = files.find("generation_config.json");
  if (found == files.end()) {
    read_options(config, result.options);
  } else {
    const auto path = dir / found->first;
    ForeignConfig own(path.string(), parse_foreign_json(path, found->second));
    read_tokens(own, result);
    read_options(own, result.options);
    read_forced_tokens(own, result.options);
    read_start_tokens(own, result.options);
  }
  ignore_generation_keys(config);
  return result;
}

std::shared_ptr<const Tokenizer> read_tokenizer(const fs::path& dir,
                                                const std::map<std::string, std::string>& files,
                                                const ForeignGeneration& generation, int64_t vocab_size) {
  try {
    const bool has_texts = has_vocabulary(files);
    auto special = has_texts ? hub_special_tokens(files) : SpecialTokens{};
    if (generation.bos >= 0) special.bos = generation.bos;
    if (generation.pad >= 0) special.pad = generation.pad;
    special.start = generation.start;
    const auto& ends = generation.ends;
    if (!ends.empty() && std::ranges::find(ends, special.eos) == ends.end()) special.eos = ends.front();
    for (const int64_t id : ends) {
      if (id != special.eos) special.other_ends.push_back(id);
    }
    if (!has_texts) return std::make_shared<IdTokenizer>(vocab_size, special);
    return make_hub_tokenizer(files, special);
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("{}: {}", dir.string(), error.what()));
  }
}

}  // namespace zoo
