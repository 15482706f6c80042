#pragma once
// The documents of a corpus. The texts are UTF-8 without a byte order mark and with "\n" line ends.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_config.h"
#include "data/splits.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// SHA-256 of files, by their paths.
using FileHashes = std::map<std::filesystem::path, std::string>;

/// Hex digest of the content of the training and validation files, or of a name that leads to no file. Files
/// that are not `known` are read.
std::string hash_of_data(const DataConfig& config, const FileHashes& known = {});

struct Document {
  std::string_view text;
  const std::filesystem::path& file;
  int64_t line = 0;  // of the file, with data.chat
};

/// The documents of text files and tables (data/tables.h), in order; none is blank. With DocumentSplit::none
/// each file is one document, which is read as a whole, and the text of each row of a table is a line of it.
/// Other documents are read one by one, and the text of each row is one. With data.chat each line of a file
/// (NAME.jsonl) is one.
///
/// If the configuration names no validation files, the end of the training files is the validation split and
/// is left out of the training split. The training split has the first int((1 - valid_fraction)·n) of n
/// items. With DocumentSplit::none the items are code points, as in nanoGPT; otherwise they are documents.
///
/// Files are opened as seldom as possible. The first pass over them also takes the hashes, counts the items,
/// and keeps the texts of a corpus of at most `most_kept` bytes. A larger one is read again by each visit().
class Corpus {
 public:
  static constexpr size_t kMostKept = size_t{256} << 20;
  explicit Corpus(DataConfig config, size_t most_kept = kMostKept);
  Corpus(Corpus&&) = default;
  Corpus& operator=(Corpus&&) = default;

  const DataConfig& config() const { return config_; }

  using Visitor = std::function<void(const Document& document, Split split)>;
  /// Calls `visit` with the documents of one split, or of train and valid if they share files. Throws
  /// DataError for a missing or empty file, for invalid UTF-8 (with file, line and byte), and if the first of
  /// the splits has no documents.
  void visit(std::span<const Split> splits, const Visitor& visit);
  void visit(Split split, const Visitor& visit) { this->visit(std::span(&split, 1), visit); }
  /// visit(), as often as it is called. The corpus must outlive it.
  TextReader reader(Split split);
  /// The documents of a split.
  std::vector<std::string> texts(Split split);
  /// How many they are. Not for DocumentSplit::none.
  int64_t n_documents(Split split);

  /// A hash of the documents of a split. Throws DataError as visit().
  std::string fingerprint(Split split);
  /// hash_of_data() of the configuration.
  std::string hash_of_data() const { return zoo::hash_of_data(config_, hashes_); }
  /// Frees the texts that are kept.
  void release();

 private:
  using DocumentVisitor = std::function<void(const Document& document)>;
  struct Kept {
    std::string text;
    const std::filesystem::path* file;  // in hashes_
    int64_t line;
  };
  /// The files of a split, or of train and valid if they share them.
  struct Files {
    bool is_surveyed = false;  // a pass over them has been complete
    size_t n_items = 0;
    std::string digest = {};  // of all documents
    std::optional<std::vector<Kept>> kept = {};
  };

  bool has_whole_texts() const { return !config_.chat && config_.documents == DocumentSplit::none; }
  Files& files_of(Split split);
  Files& surveyed(Split split);
  void read(Split split, const DocumentVisitor& visit);
  void survey(Files& files, Split split, const DocumentVisitor& visit);
  void visit_parts_of_whole_texts(const Visitor& visit);

  DataConfig config_;
  size_t most_kept_;
  std::array<Files, 3> files_;  // by Split
  FileHashes hashes_;
};

/// The documents of a split, all in memory.
std::vector<std::string> read_documents(const DataConfig& config, Split split);

}  // namespace zoo
