#pragma once
// Corpora: text files read and checked. What comes out is UTF-8 without byte order mark and with "\n" line
// ends.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_config.h"
#include "data/text/token_store.h"

namespace zoo {

/// The three splits of a corpus.
enum class Split { train, valid, test };
constexpr auto config_names(Split) { return std::to_array<std::string_view>({"train", "valid", "test"}); }

/// The files of `split` as an error names them: "valid.txt", "a.txt, b.txt"; the prefixes of parallel texts.
std::string corpus_name(const DataConfig& config, Split split);

/// Hex digest of all that the training and validation files hold.
std::string hash_of_data(const DataConfig& config);

// Where the configuration names no validation files, the end of the training files is the validation split
// (and is left out of the training split): of a text that is one document, the last valid_fraction of its
// code points, train being the first int((1 - valid_fraction)·n) as in nanoGPT; else that part of the
// documents or rows.

/// Documents of the text files of `split`, in order; none of them blank. With DocumentSplit::none each file
/// is one. Of a tab-separated file, NAME.tsv, each text is one, or with DocumentSplit::none a line. Throws
/// DataError: no such file, empty, invalid UTF-8 (with file, line and byte).
std::vector<std::string> read_documents(const DataConfig& config, Split split);

struct ParallelTexts {
  std::vector<std::string> source, target;  // equally many
};
/// Lines of PREFIX.source and PREFIX.target; pairs of which one side is blank are left out. Throws DataError,
/// also where the numbers of lines differ.
ParallelTexts read_parallel(const DataConfig& config, Split split);

struct LabelledTexts {
  std::vector<std::string> texts;
  std::vector<std::string> labels;  // as written in the file
};
/// Rows of tab-separated files with a header line (no quoting, as in GLUE). Throws DataError with file and
/// line.
LabelledTexts read_labelled(const DataConfig& config, Split split);

}  // namespace zoo
