#include "data/data_config.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {

void describe(ConfigVisitor& v, TokenizerConfig& c) {
  v.field("type", c.type, "How text is cut into tokens: code points, bytes, or pieces of words.");
  v.field("vocab_size", c.vocab_size, "sentencepiece: how many tokens, special ones included.",
          Limits::between(8, 1e6));
  v.field("model", c.model, "sentencepiece: how the pieces are found.");
  v.field("character_coverage", c.character_coverage,
          "sentencepiece: share of the text's characters that get a token; the rest become <unk>.",
          Limits::between(0.98, 1));
  v.field("lowercase", c.lowercase, "Fold upper case to lower before anything else.");
  v.field("path", c.path,
          "sentencepiece: an existing model file (below the data root) instead of training one.");
}

void describe(ConfigVisitor& v, DataConfig& c) {
  v.field("train", c.train,
          "Training files, relative to the data root ($ZOO_DATA, else ./data). text_to_text: prefixes, for "
          "PREFIX.source and PREFIX.target.");
  v.field("valid", c.valid, "Validation files; none = the end of the training text.");
  v.field("test", c.test, "Test files, for `zoo evaluate`.");
  v.field("valid_fraction", c.valid_fraction,
          "Without validation files: this share of the training text, from its end.",
          {.min = 0, .max = 0.9, .min_excluded = true});
  v.field("documents", c.documents,
          "What is one document in a text file; `percent`: lines of % stand between them. In a table "
          "(NAME.tsv) it is the text of a row, but under `none`, too, each file is one.");
  v.field("source", c.source, "text_to_text: suffix of the files to read from.");
  v.field("target", c.target, "text_to_text: suffix of the files to write like.");
  v.field("text_column", c.text_column,
          "Name of the text's column in a tab-separated file (NAME.tsv, of text_classification any); of "
          "several names the first that its header has.");
  v.field("label_column", c.label_column, "text_classification: name of the label's column.");
  v.field("sequence_length", c.sequence_length, "Longest sequence in tokens; longer ones are cut.",
          Limits::between(3, 1e7));
  v.field("target_length", c.target_length, "text_to_text: the same for the target; default sequence_length.",
          Limits::between(3, 1e7));
  v.field("prefix_length", c.prefix_length,
          "language_modeling: tokens of a window that are given, not predicted. Default 1; for an "
          "encoder_decoder, "
          "whose encoder reads them, half of sequence_length. A decoder is only evaluated so.",
          Limits::at_least(1));
  v.field("bucket_by_length", c.bucket_by_length,
          "Put sequences of similar lengths into a batch: less padding.");
  v.field("mask_probability", c.mask_probability, "masked_language_modeling: share of the tokens to predict.",
          {.min = 0, .max = 1, .min_excluded = true});
  v.field("mask_replace", c.mask_replace, "masked_language_modeling: share of these that <mask> replaces.",
          Limits::between(0, 1));
  v.field("mask_random", c.mask_random,
          "masked_language_modeling: share of these that a random token replaces; the rest stay as they are.",
          Limits::between(0, 1));
  v.field("tokenizer", c.tokenizer, "From text to tokens.");
}

void validate(const DataConfig& c, const Complain& complain) {
  if (c.mask_replace + c.mask_random > 1 + 1e-9) {
    complain("mask_random", fmt::format("mask_replace and mask_random are {} in sum, more than 1",
                                        c.mask_replace + c.mask_random));
  }
  if (!c.tokenizer.path.empty() && c.tokenizer.type != TokenizerKind::sentencepiece) {
    complain("tokenizer.path", fmt::format("is for type sentencepiece, not {}", name_of(c.tokenizer.type)));
  }
  if (c.prefix_length && *c.prefix_length > c.sequence_length) {
    complain("prefix_length",
             fmt::format("{} is longer than sequence_length {}", *c.prefix_length, c.sequence_length));
  }
  if (c.source == c.target) complain("target", "is the same file as `source`");
  if (c.text_column.empty()) complain("text_column", "names no column");
}

std::filesystem::path data_root() {
  const char* root = std::getenv("ZOO_DATA");
  return root != nullptr && *root != '\0' ? root : "data";
}

std::filesystem::path data_path(const std::string& path) {
  const std::filesystem::path given(path);
  const auto full = given.is_absolute() ? given : data_root() / given;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(full, ignored)) return full;
  const char* const what = std::filesystem::exists(full, ignored) ? "is not a file" : "does not exist";
  if (!given.is_absolute()) {
    constexpr auto corpora = std::to_array<std::string_view>(
        {"fortunes", "dict-de-en", "tinyshakespeare", "wikitext-2", "multi30k", "sst2", "fashion-mnist"});
    const std::string first = given.begin() == given.end() ? std::string() : given.begin()->string();
    if (std::ranges::find(corpora, first) != corpora.end()) {
      throw DataError(fmt::format("{} {}; `scripts/get_data.sh {}` gets it", full.string(), what, first));
    }
    throw DataError(fmt::format("{} {}; paths are relative to the data root (ZOO_DATA, else ./data)",
                                full.string(), what));
  }
  throw DataError(fmt::format("{} {}", full.string(), what));
}

}  // namespace zoo
