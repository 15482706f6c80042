#include "data/text/sentencepiece_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <unordered_map>

#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include "base/error.h"
#include "base/text.h"
#include "data/text/lowercase.h"
#include "data/text/token_store.h"
#include "data/text/tokenizer_file.h"
#include "io/files.h"
#include "io/sha256.h"

namespace zoo {
namespace {

constexpr std::string_view model_name = "tokenizer.model";
/// The last code point for private use (U+10FFFD). No text and no piece contains it, and NFKC keeps it.
constexpr std::string_view stand_in = "\xF4\x8F\xBF\xBD";

/// Gives the lines of a corpus to SentencePiece's trainer.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return next_ == lines_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t next_ = 0;
};

struct TrainingText {
  std::vector<std::string> lines;  // without blank ones
  size_t longest = 0;              // bytes
  bool has_line_breaks = false;    // within a text
};

TrainingText read_training_text(const TextReader& corpus, bool fold) {
  TrainingText result;
  corpus([&](std::string_view text) {
    check_utf8(text);
    const std::string folded = fold ? lowercase(text) : std::string();
    if (fold) text = folded;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      result.has_line_breaks |= end < text.size();
      const std::string_view line = text.substr(begin, end - begin);
      if (line.find_first_not_of(" \t\r") != line.npos) {
        result.lines.emplace_back(line);
        result.longest = std::max(result.longest, line.size());
      }
      begin = end + 1;
    }
  });
  return result;
}

/// Throws SentencePiece's message about the vocabulary size in the words of a configuration.
[[noreturn]] void fail_training(const std::string& message, int64_t vocab_size) {
  const auto number_after = [&](std::string_view words) {
    const size_t at = message.find(words);
    int64_t number = 0;
    for (size_t i = at + words.size();
         at != message.npos && i < message.size() && std::isdigit(static_cast<unsigned char>(message[i]));
         ++i) {
      number = 10 * number + (message[i] - '0');
    }
    return number;
  };
  if (const int64_t largest = number_after("Please set it to a value <= "); largest > 0) {
    throw DataError(
        fmt::format("data.tokenizer.vocab_size (--vocab-size) {} is too large: the training text has no more "
                    "than {} pieces",
                    vocab_size, largest));
  }
  if (const int64_t smallest = number_after(fmt::format("required_chars. {} vs ", vocab_size));
      smallest > 0) {
    throw DataError(
        fmt::format("data.tokenizer.vocab_size (--vocab-size) {} is too small: the characters of the "
                    "training text alone need {}; use a larger one, or set "
                    "data.tokenizer.character_coverage (--character-coverage) below 1",
                    vocab_size, smallest));
  }
  throw DataError(fmt::format("SentencePiece could not make a vocabulary: {}", excerpt(message, 300)));
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
  const TrainingText text = read_training_text(corpus, config.lowercase);
  if (text.lines.empty())
    throw DataError("the training text is empty: there is nothing to make a vocabulary from");
  const bool all = special == SpecialTokenSet::all;
  std::unordered_map<std::string, std::string> options = {
      {"model_type", std::string(name_of(config.model))},
      {"vocab_size", std::to_string(config.vocab_size)},
      {"character_coverage", fmt::format("{}", config.character_coverage)},
      {"normalization_rule_name", "nmt_nfkc"},
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
  if (all) options.emplace("control_symbols", "<mask>,<cls>,<sep>");
  // NFKC turns a line break into a blank, except if it is a symbol of its own. Generated text can then have
  // lines.
  if (text.has_line_breaks) options.emplace("user_defined_symbols", "\n");

  const auto kept = cache_file(options, text.lines);
  std::error_code ignored;
  if (!kept.empty() && std::filesystem::exists(kept, ignored)) {
    try {
      if (auto model = read_kept(kept))
        return std::make_unique<SentencePieceTokenizer>(std::move(*model), config.lowercase);
    } catch (const DataError&) {
      // Unreadable: train again.
    }
  }
  Lines lines(text.lines);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &lines, &model);
  if (!status.ok()) fail_training(status.ToString(), config.vocab_size);
  keep(kept, model);
  return std::make_unique<SentencePieceTokenizer>(std::move(model), config.lowercase);
}

SentencePieceTokenizer::SentencePieceTokenizer(std::string model, bool fold)
    : model_(std::move(model)),
      lowercase_(fold),
      processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  if (!processor_->LoadFromSerializedProto(model_).ok() || processor_->GetPieceSize() == 0) {
    throw DataError("not a SentencePiece model");
  }
  vocab_size_ = processor_->GetPieceSize();
  special_ = {.pad = processor_->pad_id(),
              .unk = processor_->unk_id(),
              .bos = processor_->bos_id(),
              .eos = processor_->eos_id(),
              .mask = find_piece(*processor_, {"<mask>", "[MASK]"}),
              .cls = find_piece(*processor_, {"<cls>", "[CLS]"}),
              .sep = find_piece(*processor_, {"<sep>", "[SEP]"})};
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

std::unique_ptr<SentencePieceTokenizer> SentencePieceTokenizer::load(const std::filesystem::path& run_dir) {
  const TokenizerFile file = read_tokenizer_file(run_dir);
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
    return std::make_unique<SentencePieceTokenizer>(std::move(model), file.lowercase);
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: {}", path.string(), e.what()));
  }
}

TokenIds SentencePieceTokenizer::encode(std::string_view text) const {
  check_utf8(text);
  std::vector<int> ids;
  const auto status = processor_->Encode(lowercase_ ? lowercase(text) : std::string(text), &ids);
  if (!status.ok()) throw DataError(fmt::format("SentencePiece: {}", excerpt(status.ToString(), 200)));
  return {ids.begin(), ids.end()};
}

TokenIds SentencePieceTokenizer::encode_continuation(std::string_view text) const {
  check_utf8(text);
  // SentencePiece begins every text with a blank. After a character that no piece contains, it cuts `text` as
  // in the middle of a longer text. The pieces of that character alone are then left out.
  const auto whole = std::string(stand_in) + (lowercase_ ? lowercase(text) : std::string(text));
  const auto encoded = processor_->EncodeAsImmutableProto(whole);
  TokenIds ids;
  for (const auto& piece : encoded.pieces()) {
    // A piece can begin before `text` and end in it, because adjacent unknown characters become one unk.
    if (piece.begin() >= stand_in.size() || piece.end() > stand_in.size()) ids.push_back(piece.id());
  }
  return ids;
}

std::string SentencePieceTokenizer::decode(std::span<const int64_t> ids) const {
  std::vector<int> narrow;
  narrow.reserve(ids.size());
  for (const int64_t id : ids) {
    check_id(id, vocab_size_);
    narrow.push_back(static_cast<int>(id));
  }
  std::string text;
  const auto status = processor_->Decode(narrow, &text);
  if (!status.ok()) throw DataError(fmt::format("SentencePiece: {}", excerpt(status.ToString(), 200)));
  return text;
}

std::string SentencePieceTokenizer::label(int64_t id) const {
  check_id(id, vocab_size_);
  if (const auto special = special_label(special_, id); !special.empty()) return std::string(special);
  const std::string& piece = processor_->IdToPiece(static_cast<int>(id));
  return piece == "\n" ? "↵" : piece;
}

void SentencePieceTokenizer::save(const std::filesystem::path& run_dir) const {
  write_file_atomically(run_dir / model_name, model_);
  write_tokenizer_file(run_dir, {.type = TokenizerKind::sentencepiece,
                                 .lowercase = lowercase_,
                                 .special = special_,
                                 .symbols = {},
                                 .model_sha256 = sha256(model_)});
}

std::string SentencePieceTokenizer::fingerprint() const {
  return fmt::format("sentencepiece {} {}", lowercase_, sha256(model_));
}

}  // namespace zoo
