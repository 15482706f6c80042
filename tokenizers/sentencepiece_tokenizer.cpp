#include "tokenizers/sentencepiece_tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <unordered_map>

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"
#include "io/sha256.h"
#include "tokenizers/hub/exported_pieces.h"
#include "tokenizers/sentencepiece/model_check.h"
#include "tokenizers/sentencepiece/model_fields.h"
#include "tokenizers/sentencepiece/trainer.h"
#include "tokenizers/sentencepiece/wire_format.h"
#include "tokenizers/subwords/decoder.h"
#include "tokenizers/token_cache.h"
#include "tokenizers/tokenizer_file.h"
#include "tokenizers/unicode/lowercase.h"

namespace zoo {
namespace {

constexpr std::string_view model_name = "tokenizer.model";
/// The last code point for private use (U+10FFFD). No text and no piece contains it, and NFKC keeps it.
constexpr std::string_view stand_in = "\xF4\x8F\xBF\xBD";

/// SentencePiece writes a blank as this character ("▁", U+2581), and takes it for a blank in a text.
constexpr std::string_view blank_mark = "\xE2\x96\x81";
/// SentencePiece's trainers end the process for much longer lines (text without blanks or line breaks).
constexpr size_t longest_line = 8192;  // bytes

/// Replaces kHiding[i] by kHiding[i + step].
std::string shift_marks(std::string text, ptrdiff_t step) {
  constexpr std::string_view first_bytes = "\xE2\xF4";
  for (size_t at = text.find_first_of(first_bytes); at < text.size();) {
    const auto rest = std::string_view(text).substr(at);
    const auto mark = std::ranges::find_if(kHiding, [&](std::string_view m) { return rest.starts_with(m); });
    const auto other = mark - kHiding.begin() + step;
    if (mark != kHiding.end() && other >= 0 && other < std::ssize(kHiding)) {
      const std::string_view replacement = kHiding.at(static_cast<size_t>(other));
      text.replace(at, std::string_view(*mark).size(), replacement);
      at += replacement.size() - 1;
    }
    at = text.find_first_of(first_bytes, at + 1);
  }
  return text;
}
std::string hide_marks(std::string text) { return shift_marks(std::move(text), 1); }
std::string show_marks(std::string text) { return shift_marks(std::move(text), -1); }

/// Whether a line has a character that people see. SentencePiece's trainer cannot work without any.
bool is_visible(std::string_view line) {
  return std::ranges::any_of(decode_utf8(line), [](char32_t c) {
    const bool control = c <= 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD;
    const bool blank = c == 0x1680 || (c >= 0x2000 && c <= 0x200F) || (c >= 0x2028 && c <= 0x202F) ||
                       (c >= 0x205F && c <= 0x206F) || c == 0x2581 || c == 0x3000;
    return !control && !blank && c != 0x180E && c != 0xFEFF && c != 0xFFFD && !(c >= 0xFE00 && c <= 0xFE0F);
  });
}

struct TrainingText {
  std::vector<std::string> lines;  // as they are encoded, without blank ones
  size_t longest = 0;              // bytes
  bool has_line_breaks = false;    // within a text
  bool has_visible = false;
};

/// The length of the first part of a line: all of it, or at most longest_line bytes, if possible to a blank,
/// else to the end of a character.
size_t first_part(std::string_view line) {
  if (line.size() <= longest_line) return line.size();
  const size_t blank = line.substr(0, longest_line).find_last_of(" \t");
  if (blank != line.npos && blank > longest_line / 2) return blank;
  size_t end = longest_line;
  while ((static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return end;
}

TrainingText read_training_text(const TextReader& corpus, const SentencePieceTokenizer::Options& change) {
  TrainingText result;
  corpus([&](std::string_view text) {
    check_utf8(text);
    std::string changed;
    if (change.lowercase) text = changed = lowercase(text);
    if (change.normalization == TextNormalization::none) text = changed = hide_marks(std::string(text));
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      result.has_line_breaks |= end < text.size();
      const auto whole = (change.marks_lines ? " " : "") + std::string(text.substr(begin, end - begin));
      std::string_view line = whole;
      while (line.find_first_not_of(" \t\r") != line.npos) {
        const size_t length = first_part(line);
        result.lines.emplace_back(line.substr(0, length));
        result.longest = std::max(result.longest, length);
        result.has_visible = result.has_visible || is_visible(line.substr(0, length));
        line.remove_prefix(length);
      }
      begin = end + 1;
    }
  });
  return result;
}

/// The number that follows `words` in a message; 0 if there is none.
int64_t number_after(std::string_view words, std::string_view message) {
  const size_t at = message.find(words);
  if (at == message.npos) return 0;
  int64_t number = 0;
  for (const char c : message.substr(at + words.size())) {
    if (!std::isdigit(static_cast<unsigned char>(c))) break;
    number = 10 * number + (c - '0');
  }
  return number;
}

/// Throws SentencePiece's message in the words of a configuration.
[[noreturn]] void fail_training(const std::string& message, int64_t vocab_size, bool has_bytes) {
  if (const int64_t smallest = number_after(fmt::format("required_chars. {} vs ", vocab_size), message);
      smallest > 0) {
    throw DataError(
        fmt::format("data.tokenizer.vocab_size (--vocab-size) {} is too small: the characters of the "
                    "training text{} alone need {}; use a larger one, or set "
                    "data.tokenizer.character_coverage (--character-coverage) below 1{}",
                    vocab_size, has_bytes ? " and 256 bytes" : "", smallest,
                    has_bytes ? ", or data.tokenizer.byte_fallback to false (--no-byte-fallback)" : ""));
  }
  throw DataError(fmt::format("SentencePiece could not make a vocabulary: {}", excerpt(message, 300)));
}

/// A serialised model with the vocabulary size of `options`, or with the largest one that the lines allow.
std::string train_model(std::unordered_map<std::string, std::string> options,
                        const std::vector<std::string>& lines, int64_t vocab_size) {
  while (true) {
    try {
      return train_sentencepiece(options, lines);
    } catch (const DataError& error) {
      const int64_t largest = number_after("Please set it to a value <= ", error.what());
      if (largest <= 0 || largest >= vocab_size)
        fail_training(error.what(), vocab_size, options.contains("byte_fallback"));
      vocab_size = largest;
      options["vocab_size"] = std::to_string(largest);
    }
  }
}

/// The cache file for the vocabulary of this text, because training takes seconds. Its name is the hash of
/// everything that the vocabulary depends on. Empty if there is no cache directory.
std::filesystem::path cache_file(const std::unordered_map<std::string, std::string>& options,
                                 const std::vector<std::string>& lines) {
  const auto root = cache_root();
  if (root.empty()) return {};
  std::string identity;
  for (const auto& [name, value] : std::map<std::string, std::string>(options.begin(), options.end()))
    identity += fmt::format("{}={}\n", name, value);
  for (const auto& line : lines) identity.append(line).append("\n");
  return root / fmt::format("{}.model", sha256(identity));
}

/// Writes the cache file. Errors are ignored, because a cache only saves time.
void keep(const std::filesystem::path& path, std::string_view model) {
  if (path.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  try {
    write_file_atomically(path, sha256(model) + std::string(model));
  } catch (const SystemError&) {
  }
}

/// The model that keep() wrote; nullopt if the file is damaged.
std::optional<std::string> read_kept(const std::filesystem::path& path) {
  const std::string content = read_file(path, Follow::links), digest = sha256({});
  if (content.size() < digest.size()) return std::nullopt;
  std::string model = content.substr(digest.size());
  return content.starts_with(sha256(model)) ? std::make_optional(std::move(model)) : std::nullopt;
}

SentencePieceTokenizer::Options options_in(const TokenizerFile& file) {
  return {.lowercase = file.lowercase, .normalization = file.normalization, .marks_lines = file.marks_lines};
}

/// What a model says of itself (sentencepiece_model.proto), as far as it changes ids.
struct ModelFacts {
  SentencePieceModel algorithm = SentencePieceModel::unigram;
  std::string charsmap;
  bool adds_blank = true, merges_blanks = true;
};

/// Throws DataError for a model that a tokenizer.json cannot describe.
ModelFacts facts_of(std::string_view model) {
  namespace number = sentencepiece_field;
  ModelFacts facts;
  uint64_t type = number::unigram;
  WireReader reader(model);
  while (const auto field = reader.next()) {
    if (field->number == number::pieces) {
      std::string_view text;
      uint64_t kind = 0;
      for (WireReader piece(field->bytes); const auto part = piece.next();) {
        if (part->number == number::piece_text) text = part->bytes;
        if (part->number == number::piece_type) kind = part->value;
      }
      if (kind == number::user_defined && text != "\n")
        throw DataError(fmt::format(
            "a SentencePiece model with a symbol of its users, '{}', has no form that transformers reads",
            excerpt(text, 40)));
    }
    if (field->number != number::trainer && field->number != number::normalizer) continue;
    for (WireReader part(field->bytes); const auto option = part.next();) {
      const bool is_set = option->value != 0;
      if (field->number == number::trainer) {
        if (option->number == number::model_type) type = option->value;
        if (option->number == number::blanks_behind_words && is_set)
          throw DataError(
              "a SentencePiece model with blanks behind words has no form that transformers reads");
      } else {
        if (option->number == number::charsmap) facts.charsmap = std::string(option->bytes);
        if (option->number == number::adds_blank) facts.adds_blank = is_set;
        if (option->number == number::merges_blanks) facts.merges_blanks = is_set;
      }
    }
  }
  if (type != number::unigram && type != number::bpe)
    throw DataError("a SentencePiece model of words or characters has no form that transformers reads");
  if (type == number::bpe) facts.algorithm = SentencePieceModel::bpe;
  return facts;
}

/// The id of the first of `pieces` that the model has, else -1.
int64_t find_piece(const sentencepiece::SentencePieceProcessor& processor,
                   std::initializer_list<std::string_view> pieces) {
  for (const auto piece : pieces) {
    const int id = processor.PieceToId(piece);
    if (id != processor.unk_id() && processor.IdToPiece(id) == piece) return id;
  }
  return -1;
}

}  // namespace

std::unique_ptr<SentencePieceTokenizer> SentencePieceTokenizer::train(const TextReader& corpus,
                                                                      const TokenizerConfig& config,
                                                                      SpecialTokenSet special) {
  const auto normalization = config.normalization.value_or(TextNormalization::none);
  const bool changes_nothing = normalization == TextNormalization::none;
  const Options change{
      .lowercase = config.lowercase, .normalization = normalization, .marks_lines = changes_nothing};
  const TrainingText text = read_training_text(corpus, change);
  if (text.lines.empty())
    throw DataError("the training text is empty: there is nothing to make a vocabulary from");
  if (!text.has_visible)
    throw DataError(
        "the training text has no visible characters: there is nothing to make a vocabulary from");
  const bool all = special != SpecialTokenSet::none;
  std::unordered_map<std::string, std::string> options = {
      {"model_type", std::string(name_of(config.model))},
      {"vocab_size", std::to_string(config.vocab_size)},
      {"character_coverage", fmt::format("{}", config.character_coverage)},
      {"normalization_rule_name", changes_nothing ? "identity" : "nmt_nfkc"},
      {"pad_id", all ? "0" : "-1"},
      {"unk_id", all ? "1" : "0"},
      {"bos_id", all ? "2" : "-1"},
      {"eos_id", all ? "3" : "-1"},
      {"pad_piece", "<pad>"},
      {"unk_piece", "<unk>"},
      {"bos_piece", "<bos>"},
      {"eos_piece", "<eos>"},
      {"unk_surface", "⁇"},
      // SentencePiece leaves out longer lines.
      {"max_sentence_length", std::to_string(std::max<decltype(text.longest)>(text.longest + 1, 10))},
      // Each thread has its own partial sums, so another number of threads would give another vocabulary.
      {"num_threads", "2"},
      {"minloglevel", "3"},
  };
  if (changes_nothing) {
    options.insert({{"remove_extra_whitespaces", "false"},
                    {"add_dummy_prefix", "false"},  // the lines have one already
                    // The indentation of source code is then one piece.
                    {"allow_whitespace_only_pieces", "true"}});
  }
  if (config.byte_fallback.value_or(true)) options.emplace("byte_fallback", "true");
  if (all) options.emplace("control_symbols", "<mask>,<cls>,<sep>");
  // NFKC turns a line break into a blank, except if it is a symbol of its own. Generated text can then have
  // lines.
  if (text.has_line_breaks) options.emplace("user_defined_symbols", "\n");

  const auto kept = cache_file(options, text.lines);
  std::error_code ignored;
  if (!kept.empty() && std::filesystem::exists(kept, ignored)) {
    try {
      if (auto model = read_kept(kept))
        return std::make_unique<SentencePieceTokenizer>(std::move(*model), change);
    } catch (const DataError&) {
      // Unreadable: train again.
    }
  }
  std::string model = train_model(options, text.lines, config.vocab_size);
  keep(kept, model);
  return std::make_unique<SentencePieceTokenizer>(std::move(model), change);
}

SentencePieceTokenizer::SentencePieceTokenizer(std::string model, const Options& options)
    : model_(std::move(model)),
      options_(options),
      processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  const auto status = processor_->LoadFromSerializedProto(checked_sentencepiece_model(model_));
  if (!status.ok())
    throw DataError(fmt::format("not a SentencePiece model: {}", excerpt(status.ToString(), 200)));
  vocab_size_ = processor_->GetPieceSize();
  line_break_ = find_piece(*processor_, {"\n", "<0x0A>"});
  special_ = {.pad = processor_->pad_id(),
              .unk = processor_->unk_id(),
              .bos = processor_->bos_id(),
              .eos = processor_->eos_id(),
              .mask = find_piece(*processor_, {"<mask>", "[MASK]"}),
              .cls = find_piece(*processor_, {"<cls>", "[CLS]"}),
              .sep = find_piece(*processor_, {"<sep>", "[SEP]"})};
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

SentencePieceTokenizer::Options SentencePieceTokenizer::saved_options(const std::filesystem::path& dir,
                                                                      std::string_view model) {
  try {
    const TokenizerFile file = read_tokenizer_file(dir);
    if (file.model_sha256 == sha256(model)) return options_in(file);
  } catch (const CheckpointError&) {
    // No file, or another program's file of this name.
  }
  return {};
}

std::unique_ptr<SentencePieceTokenizer> SentencePieceTokenizer::load(const std::filesystem::path& run_dir,
                                                                     const TokenizerFile& file) {
  const auto path = run_dir / model_name;
  std::string model;
  try {
    model = read_file(path, Follow::nothing);
  } catch (const Error& e) {
    throw CheckpointError(fmt::format("{}: the tokenizer is incomplete: {}", run_dir.string(), e.what()));
  }
  if (sha256(model) != file.model_sha256) {
    throw CheckpointError(fmt::format("{}: damaged, or does not belong to tokenizer.json", path.string()));
  }
  try {
    return std::make_unique<SentencePieceTokenizer>(std::move(model), options_in(file));
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: {}", path.string(), e.what()));
  }
}

/// The text that the model sees.
std::string SentencePieceTokenizer::prepared(std::string_view text) const {
  std::string result = options_.lowercase ? lowercase(text) : std::string(text);
  return options_.normalization == TextNormalization::none ? hide_marks(std::move(result)) : result;
}

void SentencePieceTokenizer::append_ids(std::string_view text, TokenIds& ids) const {
  std::vector<int> added;
  const auto status = processor_->Encode(text, &added);
  if (!status.ok()) throw DataError(fmt::format("SentencePiece: {}", excerpt(status.ToString(), 200)));
  ids.insert(ids.end(), added.begin(), added.end());
}

/// The lines of a text, and the line breaks between them.
struct SentencePieceTokenizer::LineVisitor {
  /// `marked`: the line with the `n_marks` bytes of its mark; `begin`: of the line in the text, in bytes.
  std::function<void(std::string_view marked, size_t begin, size_t n_marks)> line;
  std::function<void(size_t at)> line_break;
};

/// Each line by itself. This is also faster and more exact: a long text has a score that hides small
/// differences. An empty line has no mark. `seen`: a prepared text.
void SentencePieceTokenizer::for_each_line(std::string_view seen, TextBegins begins,
                                           const LineVisitor& visitor) const {
  std::string marked;
  for (size_t begin = 0; begin < seen.size();) {
    const size_t end = line_break_ < 0 ? seen.size() : std::min(seen.find('\n', begin), seen.size());
    const auto line = seen.substr(begin, end - begin);
    const bool is_marked =
        options_.marks_lines && !line.empty() && (begin > 0 || begins == TextBegins::a_line);
    if (is_marked) marked.assign(" ").append(line);
    visitor.line(is_marked ? std::string_view(marked) : line, begin, is_marked ? 1 : 0);
    if (end < seen.size()) visitor.line_break(end);
    begin = end + 1;
  }
}

TokenIds SentencePieceTokenizer::encode_lines(std::string_view text, TextBegins begins) const {
  TokenIds ids;
  for_each_line(prepared(text), begins,
                {.line = [&](std::string_view marked, size_t, size_t) { append_ids(marked, ids); },
                 .line_break = [&](size_t) { ids.push_back(line_break_); }});
  return ids;
}

/// The places are in bytes of `text`.
void SentencePieceTokenizer::append_placed(std::string_view text, std::vector<PlacedToken>& tokens) const {
  const auto encoded = processor_->EncodeAsImmutableProto(text);
  if (encoded.text() != text) throw DataError("SentencePiece could not encode the text with this model");
  for (const auto& piece : encoded.pieces()) tokens.push_back({piece.id(), piece.begin(), piece.end()});
}

std::vector<PlacedToken> SentencePieceTokenizer::placed_lines(std::string_view text,
                                                              TextBegins begins) const {
  const auto seen = prepared(text);
  std::vector<PlacedToken> tokens;
  const auto line = [&](std::string_view marked, size_t begin, size_t n_marks) {
    const size_t first = tokens.size();
    append_placed(marked, tokens);
    // The mark is no part of the text.
    for (auto& token : std::span(tokens).subspan(first)) {
      token.begin = begin + std::max(token.begin, n_marks) - n_marks;
      token.end = begin + std::max(token.end, n_marks) - n_marks;
    }
  };
  for_each_line(seen, begins, {.line = line, .line_break = [&](size_t at) {
                                 tokens.push_back({line_break_, at, at + 1});
                               }});
  in_code_points(seen, tokens);
  return tokens;
}

// A prepared text has the code points of the text, each in another form at most.
std::vector<PlacedToken> SentencePieceTokenizer::encode_with_places(std::string_view text) const {
  check_utf8(text);
  if (options_.normalization == TextNormalization::none) return placed_lines(text, TextBegins::a_line);
  const auto seen = prepared(text);
  std::vector<PlacedToken> tokens;
  append_placed(seen, tokens);
  in_code_points(seen, tokens);
  return tokens;
}

std::vector<PlacedToken> SentencePieceTokenizer::encode_continuation_with_places(
    std::string_view text) const {
  check_utf8(text);
  if (options_.normalization == TextNormalization::none) return placed_lines(text, TextBegins::within_a_line);
  const auto seen = prepared(text);
  auto tokens = placed_after_stand_in(seen);
  in_code_points(seen, tokens);
  return tokens;
}

TokenIds SentencePieceTokenizer::encode(std::string_view text) const {
  check_utf8(text);
  if (options_.normalization == TextNormalization::none) return encode_lines(text, TextBegins::a_line);
  TokenIds ids;
  append_ids(prepared(text), ids);
  return ids;
}

TokenIds SentencePieceTokenizer::encode_continuation(std::string_view text) const {
  check_utf8(text);
  if (options_.normalization == TextNormalization::none) return encode_lines(text, TextBegins::within_a_line);
  TokenIds ids;
  for (const auto& token : placed_after_stand_in(prepared(text))) ids.push_back(token.id);
  return ids;
}

/// The tokens of a prepared text within a longer one, with their places in bytes. SentencePiece begins every
/// text with a blank. After a character that no piece contains, it cuts `seen` as in the middle of a longer
/// text. The pieces of that character alone are then left out.
std::vector<PlacedToken> SentencePieceTokenizer::placed_after_stand_in(std::string_view seen) const {
  std::vector<PlacedToken> tokens;
  append_placed(std::string(stand_in).append(seen), tokens);
  // A piece can begin before `seen` and end in it, because adjacent unknown characters become one unk.
  std::erase_if(tokens, [](const PlacedToken& token) {
    return token.begin < stand_in.size() && token.end <= stand_in.size();
  });
  for (auto& token : tokens) {
    token.begin = std::max(token.begin, stand_in.size()) - stand_in.size();
    token.end -= stand_in.size();
  }
  return tokens;
}

std::string SentencePieceTokenizer::decode(std::span<const int64_t> ids) const {
  if (!options_.marks_lines) return decode_pieces(ids);
  std::string text;
  for (size_t begin = 0; begin <= ids.size();) {
    const auto rest = ids.subspan(begin);
    const auto length = static_cast<size_t>(std::ranges::find(rest, line_break_) - rest.begin());
    const auto line = decode_pieces(rest.first(length));
    text += line.starts_with(' ') ? line.substr(1) : line;
    if (length < rest.size()) text += '\n';
    begin += length + 1;
  }
  return text;
}

std::string SentencePieceTokenizer::decode_pieces(std::span<const int64_t> ids) const {
  std::vector<int> narrow;
  narrow.reserve(ids.size());
  for (const int64_t id : ids) {
    check_id(id, vocab_size_);
    narrow.push_back(static_cast<int>(id));
  }
  std::string text;
  const auto status = processor_->Decode(narrow, &text);
  if (!status.ok()) throw DataError(fmt::format("SentencePiece: {}", excerpt(status.ToString(), 200)));
  return options_.normalization == TextNormalization::none ? show_marks(std::move(text)) : text;
}

TokenText SentencePieceTokenizer::token_text(int64_t id) const {
  check_id(id, vocab_size_);
  const auto piece = static_cast<int>(id);
  if (processor_->IsControl(piece) || processor_->IsUnknown(piece) || processor_->IsUnused(piece)) return {};
  std::string text = processor_->IdToPiece(piece);
  if (const auto byte = processor_->IsByte(piece) ? byte_of_token(text) : std::nullopt)
    return {.first = *byte, .later = *byte};
  for (size_t at = text.find(blank_mark); at != text.npos; at = text.find(blank_mark, at + 1))
    text.replace(at, blank_mark.size(), " ");
  if (options_.normalization == TextNormalization::none) text = show_marks(std::move(text));
  return {.first = decode({&id, 1}), .later = std::move(text)};
}

bool SentencePieceTokenizer::keeps_text() const {
  return options_.normalization == TextNormalization::none && !options_.lowercase;
}

std::string SentencePieceTokenizer::label(int64_t id) const {
  check_id(id, vocab_size_);
  if (const auto special = special_label(special_, id); !special.empty()) return std::string(special);
  const std::string& piece = processor_->IdToPiece(static_cast<int>(id));
  return id == line_break_ ? "↵" : piece;
}

void SentencePieceTokenizer::save(const std::filesystem::path& run_dir) const {
  write_file_atomically(run_dir / model_name, model_);
  write_tokenizer_file(run_dir, {.type = TokenizerKind::sentencepiece,
                                 .lowercase = options_.lowercase,
                                 .normalization = options_.normalization,
                                 .marks_lines = options_.marks_lines,
                                 .special = special_,
                                 .symbols = {},
                                 .model_sha256 = sha256(model_)});
}

std::map<std::string, std::string> SentencePieceTokenizer::exported_files(const TextFrame& frame) const {
  const auto facts = facts_of(model_);
  ExportedPieces exported{
      .pieces = {},
      .algorithm = facts.algorithm,
      .special =
          exported_tokens(special_, [&](int64_t id) { return processor_->IdToPiece(static_cast<int>(id)); }),
      .unknown = processor_->IdToPiece(processor_->unk_id()),
      .charsmap = facts.charsmap,
      .marks = options_.marks_lines ? MarkedPlaces::lines
               : facts.adds_blank   ? MarkedPlaces::text
                                    : MarkedPlaces::nothing,
      .blanks = facts.merges_blanks ? SeveralBlanks::are_one : SeveralBlanks::stay,
      .has_line_break = line_break_ >= 0,
      .hides_marks = options_.normalization == TextNormalization::none,
      .letters = options_.lowercase ? LetterCase::folded : LetterCase::as_written,
      .frame = frame};
  for (int id = 0; id < processor_->GetPieceSize(); ++id) {
    exported.pieces.push_back({.text = processor_->IdToPiece(id), .score = processor_->GetScore(id)});
    auto& [text, score, kind] = exported.pieces.back();
    if (processor_->IsUnknown(id)) kind = PieceKind::unknown;
    if (processor_->IsControl(id) || processor_->IsUnused(id)) kind = PieceKind::control;
    if (processor_->IsByte(id)) kind = PieceKind::byte;
  }
  return export_pieces(exported);
}

std::string SentencePieceTokenizer::fingerprint() const {
  return fmt::format("sentencepiece {}{}{} {}", options_.lowercase,
                     options_.normalization == TextNormalization::none ? " none" : "",
                     options_.marks_lines ? " lines" : "", sha256(model_));
}

}  // namespace zoo
