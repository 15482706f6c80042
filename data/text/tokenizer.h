#pragma once
// From text to token ids and back.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_config.h"

namespace zoo {

using TokenIds = std::vector<int64_t>;

/// Ids of the tokens that stand for no text; -1 = the vocabulary has none.
struct SpecialTokens {
  int64_t pad = -1, unk = -1, bos = -1, eos = -1;
  int64_t mask = -1, cls = -1, sep = -1;
};

/// Which special tokens a task needs. `none` gives a vocabulary of the text's symbols alone (a character
/// model of one stream, as nanoGPT's).
enum class SpecialTokenSet { none, all };

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Ids of `text`, without special tokens. Throws DataError on invalid UTF-8 (byte tokenizer: never), and on
  /// a character outside the vocabulary where there is no unk.
  virtual TokenIds encode(std::string_view text) const = 0;
  /// Ids of a text that stands behind other tokens: where it begins without a blank, it goes on with their
  /// word. Other than encode() only for tokenizers that mark where words begin. Throws as encode().
  virtual TokenIds encode_continuation(std::string_view text) const { return encode(text); }
  /// Text of `ids`; special tokens give nothing, but unk gives "⁇". Throws DataError on an id outside
  /// 0 … vocab_size-1. With byte tokens the text need not be valid UTF-8.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  /// How one token is shown to a person: "▁love", "\n" as "↵", "<eos>".
  virtual std::string label(int64_t id) const = 0;
  virtual int64_t vocab_size() const = 0;
  virtual const SpecialTokens& special() const = 0;
  /// Writes RUN/tokenizer.json (char, byte: everything; sentencepiece: the type and special ids, with
  /// RUN/tokenizer.model beside it). Throws SystemError.
  virtual void save(const std::filesystem::path& run_dir) const = 0;
  /// Differs between tokenizers that encode differently; names their cached corpora. Empty: nothing is
  /// cached.
  virtual std::string fingerprint() const { return {}; }
};

/// Calls `sink` with each text of a corpus.
using TextReader = std::function<void(const std::function<void(std::string_view)>& sink)>;

/// Trains a tokenizer on a corpus as `config` asks, or loads the one `config.path` names (relative to the
/// data root). Deterministic. Throws DataError (an empty corpus, fewer distinct pieces than the vocabulary
/// asks for: says how many are possible).
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerConfig& config, SpecialTokenSet special,
                                          const TextReader& corpus);

/// The tokenizer that a run left. Throws CheckpointError.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& run_dir);

/// Ids of a text in which `<mask>` stands for the mask token, as training makes them by hiding a token: a
/// blank before `<mask>` belongs to what is hidden, and what follows without a blank goes on with its word or
/// is punctuation behind it. Throws DataError as encode() does, and where the vocabulary has no mask.
TokenIds encode_masked(const Tokenizer& tokenizer, std::string_view text);

/// Turns a growing list of ids into pieces of text, holding back what may still change: an incomplete UTF-8
/// sequence, a leading blank. The pieces end to end are exactly what decode() makes of all ids.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  /// The text that `id` adds, perhaps nothing yet.
  std::string push(int64_t id);
  /// Lets what was pushed so far count as out, but for the bytes of a character that is not whole yet.
  void skip();
  /// What was held back.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  TokenIds ids_;         // the newest ids, from one whose text is out already
  std::string emitted_;  // what of their text is out
  size_t pending_ = 0;   // how many ids at the end came after the last output
};

}  // namespace zoo
