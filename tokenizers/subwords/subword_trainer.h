#pragma once
// Tokenizers of the Hub that are trained here: BPE of bytes as GPT-2's, WordPiece as BERT's.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

enum class SubwordKind { byte_bpe, word_piece };

struct SubwordTraining {
  SubwordKind kind = SubwordKind::byte_bpe;
  int64_t vocab_size = 8000;
  bool lowercase = false;
  /// The special tokens by what transformers calls them (pad_token, unk_token …; empty: it has no name for
  /// them), in the order of their ids. WordPiece needs an unk_token.
  std::vector<std::pair<std::string, std::string>> special;
};

/// tokenizer.json and tokenizer_config.json of a tokenizer trained on the texts, which must be UTF-8. The
/// same texts give the same bytes. BPE's merges are those of tokenizers' BpeTrainer, WordPiece's are learned
/// in the same way; pairs that occur once are not merged. Throws DataError for texts without a piece, and for
/// a vocabulary that is too small for the characters (the message says how large it must be).
std::map<std::string, std::string> train_subwords(
    const SubwordTraining& training,
    const std::function<void(const std::function<void(std::string_view)>& sink)>& texts);

}  // namespace zoo
