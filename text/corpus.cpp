#include "text/corpus.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/file_lines.h"
#include "data/tables.h"
#include "data/text_files.h"
#include "io/file_kind.h"
#include "io/sha256.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

using LineVisitor = std::function<void(std::string_view document)>;

/// Puts lines together to documents.
class DocumentSplitter {
 public:
  DocumentSplitter(DocumentSplit split, const LineVisitor& visit) : split_(split), visit_(visit) {}

  void add(std::string_view line) {
    if (split_ == DocumentSplit::line) {  // no copy: a line may be a large part of the memory
      if (!is_blank(line)) visit_(without_blanks_at_end(line));
      return;
    }
    const bool separator =
        split_ == DocumentSplit::blank_line ? is_blank(line) : without_blanks_at_end(line) == "%";
    if (separator) {
      finish();
    } else {
      document_.append(line).push_back('\n');
    }
  }
  void finish() {
    if (!is_blank(document_)) {
      const size_t first_line = document_.find_first_not_of('\n');
      visit_(without_blanks_at_end(std::string_view(document_).substr(first_line)));
    }
    document_.clear();
  }

 private:
  DocumentSplit split_;
  const LineVisitor& visit_;
  std::string document_;
};

/// What becomes of the content of files.
struct FileVisitor {
  std::function<void(const Document& document)> document;
  /// Is given the hash of each file, unless it is null.
  std::function<void(const fs::path& file, std::string hash)> hash;
};

void visit_table(const fs::path& path, const DataConfig& config, const FileVisitor& visit) {
  const auto table = open_table(path);
  if (visit.hash) visit.hash(path, table->hash());
  const bool is_whole = config.documents == DocumentSplit::none;
  std::string whole;
  table->read({config.text_column}, [&](const TableRow& row) {
    const auto& text = row.fields.front();
    if (is_whole) {
      whole.append(text).push_back('\n');
    } else if (!is_blank(text)) {
      visit.document({.text = text, .file = path});
    }
  });
  if (!whole.empty()) visit.document({.text = whole, .file = path});
}

void visit_conversation_lines(const fs::path& path, const FileVisitor& visit) {
  if (!has_extension(path, {".jsonl", ".ndjson"})) {
    throw DataError(
        fmt::format("{}: conversations are read from NAME.jsonl, with an object like {{\"messages\": "
                    "[...]}} in each line",
                    path.string()));
  }
  FileLines lines(path);
  if (visit.hash) visit.hash(path, lines.hash());
  while (lines.next()) {
    if (!is_blank(lines.line())) visit.document({.text = lines.line(), .file = path, .line = lines.number()});
  }
}

void visit_file(const fs::path& path, const DataConfig& config, const FileVisitor& visit) {
  if (config.chat) return visit_conversation_lines(path, visit);
  if (is_table(path)) return visit_table(path, config, visit);
  if (config.documents == DocumentSplit::none) {
    const auto text = read_text(path, [&](std::string_view content) {
      if (visit.hash) visit.hash(path, sha256(content));
    });
    return visit.document({.text = text, .file = path});
  }
  bool is_empty = true;
  FileLines lines(path);
  if (visit.hash) visit.hash(path, lines.hash());
  const LineVisitor visit_document = [&](std::string_view text) {
    visit.document({.text = text, .file = path});
  };
  DocumentSplitter splitter(config.documents, visit_document);
  while (lines.next()) {
    is_empty = is_empty && is_blank(lines.line());
    splitter.add(lines.line());
  }
  splitter.finish();
  if (is_empty) throw DataError(fmt::format("{}: the file is empty, or has only blanks", path.string()));
}

void visit_files(const DataConfig& config, Split split, const FileVisitor& visit) {
  for (const auto& file : files_to_read(config, split)) visit_file(data_path(file), config, visit);
}

}  // namespace

Corpus::Corpus(DataConfig config, size_t most_kept) : config_(std::move(config)), most_kept_(most_kept) {}

Corpus::Files& Corpus::files_of(Split split) {
  return files_[static_cast<size_t>(is_shared(config_, split) ? Split::train : split)];
}

Corpus::Files& Corpus::surveyed(Split split) {
  auto& files = files_of(split);
  if (!files.is_surveyed) survey(files, split, [](const Document&) {});
  return files;
}

/// Visits the documents of the files, whatever split they belong to.
void Corpus::read(Split split, const DocumentVisitor& visit) {
  auto& files = files_of(split);
  if (!files.is_surveyed) return survey(files, split, visit);
  if (!files.kept) return visit_files(config_, split, {.document = visit, .hash = nullptr});
  for (const auto& [text, file, line] : *files.kept) visit({.text = text, .file = *file, .line = line});
}

void Corpus::survey(Files& files, Split split, const DocumentVisitor& visit) {
  Files found;
  std::vector<Kept> kept;
  size_t n_kept = 0;
  Sha256 sum;
  const auto look = [&](const Document& document) {
    sum.add(fmt::format("{}\n", document.text.size()));
    sum.add(document.text);
    found.n_items += has_whole_texts() ? count_code_points(document.text) : 1;
    n_kept += sizeof(Kept) + document.text.size();
    if (n_kept <= most_kept_) {
      const auto* const file = &hashes_.find(document.file)->first;
      kept.push_back({.text = std::string(document.text), .file = file, .line = document.line});
    } else {
      kept = {};
    }
    visit(document);
  };
  visit_files(config_, split, {.document = look, .hash = [&](const fs::path& file, std::string hash) {
                                 hashes_[file] = std::move(hash);
                               }});
  found.is_surveyed = true;
  found.digest = sum.digest();
  if (n_kept <= most_kept_) found.kept = std::move(kept);
  files = std::move(found);
}

void Corpus::visit(std::span<const Split> splits, const Visitor& visit) {
  const auto first = splits.front();
  size_t n_visited = 0;  // of the first split
  const Visitor visit_wanted = [&](const Document& document, Split split) {
    if (std::ranges::find(splits, split) == splits.end()) return;
    n_visited += split == first ? 1 : 0;
    visit(document, split);
  };
  if (!is_shared(config_, first)) {
    read(first, [&](const Document& document) { visit_wanted(document, first); });
  } else if (has_whole_texts()) {
    visit_parts_of_whole_texts(visit_wanted);
  } else {
    const size_t n_train = train_part(config_, surveyed(first).n_items);
    size_t n_seen = 0;
    read(first, [&](const Document& document) {
      visit_wanted(document, n_seen++ < n_train ? Split::train : Split::valid);
    });
  }
  if (n_visited == 0) fail_empty(config_, first, config_.chat ? "conversations" : "documents");
}

/// The whole texts are cut into train and valid, counted in code points over all texts.
void Corpus::visit_parts_of_whole_texts(const Visitor& visit) {
  std::vector<std::pair<std::string, std::filesystem::path>> texts;
  read(Split::train, [&](const Document& document) { texts.emplace_back(document.text, document.file); });
  size_t left = train_part(config_, files_of(Split::train).n_items);
  for (const auto& [text, file] : texts) {
    const std::string_view whole = text;
    const size_t cut = byte_of_code_point(whole, left);
    left -= std::min(left, count_code_points(whole));
    if (cut > 0) visit({.text = whole.substr(0, cut), .file = file}, Split::train);
    if (cut < whole.size()) visit({.text = whole.substr(cut), .file = file}, Split::valid);
  }
}

TextReader Corpus::reader(Split split) {
  return [this, split](const std::function<void(std::string_view)>& sink) {
    visit(split, [&](const Document& document, Split) { sink(document.text); });
  };
}

std::vector<std::string> Corpus::texts(Split split) {
  std::vector<std::string> texts;
  visit(split, [&](const Document& document, Split) { texts.emplace_back(document.text); });
  return texts;
}

int64_t Corpus::n_documents(Split split) {
  const size_t n = surveyed(split).n_items;
  if (!is_shared(config_, split)) return static_cast<int64_t>(n);
  const size_t n_train = train_part(config_, n);
  return static_cast<int64_t>(split == Split::train ? n_train : n - n_train);
}

std::string Corpus::fingerprint(Split split) {
  const auto& files = surveyed(split);
  if (!is_shared(config_, split)) return files.digest;
  return sha256(fmt::format("{} of {} {}", name_of(split), train_part(config_, files.n_items), files.digest));
}

void Corpus::release() {
  for (auto& files : files_) files.kept.reset();
}

std::vector<std::string> read_documents(const DataConfig& config, Split split) {
  return Corpus(config).texts(split);
}

std::string hash_of_data(const DataConfig& config, const FileHashes& known) {
  std::string hashes;
  for (const auto* files : {&config.train, &config.valid}) {
    for (const auto& file : *files) {
      const size_t before = hashes.size();
      for (const auto& name : {file, file + ("." + config.source), file + ("." + config.target)}) {
        try {
          const auto path = data_path(name);
          const auto found = known.find(path);
          hashes += found == known.end() ? sha256_of_file(path) : found->second;
        } catch (const DataError&) {  // `file` is a file or a prefix, so some of these names do not exist
        }
      }
      if (hashes.size() == before) hashes += sha256(file.text);  // the task knows what it means
    }
    hashes += '|';
  }
  return sha256(hashes);
}

}  // namespace zoo
