#pragma once
// From text to token ids and back.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_config.h"
#include "tokenizers/hub/placed_token.h"
#include "tokenizers/hub/text_frame.h"
#include "tokenizers/hub/token_text.h"

namespace zoo {

using TokenIds = std::vector<int64_t>;

/// Ids of the tokens that stand for no text; -1 = the vocabulary does not have this one.
struct SpecialTokens {
  int64_t pad = -1, unk = -1, bos = -1, eos = -1;
  int64_t mask = -1, cls = -1, sep = -1;
  /// Further tokens that end a text, besides eos.
  std::vector<int64_t> other_ends = {};
  /// The first input of the decoder of an encoder-decoder; -1 = bos.
  int64_t start = -1;
};

/// What stands for the mask token in texts that people write.
inline constexpr std::string_view kWrittenMask = "<mask>";

/// Which special tokens a task needs. `none` gives a vocabulary of only the text's symbols (a character model
/// of one stream, as in nanoGPT). `infilling`: all, and those of fill-in-the-middle
/// (text/batches/infilling.h), which only vocabularies of the type bpe can have.
enum class SpecialTokenSet { none, all, infilling };

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Ids of `text`, without special tokens around it. The text of a special token is text like any other for
  /// vocabularies that were learned here; for those of the Hub it is the token, unless their
  /// split_special_tokens says otherwise. Throws DataError on invalid UTF-8 (byte tokenizer: never), and on a
  /// character outside the vocabulary if there is no unk.
  virtual TokenIds encode(std::string_view text) const = 0;
  /// Ids of a text that follows other tokens. If it begins without a blank, it continues their last word.
  /// Differs from encode() only for tokenizers that mark the beginning of words. Throws as encode() does.
  virtual TokenIds encode_continuation(std::string_view text) const { return encode(text); }
  /// As encode(), but `<mask>` in `text` is the mask token. For a vocabulary of the Hub it stands for this
  /// token's own text, such as [MASK], which takes the blanks that it takes there. For others the ids are
  /// those of training, where a mask hides one token: a blank before `<mask>` belongs to the hidden token,
  /// and text that follows without a blank continues its word or is punctuation after it. Throws DataError,
  /// too, if the vocabulary has no mask.
  virtual TokenIds encode_masked(std::string_view text) const;
  /// A place, after `begin` and about `size` bytes further, where `text` can be cut: the ids of both parts
  /// are those of the whole. text.size() if there is none, or none is known.
  virtual size_t part_end(std::string_view text, size_t /*begin*/, size_t /*size*/) const {
    return text.size();
  }
  /// As encode(), with the code points of `text` that each token stands for, as transformers'
  /// return_offsets_mapping says them. Throws DataError, too, if this kind of tokenizer does not know them.
  virtual std::vector<PlacedToken> encode_with_places(std::string_view text) const;
  /// The same for encode_continuation().
  virtual std::vector<PlacedToken> encode_continuation_with_places(std::string_view text) const {
    return encode_with_places(text);
  }
  /// Text of `ids`. Special tokens give no text, except that unk gives "⁇". Throws DataError on an id outside
  /// 0 … vocab_size-1. With byte tokens the text may be invalid UTF-8.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  /// How many bytes at the end of a decoded text may change if more ids follow, beside incomplete characters.
  virtual size_t unsettled_bytes(std::string_view /*text*/) const { return 0; }
  /// What a token adds to a text. Empty: it has no text, or one that depends on its neighbours. Throws
  /// DataError for a vocabulary whose texts are not those of its tokens one after the other.
  virtual TokenText token_text(int64_t id) const;
  /// Whether a token behind this one adds what it adds at the beginning of a text.
  virtual bool begins_text_after(int64_t /*id*/) const { return false; }
  /// How one token is shown to a person: "▁love", "\n" as "↵", "<eos>".
  virtual std::string label(int64_t id) const = 0;
  virtual int64_t vocab_size() const = 0;
  /// Whether it knows texts at all (tokenizers/id_tokenizer.h).
  virtual bool has_texts() const { return true; }
  /// Whether a blank is part of the token that follows it.
  virtual bool joins_blanks() const { return false; }
  /// Whether decode(encode(text)) is `text`, except for characters that became unk.
  virtual bool keeps_text() const = 0;
  virtual const SpecialTokens& special() const = 0;
  /// The tokens that this vocabulary puts around each text; nullopt: the task decides.
  virtual std::optional<TextFrame> frame() const { return std::nullopt; }
  /// The tokens that a model never generates. By default the special tokens that do not end a text.
  virtual TokenIds never_generated() const;
  /// Writes RUN/tokenizer.json (char, byte: everything; sentencepiece: the type and special ids, with
  /// RUN/tokenizer.model beside it; hub: the same, with the files in RUN/hub/). Throws SystemError.
  virtual void save(const std::filesystem::path& run_dir) const = 0;
  /// The files from which Hugging Face transformers makes this tokenizer, by name. `frame` stands around
  /// texts if frame() says nothing. By default: no files.
  virtual std::map<std::string, std::string> exported_files(const TextFrame& /*frame*/) const { return {}; }
  /// Differs between tokenizers that encode differently; a part of the cache key of a corpus. Empty: nothing
  /// is cached.
  virtual std::string fingerprint() const { return {}; }
};

/// Writes Tokenizer::exported_files() to `dir`. Throws SystemError.
void export_files(const Tokenizer& tokenizer, const std::filesystem::path& dir, const TextFrame& frame);

/// The first token that the decoder of an encoder-decoder reads; -1 = the vocabulary has no such token.
int64_t decoder_start(const SpecialTokens& special);
/// The tokens that end a generated text: eos and others, if the vocabulary has any.
TokenIds end_tokens(const SpecialTokens& special);

/// Throws DataError unless the vocabulary has this special token.
void require_special(int64_t id, const char* name, const char* task);

/// What an encoder reads around a text and around a pair of texts: the vocabulary's frame, or else
/// <cls> A <sep> and <cls> A <sep> B <sep>. Throws DataError if the vocabulary lacks these tokens; `task` is
/// the name of what needs them.
TextFrame encoder_frame(const Tokenizer& tokenizer, const char* task);

/// Calls `sink` with each text of a corpus.
using TextReader = std::function<void(const std::function<void(std::string_view)>& sink)>;

/// Trains a tokenizer on a corpus according to `config`, or loads the model that `config.path` names. Its
/// special tokens are `special`, whatever config.special_tokens says. Deterministic. A corpus with fewer
/// pieces than `config` asks for gives a smaller vocabulary. Throws DataError for an empty corpus, and for a
/// vocabulary that is too small for its characters (the message says how large it must be).
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerConfig& config, SpecialTokenSet special,
                                          const TextReader& corpus);

/// Says that a vocabulary made from `config` has fewer tokens than it asks for; nullopt if it does not.
std::optional<std::string> vocabulary_note(const TokenizerConfig& config, const Tokenizer& tokenizer);

/// The tokenizer that a run saved, or that a directory of the Hub has (tokenizers/hub_tokenizer.h), whose
/// special tokens are then those that its tokenizer's files name. Throws CheckpointError for a run, DataError
/// for a directory of the Hub.
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& dir);

/// The tokenizer that a run saved. Throws CheckpointError.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& run_dir);

/// Turns a growing list of ids into pieces of text. It holds back text that may still change: an incomplete
/// UTF-8 sequence, a leading blank. The joined pieces are exactly the text that decode() gives for all ids.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  /// The text that `id` adds; it may be empty.
  std::string push(int64_t id);
  /// Treats the text of all ids so far as returned, except the bytes of an incomplete character.
  void skip();
  /// The text that was held back.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  TokenIds ids_;         // the newest ids, from one whose text was returned
  std::string emitted_;  // the part of their text that was returned
  size_t pending_ = 0;   // number of ids since the last output
};

}  // namespace zoo
