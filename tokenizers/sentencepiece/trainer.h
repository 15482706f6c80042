#pragma once
// The trainer of the library SentencePiece.

#include <string>
#include <unordered_map>
#include <vector>

namespace zoo {

/// Trains a model on `lines` with options of the library, and returns it serialised. The library's trainer
/// ends its process for texts that it did not expect, so it works in a child process. Throws DataError with
/// the library's own message, on which a caller may elaborate; SystemError if there can be no child.
std::string train_sentencepiece(const std::unordered_map<std::string, std::string>& options,
                                const std::vector<std::string>& lines);

}  // namespace zoo
