#include "interop/foreign_tokens.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "data/text/hub_tokenizer.h"
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
  if (!from.integers("begin_suppress_tokens").empty())
    from.fail("begin_suppress_tokens", "this is not supported");
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
  const auto found = files.find("generation_config.json");
  if (found == files.end()) {
    read_options(config, result.options);
  } else {
    const auto path = dir / found->first;
    ForeignConfig own(path.string(), parse_foreign_json(path, found->second));
    read_tokens(own, result);
    read_options(own, result.options);
    read_forced_tokens(own, result.options);
  }
  ignore_generation_keys(config);
  return result;
}

std::shared_ptr<const Tokenizer> read_tokenizer(const fs::path& dir,
                                                const std::map<std::string, std::string>& files,
                                                const ForeignGeneration& generation) {
  try {
    auto special = hub_special_tokens(files);
    if (generation.bos >= 0) special.bos = generation.bos;
    if (generation.pad >= 0) special.pad = generation.pad;
    special.start = generation.start;
    const auto& ends = generation.ends;
    if (!ends.empty() && std::ranges::find(ends, special.eos) == ends.end()) special.eos = ends.front();
    for (const int64_t id : ends) {
      if (id != special.eos) special.other_ends.push_back(id);
    }
    return make_hub_tokenizer(files, special);
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("{}: {}", dir.string(), error.what()));
  }
}

}  // namespace zoo
