#include "data/text/corpus.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/text_files.h"
#include "io/files.h"
#include "io/sha256.h"

namespace zoo {
namespace {

/// Appends the documents of a text.
void split_documents(const std::string& text, DocumentSplit split, std::vector<std::string>& out) {
  if (split == DocumentSplit::none) {
    out.push_back(text);
    return;
  }
  std::string document;
  const auto finish = [&] {
    const size_t first_line = document.find_first_not_of('\n');
    if (!is_blank(document))
      out.emplace_back(without_blanks_at_end(std::string_view(document).substr(first_line)));
    document.clear();
  };
  for (const std::string_view line : lines_of(text)) {
    const bool separator = split == DocumentSplit::line         ? true
                           : split == DocumentSplit::blank_line ? is_blank(line)
                                                                : without_blanks_at_end(line) == "%";
    if (split == DocumentSplit::line) document = line;
    if (separator) {
      finish();
    } else {
      document.append(line).push_back('\n');
    }
  }
  finish();
}

/// Bytes that the first `n` code points of `text` take.
size_t prefix_bytes(std::string_view text, size_t n) {
  size_t at = 0;
  for (; n > 0 && at < text.size(); --n) {
    do ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  }
  return at;
}

/// Keeps the part of whole texts that belongs to `split`, counted in code points over all texts.
void keep_part_of_text(const DataConfig& config, Split split, std::vector<std::string>& texts) {
  if (!is_shared(config, split)) return;
  const auto count = [](const std::string& text) {
    return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
  };
  size_t total = 0;
  for (const std::string& text : texts) total += count(text);
  size_t left = train_part(config, total);
  for (std::string& text : texts) {
    const size_t length = count(text);
    const size_t cut = prefix_bytes(text, std::min(left, length));
    left -= std::min(left, length);
    text = split == Split::train ? text.substr(0, cut) : text.substr(cut);
  }
  std::erase_if(texts, [](const std::string& text) { return text.empty(); });
}

struct Row {
  std::string text, label, second;
};

/// The columns of a text: one, or two for pairs.
std::vector<ColumnNames> text_columns(const DataConfig& config) {
  std::vector<ColumnNames> columns{config.text_column};
  if (!config.pair_column.empty()) columns.push_back(config.pair_column);
  return columns;
}

std::string joined_pair(const std::string& first, const std::string& second) {
  return first + kBetweenPairs + second;
}

void read_rows(const std::filesystem::path& path, const DataConfig& config, std::vector<Row>& out) {
  auto columns = text_columns(config);
  const bool has_pairs = columns.size() > 1;
  columns.insert(columns.begin() + 1, {config.label_column});
  read_table(path, columns, [&](size_t line, std::vector<std::string> row) {
    if (is_blank(row[1])) throw DataError(fmt::format("{}:{}: no label", path.string(), line));
    out.push_back({.text = std::move(row[0]),
                   .label = std::move(row[1]),
                   .second = has_pairs ? std::move(row[2]) : std::string()});
  });
}

/// Appends the documents of a file. In a table, the rows already separate the texts.
void read_documents_of(const std::filesystem::path& path, const DataConfig& config,
                       std::vector<std::string>& out) {
  if (path.extension() != ".tsv") return split_documents(read_text(path), config.documents, out);
  std::string whole;
  read_table(path, {config.text_column}, [&](size_t, std::vector<std::string> row) {
    if (config.documents == DocumentSplit::none) {
      whole += row[0] + "\n";
    } else if (!is_blank(row[0])) {
      out.push_back(std::move(row[0]));
    }
  });
  if (!whole.empty()) out.push_back(std::move(whole));
}

/// Throws DataError if `prefix` is one of the two files that it should be the common part of.
void check_prefix(const ConfigPath& prefix, const DataConfig& config) {
  for (const auto& suffix : {"." + config.source, "." + config.target}) {
    if (!prefix.text.ends_with(suffix) || !find_path(prefix, has_file)) continue;
    throw DataError(fmt::format("{}: name the prefix of both files: {}", prefix.text,
                                prefix.text.substr(0, prefix.text.size() - suffix.size())));
  }
}

}  // namespace

std::vector<std::string> read_documents(const DataConfig& config, Split split) {
  std::vector<std::string> documents;
  for (const auto& file : files_to_read(config, split)) {
    read_documents_of(data_path(file), config, documents);
  }
  if (config.documents == DocumentSplit::none) {
    keep_part_of_text(config, split, documents);
  } else {
    keep_part(config, split, documents);
  }
  if (documents.empty()) fail_empty(config, split, "documents");
  return documents;
}

std::string hash_of_data(const DataConfig& config) {
  std::string hashes;
  for (const auto* files : {&config.train, &config.valid}) {
    for (const auto& file : *files) {
      const size_t before = hashes.size();
      for (const auto& name : {file, file + ("." + config.source), file + ("." + config.target)}) {
        try {
          hashes += sha256(read_file(data_path(name), Follow::links));
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
  struct Pair {
    std::string source, target;
  };
  std::vector<Pair> pairs;
  for (const auto& prefix : files_to_read(config, split)) {
    check_prefix(prefix, config);
    const auto source_path = data_path(prefix + ("." + config.source));
    const auto target_path = data_path(prefix + ("." + config.target));
    const std::string source_text = read_text(source_path);
    const std::string target_text = read_text(target_path);
    const auto sources = lines_of(source_text);
    const auto targets = lines_of(target_text);
    if (sources.size() != targets.size()) {
      throw DataError(fmt::format("{} has {} lines and {} has {}: the numbers must be equal",
                                  source_path.string(), sources.size(), target_path.string(),
                                  targets.size()));
    }
    for (size_t i = 0; i < sources.size(); ++i) {
      if (is_blank(sources[i]) || is_blank(targets[i])) continue;
      pairs.push_back(
          {std::string(without_blanks_at_end(sources[i])), std::string(without_blanks_at_end(targets[i]))});
    }
  }
  keep_part(config, split, pairs);
  if (pairs.empty()) {
    throw DataError(fmt::format("{}.{}: no pairs of sentences for {}",
                                files_to_read(config, split).front().text, config.source, name_of(split)));
  }
  ParallelTexts result;
  for (Pair& pair : pairs) {
    result.source.push_back(std::move(pair.source));
    result.target.push_back(std::move(pair.target));
  }
  return result;
}

LabelledTexts read_labelled(const DataConfig& config, Split split) {
  std::vector<Row> rows;
  for (const auto& file : files_to_read(config, split)) read_rows(data_path(file), config, rows);
  keep_part(config, split, rows);
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
  if (path.extension() != ".tsv")
    return lines_of_text(read_file(path, Follow::everything, kMostInputBytes), path.string());
  std::vector<std::string> texts;
  read_table(path, text_columns(config), [&](size_t, std::vector<std::string> row) {
    texts.push_back(row.size() > 1 ? joined_pair(row[0], row[1]) : std::move(row[0]));
  });
  if (texts.empty()) throw DataError(fmt::format("{}: the table has no rows", path.string()));
  return texts;
}

std::vector<std::string> lines_of_text(std::string content, std::string_view name) {
  const std::string text = cleaned_text(std::move(content), name);
  std::vector<std::string> lines;
  for (const auto line : lines_of(text)) lines.emplace_back(without_blanks_at_end(line));
  return lines;
}

}  // namespace zoo
