#include "data/text/corpus.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"
#include "io/sha256.h"

namespace zoo {
namespace {

constexpr std::string_view blanks = " \t\r\n\f\v";

bool is_blank(std::string_view text) { return text.find_first_not_of(blanks) == text.npos; }

/// Checks that a text is UTF-8 and not blank. Removes a byte order mark; makes line ends "\n". Errors call
/// the text `name`.
std::string cleaned(std::string text, std::string_view name) {
  if (const auto offset = find_invalid_utf8(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(*offset), '\n');
    throw DataError(fmt::format("{}:{}: not UTF-8 at byte {}: {}", name, line, *offset,
                                excerpt(std::string_view(text).substr(*offset), 16)));
  }
  text.erase(0, text.size() - without_byte_order_mark(text).size());
  if (text.find('\r') != text.npos) {
    std::string unix_text;
    unix_text.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') unix_text += text[i];
    }
    text = std::move(unix_text);
  }
  if (is_blank(text)) throw DataError(fmt::format("{}: the file is empty", name));
  return text;
}

std::string read_text(const std::filesystem::path& path) {
  return cleaned(read_file(path, Follow::links), path.string());
}

/// The lines of a text. A line end at the end of the text does not start another line.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

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

const std::vector<ConfigPath>& files_of(const DataConfig& config, Split split) {
  return split == Split::train ? config.train : split == Split::valid ? config.valid : config.test;
}

/// The files to read for `split`. Throws DataError if there are none.
const std::vector<ConfigPath>& files_to_read(const DataConfig& config, Split split) {
  const bool from_train = split == Split::valid && config.valid.empty();
  const auto& files = from_train ? config.train : files_of(config, split);
  if (files.empty()) throw DataError(fmt::format("data.{} names no files", name_of(split)));
  return files;
}

/// Whether train and valid are two parts of the same files.
bool is_shared(const DataConfig& config, Split split) { return config.valid.empty() && split != Split::test; }

/// How many of `n` items belong to train if train and valid share files.
size_t train_part(const DataConfig& config, size_t n) {
  return static_cast<size_t>((1.0 - config.valid_fraction) * static_cast<double>(n));
}

/// Keeps the rows that belong to `split`: a part if train and valid share files, else all.
template <class Row>
void keep_part(const DataConfig& config, Split split, std::vector<Row>& rows) {
  if (!is_shared(config, split)) return;
  const auto cut = rows.begin() + static_cast<ptrdiff_t>(train_part(config, rows.size()));
  split == Split::train ? rows.erase(cut, rows.end()) : rows.erase(rows.begin(), cut);
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

[[noreturn]] void fail_empty(const DataConfig& config, Split split, std::string_view rows) {
  const auto& files = files_to_read(config, split);
  throw DataError(fmt::format("{}: no {} for {}{}", data_path(files.front()).string(), rows, name_of(split),
                              is_shared(config, split) ? "; the text is too short to be split" : ""));
}

/// Alternative names of a column.
using ColumnNames = std::vector<std::string>;

/// Index of the first of `names` that the header line of `path` has.
size_t find_column(const std::filesystem::path& path, const std::vector<std::string_view>& header,
                   const ColumnNames& names) {
  for (const auto& name : names) {
    const auto found = std::ranges::find(header, name);
    if (found != header.end()) return static_cast<size_t>(found - header.begin());
  }
  throw DataError(fmt::format("{}:1: no column \"{}\" in the header; there are: {}", path.string(),
                              fmt::join(names, "\" or \""),
                              excerpt(fmt::format("{}", fmt::join(header, ", ")), 200)));
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0;;) {
    const size_t end = line.find('\t', begin);
    fields.push_back(line.substr(begin, end == line.npos ? end : end - begin));
    if (end == line.npos) return fields;
    begin = end + 1;
  }
}

/// Calls `visit` for each row below the header of a tab-separated file, with its line number and its fields
/// of `columns`, in the order of `columns`.
template <size_t N, class Visit>
void read_table(const std::filesystem::path& path, const std::array<ColumnNames, N>& columns, Visit visit) {
  const std::string content = read_text(path);
  const auto lines = lines_of(content);
  const auto header = fields_of(lines.front());
  std::array<size_t, N> indices;
  std::ranges::transform(columns, indices.begin(),
                         [&](const auto& names) { return find_column(path, header, names); });
  for (size_t i = 1; i < lines.size(); ++i) {
    if (is_blank(lines[i])) continue;
    const auto fields = fields_of(lines[i]);
    if (fields.size() != header.size()) {
      throw DataError(fmt::format("{}:{}: {} fields, but the header has {}", path.string(), i + 1,
                                  fields.size(), header.size()));
    }
    std::array<std::string, N> row;
    std::ranges::transform(indices, row.begin(),
                           [&](size_t index) { return std::string(without_blanks_at_end(fields[index])); });
    visit(i + 1, std::move(row));
  }
}

struct Row {
  std::string text, label;
};

void read_rows(const std::filesystem::path& path, const DataConfig& config, std::vector<Row>& out) {
  read_table(path, std::array{config.text_column, ColumnNames{config.label_column}},
             [&](size_t line, auto row) {
               if (is_blank(row[1])) throw DataError(fmt::format("{}:{}: no label", path.string(), line));
               out.push_back({std::move(row[0]), std::move(row[1])});
             });
}

/// Appends the documents of a file. In a table, the rows already separate the texts.
void read_documents_of(const std::filesystem::path& path, const DataConfig& config,
                       std::vector<std::string>& out) {
  if (path.extension() != ".tsv") return split_documents(read_text(path), config.documents, out);
  std::string whole;
  read_table(path, std::array{config.text_column}, [&](size_t, auto row) {
    if (config.documents == DocumentSplit::none) {
      whole += row[0] + "\n";
    } else if (!is_blank(row[0])) {
      out.push_back(std::move(row[0]));
    }
  });
  if (!whole.empty()) out.push_back(std::move(whole));
}

}  // namespace

std::string corpus_name(const DataConfig& config, Split split) {
  std::string names;
  for (const auto& file : files_to_read(config, split)) {
    if (!names.empty()) names += ", ";
    names += data_path(file).string();
  }
  return excerpt(names, 400);
}

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
    result.labels.push_back(std::move(row.label));
  }
  return result;
}

std::vector<std::string> read_texts(const std::filesystem::path& path, const DataConfig& config) {
  if (path.extension() != ".tsv") return lines_of_text(read_file(path), path.string());
  std::vector<std::string> texts;
  read_table(path, std::array{config.text_column},
             [&](size_t, auto row) { texts.push_back(std::move(row[0])); });
  if (texts.empty()) throw DataError(fmt::format("{}: the table has no rows", path.string()));
  return texts;
}

std::vector<std::string> lines_of_text(std::string content, std::string_view name) {
  const std::string text = cleaned(std::move(content), name);
  std::vector<std::string> lines;
  for (const auto line : lines_of(text)) lines.emplace_back(without_blanks_at_end(line));
  return lines;
}

std::string_view without_blanks_at_end(std::string_view text) {
  const size_t last = text.find_last_not_of(blanks);
  return text.substr(0, last == text.npos ? 0 : last + 1);
}

}  // namespace zoo
