#include "tokenizers/tokenizer.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"
#include "tokenizers/byte_tokenizer.h"
#include "tokenizers/char_tokenizer.h"
#include "tokenizers/hub_tokenizer.h"
#include "tokenizers/sentencepiece_tokenizer.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

std::unique_ptr<Tokenizer> read_hub_tokenizer(const std::filesystem::path& dir) {
  try {
    auto files = read_hub_files(dir, Follow::links);
    const auto special = hub_special_tokens(files);
    return make_hub_tokenizer(std::move(files), special);
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", dir.string(), e.what()));
  }
}

}  // namespace

int64_t decoder_start(const SpecialTokens& special) {
  return special.start >= 0 ? special.start : special.bos;
}

TokenIds end_tokens(const SpecialTokens& special) {
  TokenIds ids = special.other_ends;
  if (special.eos >= 0) ids.insert(ids.begin(), special.eos);
  return ids;
}

void require_special(int64_t id, const char* name, const char* task) {
  if (id < 0)
    throw DataError(fmt::format("{} needs a {} token, which this tokenizer's vocabulary lacks", task, name));
}

TextFrame encoder_frame(const Tokenizer& tokenizer, const char* task) {
  if (auto frame = tokenizer.frame()) return *std::move(frame);
  const auto& special = tokenizer.special();
  require_special(special.cls, "<cls>", task);
  require_special(special.sep, "<sep>", task);
  return {.before = {special.cls}, .between = {special.sep}, .after = {special.sep}};
}

TokenIds Tokenizer::never_generated() const {
  const auto& names = special();
  const auto ends = end_tokens(names);
  TokenIds ids;
  for (const int64_t id : {names.pad, names.unk, names.bos, names.mask, names.cls, names.sep}) {
    if (id >= 0 && std::ranges::find(ends, id) == ends.end()) ids.push_back(id);
  }
  return ids;
}

TokenIds Tokenizer::encode_masked(std::string_view text) const {
  TokenIds ids;
  for (size_t begin = 0;;) {
    const size_t at = text.find(kWrittenMask, begin);
    auto words = text.substr(begin, at == text.npos ? at : at - begin);
    if (at != text.npos && joins_blanks() && words.ends_with(' ')) words.remove_suffix(1);
    const TokenIds part = begin == 0 ? encode(words) : encode_continuation(words);
    ids.insert(ids.end(), part.begin(), part.end());
    if (at == text.npos) return ids;
    if (special().mask < 0) {
      throw DataError("the vocabulary has no <mask>: the model was not trained to fill masks");
    }
    ids.push_back(special().mask);
    begin = at + kWrittenMask.size();
  }
}

TokenText Tokenizer::token_text(int64_t id) const {
  const std::array<int64_t, 2> twice{id, id};
  TokenText result{.first = decode(std::span(twice).first(1)), .later = decode(twice)};
  if (!result.later.starts_with(result.first)) return {};
  result.later.erase(0, result.first.size());
  return result;
}

std::vector<PlacedToken> Tokenizer::encode_with_places(std::string_view) const {
  throw DataError("this kind of tokenizer does not say where its tokens stand in a text");
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerConfig& config, SpecialTokenSet special,
                                          const TextReader& corpus) {
  switch (config.type) {
    case TokenizerKind::character:
      return CharTokenizer::train(corpus, special, config.lowercase);
    case TokenizerKind::byte:
      return std::make_unique<ByteTokenizer>(special, config.lowercase);
    case TokenizerKind::hub:
      return read_hub_tokenizer(data_file_or_directory(config.path));
    case TokenizerKind::bpe:
    case TokenizerKind::wordpiece:
      return train_hub_tokenizer(config, special, corpus);
    case TokenizerKind::sentencepiece:
      break;
  }
  if (config.path.text.empty()) return SentencePieceTokenizer::train(corpus, config, special);
  const auto path = data_path(config.path);
  try {
    std::string model = read_file(path, Follow::links);
    auto options = SentencePieceTokenizer::saved_options(path.parent_path(), model);
    options.lowercase |= config.lowercase;
    return std::make_unique<SentencePieceTokenizer>(std::move(model), options);
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", path.string(), e.what()));
  }
}

std::optional<std::string> vocabulary_note(const TokenizerConfig& config, const Tokenizer& tokenizer) {
  const bool is_trained = learns_vocabulary(config.type) && config.path.text.empty();
  if (!is_trained || tokenizer.vocab_size() >= config.vocab_size) return std::nullopt;
  return fmt::format("the training text has too few pieces for a vocabulary of {}: it has {} tokens",
                     config.vocab_size, tokenizer.vocab_size());
}

void export_files(const Tokenizer& tokenizer, const std::filesystem::path& dir, const TextFrame& frame) {
  for (const auto& [name, content] : tokenizer.exported_files(frame))
    write_file_atomically(dir / name, content);
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& dir) {
  return has_hub_tokenizer(dir) ? read_hub_tokenizer(dir) : load_tokenizer(dir);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& run_dir) {
  TokenizerFile file = read_tokenizer_file(run_dir);
  try {
    switch (file.type) {
      case TokenizerKind::character:
        return std::make_unique<CharTokenizer>(std::move(file));
      case TokenizerKind::byte:
        return std::make_unique<ByteTokenizer>(std::move(file));
      case TokenizerKind::hub:
        return load_hub_tokenizer(run_dir, file);
      case TokenizerKind::bpe:
      case TokenizerKind::wordpiece:
        throw DataError("such tokenizers are saved as those of the Hub");
      case TokenizerKind::sentencepiece:
        break;
    }
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: damaged: {}", (run_dir / "tokenizer.json").string(), e.what()));
  }
  return SentencePieceTokenizer::load(run_dir, file);
}

std::string StreamDecoder::push(int64_t id) {
  ids_.push_back(id);
  ++pending_;
  const std::string text = tokenizer_.decode(ids_);
  // SentencePiece decodes byte pieces to U+FFFD until the character is complete. Raw bytes stay bytes.
  if (text.size() <= emitted_.size() || text.ends_with("\uFFFD")) return {};
  const size_t end = text.size() - std::max(incomplete_utf8(text), tokenizer_.unsettled_bytes(text));
  if (end <= emitted_.size()) return {};
  std::string piece = text.substr(emitted_.size(), end - emitted_.size());
  // From here on, only the newest ids with text are needed: the next ids are decoded after them.
  const TokenIds tail(ids_.end() - static_cast<ptrdiff_t>(pending_), ids_.end());
  std::string tail_text = end == text.size() ? tokenizer_.decode(tail) : std::string();
  if (!tail_text.empty()) {
    ids_ = tail;
    emitted_ = std::move(tail_text);
  } else {
    emitted_ = text.substr(0, end);
  }
  pending_ = 0;
  return piece;
}

void StreamDecoder::skip() {
  if (ids_.empty()) return;
  constexpr std::string_view replacement = "\uFFFD";
  const std::string text = tokenizer_.decode(ids_);
  // A byte piece decodes to this mark, but a mark can also be a character of the text.
  const bool is_part = text.ends_with(replacement) && tokenizer_.decode({&ids_.back(), 1}) == replacement &&
                       tokenizer_.encode(replacement) != TokenIds{ids_.back()};
  if (is_part) return;
  emitted_ = text.substr(0, text.size() - incomplete_utf8(text));
  pending_ = incomplete_utf8(text) == 0 ? 0 : pending_;
}

std::string StreamDecoder::finish() {
  const std::string text = tokenizer_.decode(ids_);
  std::string rest = text.size() > emitted_.size() ? text.substr(emitted_.size()) : std::string();
  ids_.clear();
  emitted_.clear();
  pending_ = 0;
  return rest;
}

}  // namespace zoo
