#pragma once
// RUN/tokenizer.json: all tokenizers write it, and it is checked when it is read.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tokenizers/hub/exported_vocabulary.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// The content of a tokenizer.json.
struct TokenizerFile {
  TokenizerKind type = TokenizerKind::character;
  bool lowercase = false;
  /// sentencepiece only. A file has this key only for `none`.
  TextNormalization normalization = TextNormalization::nfkc;
  /// sentencepiece with `none` only: lines are encoded with a blank before them. Older files do not have it.
  bool marks_lines = false;
  SpecialTokens special;
  /// char only: the code points in the order of their ids, after the special tokens.
  std::vector<std::string> symbols;
  std::string model_sha256;  // sentencepiece only: of tokenizer.model
  /// hub only: the names of the files in RUN/hub, and their SHA-256. None: the model came without a
  /// tokenizer.
  std::map<std::string, std::string> files = {};
  int64_t vocab_size = 0;  // of a model without a tokenizer only
};

/// The file's text. It is also the fingerprint() of a char or byte tokenizer.
std::string to_json(const TokenizerFile& file);
/// Reads RUN/tokenizer.json. Throws a CheckpointError that names the path.
TokenizerFile read_tokenizer_file(const std::filesystem::path& run_dir);
/// Writes RUN/tokenizer.json. Throws SystemError.
void write_tokenizer_file(const std::filesystem::path& run_dir, const TokenizerFile& file);

/// pad, unk, bos, eos, mask, cls, sep = 0 … 6, or none at all. They come before all other ids.
SpecialTokens special_tokens(SpecialTokenSet set);
/// The special tokens that the vocabulary has: ("pad", 0), …
std::vector<std::pair<std::string_view, int64_t>> named_ids(const SpecialTokens& special);
/// Their number.
int64_t count(const SpecialTokens& special);
/// "<eos>", or empty if `id` is not a special token.
std::string_view special_label(const SpecialTokens& special, int64_t id);
/// All special tokens by id, with what transformers calls them; `name_of` gives their texts.
std::vector<ExportedToken> exported_tokens(const SpecialTokens& special,
                                           const std::function<std::string(int64_t id)>& name_of);
/// Throws DataError unless 0 ≤ id < vocab_size.
void check_id(int64_t id, int64_t vocab_size);
/// Throws DataError with the byte offset unless `text` is UTF-8.
void check_utf8(std::string_view text);

}  // namespace zoo
