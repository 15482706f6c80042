#pragma once
// What a program says before it learns a vocabulary or reads a corpus, where that takes more than a few
// seconds.

#include <cstdint>
#include <optional>
#include <string>

#include "data/splits.h"
#include "tasks/experiment.h"

namespace zoo {

/// The bytes of text from which on work takes more than a few seconds on one core.
struct LongPreparation {
  int64_t learnt = 4'000'000;  // to learn a vocabulary: SentencePiece takes 0.6 s for a megabyte
  int64_t read = 30'000'000;   // to read and encode a corpus: 0.1 to 0.2 s for a megabyte
};

/// The bytes of the files of a split, compressed ones as they are, without the pictures of a directory. A
/// file that is not there has none.
int64_t bytes_of(const DataConfig& config, Split split);

/// "learning a vocabulary of 8000 tokens from text.txt (5.2 MB)". Nothing if that is quick, or if the
/// tokenizer learns nothing.
std::optional<std::string> learning_note(const Experiment& experiment, const LongPreparation& from = {});
/// The same for the files of `corpus.train`.
std::optional<std::string> learning_note(const TokenizerConfig& config, const DataConfig& corpus,
                                         const LongPreparation& from = {});

/// "reading text.txt (540.0 MB)". Nothing if that is quick.
std::optional<std::string> reading_note(const DataConfig& config, Split split,
                                        const LongPreparation& from = {});

}  // namespace zoo
