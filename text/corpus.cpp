#include "text/corpus.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/class_split.h"
#include "data/file_lines.h"
#include "data/tables.h"
#include "data/text_files.h"
#include "data/usual_columns.h"
#include "io/files.h"
#include "io/sha256.h"

namespace zoo {
namespace {

using DocumentVisitor = std::function<void(std::string_view document)>;

/// Puts lines together to documents.
class DocumentSplitter {
 public:
  DocumentSplitter(DocumentSplit split, const DocumentVisitor& visit) : split_(split), visit_(visit) {}

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
  const DocumentVisitor& visit_;
  std::string document_;
};

/// Keeps the part of whole texts that belongs to `split`, counted in code points over all texts.
void keep_part_of_text(const DataConfig& config, Split split, std::vector<std::string>& texts) {
  if (!is_shared(config, split)) return;
  size_t total = 0;
  for (const std::string& text : texts) total += count_code_points(text);
  size_t left = train_part(config, total);
  for (std::string& text : texts) {
    const size_t length = count_code_points(text);
    const size_t cut = byte_of_code_point(text, left);
    left -= std::min(left, length);
    text = split == Split::train ? text.substr(0, cut) : text.substr(cut);
  }
  std::erase_if(texts, [](const std::string& text) { return text.empty(); });
}

struct Row {
  std::string text, label, second;
};

void keep_rows_of(const DataConfig& config, Split split, Problem problem, std::vector<Row>& rows) {
  const bool has_classes = problem == Problem::single_label;
  std::vector<RowIdentity> identities;
  for (const auto& row : rows) {
    identities.push_back(
        {.text = row.text + '\t' + row.second, .label = has_classes ? row.label : std::string()});
  }
  const auto is_kept = rows_of_split(config, split, identities);
  std::vector<Row> kept;
  for (size_t i = 0; i < rows.size(); ++i)
    if (is_kept[i]) kept.push_back(std::move(rows[i]));
  rows = std::move(kept);
}

/// The columns of a text: one, or two for pairs.
std::vector<ColumnNames> text_columns(const DataConfig& config) {
  std::vector<ColumnNames> columns{config.text_column};
  if (!config.pair_column.empty()) columns.push_back(config.pair_column);
  return columns;
}

/// A tab within a text becomes a blank: it would end the first text.
std::string joined_pair(std::string first, std::string second) {
  std::ranges::replace(first, kBetweenPairs, ' ');
  std::ranges::replace(second, kBetweenPairs, ' ');
  return first + kBetweenPairs + second;
}

void read_rows(const std::filesystem::path& path, const DataConfig& config, Problem problem,
               std::vector<Row>& out) {
  auto columns = text_columns(config);
  const bool has_pairs = columns.size() > 1;
  columns.insert(columns.begin() + 1, {config.label_column});
  const auto add = [&](TableRow row) {
    auto& fields = row.fields;
    try {
      check_labels(fields[1], problem, config.label_separator);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}:{}: {}", path.string(), row.number, error.what()));
    }
    out.push_back({.text = std::move(fields[0]),
                   .label = std::move(fields[1]),
                   .second = has_pairs ? std::move(fields[2]) : std::string()});
  };
  ColumnUses uses{.texts = {0, 2}};
  if (problem == Problem::multi_label) uses.lists = {1};
  read_table(path, columns, add, uses);
}

/// The text of a file that is one document; in a table each row is a line.
std::string whole_text_of(const std::filesystem::path& path, const DataConfig& config) {
  if (!is_table(path)) return read_text(path);
  std::string whole;
  read_table(path, {config.text_column}, [&](const TableRow& row) { whole += row.fields[0] + "\n"; });
  return whole;
}

/// The documents of a file. In a table, the rows already separate the texts.
void visit_documents_of(const std::filesystem::path& path, const DataConfig& config,
                        const DocumentVisitor& visit) {
  if (is_table(path)) {
    return read_table(path, {config.text_column}, [&](const TableRow& row) {
      if (!is_blank(row.fields[0])) visit(row.fields[0]);
    });
  }
  bool is_empty = true;
  DocumentSplitter splitter(config.documents, visit);
  for (FileLines lines(path); lines.next();) {
    is_empty = is_empty && is_blank(lines.line());
    splitter.add(lines.line());
  }
  splitter.finish();
  if (is_empty) throw DataError(fmt::format("{}: the file is empty, or has only blanks", path.string()));
}

/// The documents of all files of a split, train and valid together if they share files.
void visit_all_documents(const DataConfig& config, Split split, const DocumentVisitor& visit) {
  for (const auto& file : files_to_read(config, split)) visit_documents_of(data_path(file), config, visit);
}

/// If documents are divided between train and valid: how many of them, from the first on, belong to train.
std::optional<size_t> documents_to_train_on(const DataConfig& config, Split split) {
  if (config.documents == DocumentSplit::none || !is_shared(config, split)) return std::nullopt;
  size_t n = 0;
  visit_all_documents(config, split, [&](std::string_view) { ++n; });
  return train_part(config, n);
}

void visit_whole_texts(const DataConfig& config, Split split, const DocumentVisitor& visit) {
  std::vector<std::string> texts;
  for (const auto& file : files_to_read(config, split)) {
    auto text = whole_text_of(data_path(file), config);
    if (!text.empty()) texts.push_back(std::move(text));
  }
  keep_part_of_text(config, split, texts);
  for (const auto& text : texts) visit(text);
}

/// Throws DataError if `prefix` is one of the two files that it should be the common part of.
void check_prefix(const ConfigPath& prefix, const DataConfig& config) {
  for (const auto& suffix : {"." + config.source, "." + config.target}) {
    if (!prefix.text.ends_with(suffix) || !find_path(prefix, has_file)) continue;
    throw DataError(fmt::format("{}: name the prefix of both files: {}", prefix.text,
                                prefix.text.substr(0, prefix.text.size() - suffix.size())));
  }
}

struct TextPair {
  std::string source, target;
};

/// Appends the pairs of PREFIX.source and PREFIX.target.
void read_pair_files(const ConfigPath& prefix, const DataConfig& config, std::vector<TextPair>& pairs) {
  check_prefix(prefix, config);
  const auto source_path = data_path(prefix + ("." + config.source));
  const auto target_path = data_path(prefix + ("." + config.target));
  const std::string source_text = read_text(source_path);
  const std::string target_text = read_text(target_path);
  const auto sources = lines_of(source_text);
  const auto targets = lines_of(target_text);
  if (sources.size() != targets.size()) {
    throw DataError(fmt::format("{} has {} lines and {} has {}: the numbers must be equal",
                                source_path.string(), sources.size(), target_path.string(), targets.size()));
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (is_blank(sources[i]) || is_blank(targets[i])) continue;
    pairs.push_back({.source = std::string(without_blanks_at_end(sources[i])),
                     .target = std::string(without_blanks_at_end(targets[i]))});
  }
}

/// Appends the pairs of a table. Line ends within a text become blanks: a text is a line.
void read_pair_table(const std::filesystem::path& path, const DataConfig& config,
                     std::vector<TextPair>& pairs) {
  const auto names = [](const std::string& side) { return ColumnNames{side, "translation." + side}; };
  read_table(path, {names(config.source), names(config.target)}, [&](TableRow row) {
    for (auto& text : row.fields) std::ranges::replace(text, '\n', ' ');
    if (is_blank(row.fields[0]) || is_blank(row.fields[1])) return;
    pairs.push_back({.source = std::move(row.fields[0]), .target = std::move(row.fields[1])});
  });
}

}  // namespace

TextReader reader_of(const DataConfig& config, Split split) {
  const auto n_train = documents_to_train_on(config, split);
  return [=](const DocumentVisitor& sink) {
    size_t seen = 0, visited = 0;
    const auto visit = [&](std::string_view document) {
      if (n_train && (seen++ < *n_train) != (split == Split::train)) return;
      ++visited;
      sink(document);
    };
    config.documents == DocumentSplit::none ? visit_whole_texts(config, split, visit)
                                            : visit_all_documents(config, split, visit);
    if (visited == 0) fail_empty(config, split, "documents");
  };
}

void visit_documents(const DataConfig& config, Split split, const DocumentVisitor& visit) {
  reader_of(config, split)(visit);
}

std::vector<std::string> read_documents(const DataConfig& config, Split split) {
  std::vector<std::string> documents;
  visit_documents(config, split, [&](std::string_view document) { documents.emplace_back(document); });
  return documents;
}

std::string hash_of_data(const DataConfig& config) {
  std::string hashes;
  for (const auto* files : {&config.train, &config.valid}) {
    for (const auto& file : *files) {
      const size_t before = hashes.size();
      for (const auto& name : {file, file + ("." + config.source), file + ("." + config.target)}) {
        try {
          hashes += sha256_of_file(data_path(name));
        } catch (const DataError&) {  // `file` is a file or a prefix, so some of these names do not exist
        }
      }
      if (hashes.size() == before) hashes += sha256(file.text);  // the task knows what it means
    }
    hashes += '|';
  }
  return sha256(hashes);
}

ParallelTexts read_parallel(const DataConfig& config, Split split) {
  std::vector<TextPair> pairs;
  for (const auto& file : files_to_read(config, split)) {
    is_table(file.text) ? read_pair_table(data_path(file), config, pairs)
                        : read_pair_files(file, config, pairs);
  }
  keep_part(config, split, pairs);
  if (pairs.empty()) {
    throw DataError(fmt::format("{}.{}: no pairs of sentences for {}",
                                files_to_read(config, split).front().text, config.source, name_of(split)));
  }
  ParallelTexts result;
  for (auto& pair : pairs) {
    result.source.push_back(std::move(pair.source));
    result.target.push_back(std::move(pair.target));
  }
  return result;
}

LabelledTexts read_labelled(const DataConfig& config, Split split, Problem problem) {
  std::vector<Row> rows;
  for (const auto& file : files_to_read(config, split)) read_rows(data_path(file), config, problem, rows);
  keep_rows_of(config, split, problem, rows);
  if (rows.empty()) fail_empty(config, split, "rows");
  LabelledTexts result;
  for (Row& row : rows) {
    result.texts.push_back(std::move(row.text));
    if (!config.pair_column.empty()) result.pairs.push_back(std::move(row.second));
    result.labels.push_back(std::move(row.label));
  }
  return result;
}

std::vector<std::string> LabelledTexts::inputs() const {
  if (pairs.empty()) return texts;
  std::vector<std::string> result;
  for (size_t i = 0; i < texts.size(); ++i) result.push_back(joined_pair(texts[i], pairs[i]));
  return result;
}

std::pair<std::string, std::string> split_pair(const std::string& input) {
  const size_t tab = input.find(kBetweenPairs);
  if (tab == input.npos || input.find(kBetweenPairs, tab + 1) != input.npos)
    throw DataError("a pair is two texts with one tab between them (data.pair_column)");
  return {input.substr(0, tab), input.substr(tab + 1)};
}

std::vector<std::string> read_texts(const std::filesystem::path& path, const DataConfig& config) {
  if (!is_table(path))
    return lines_of_text(read_file(path, Follow::everything, kMostInputBytes), path.string());
  std::vector<std::string> texts;
  const auto add = [&](TableRow row) {
    auto& fields = row.fields;
    texts.push_back(fields.size() > 1 ? joined_pair(fields[0], fields[1]) : std::move(fields[0]));
  };
  auto columns = text_columns(config);
  if (columns.size() == 1) {  // another author may call texts otherwise, or "Text"
    const auto header = columns_of_table(path);
    const auto is_there = [&](const auto& name) { return std::ranges::find(header, name) != header.end(); };
    const auto text = find_text_column(header);
    if (text && std::ranges::none_of(columns.front(), is_there)) columns = {{*text}};
  }
  read_table(path, columns, add, {.texts = {0, 1}});
  if (texts.empty()) throw DataError(fmt::format("{}: the table has no rows", path.string()));
  return texts;
}

std::vector<std::string> lines_of_text(std::string content, std::string_view name) {
  const std::string text = checked_text(std::move(content), name);
  if (text.find_first_not_of('\n') == text.npos) throw DataError(fmt::format("{}: the file is empty", name));
  const auto lines = lines_of(text);
  return {lines.begin(), lines.end()};
}

}  // namespace zoo
