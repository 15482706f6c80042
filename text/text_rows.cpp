#include "text/text_rows.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/class_split.h"
#include "data/tables.h"
#include "data/text_files.h"
#include "data/usual_columns.h"
#include "io/files.h"

namespace zoo {
namespace {

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
               LabelledTexts& out) {
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
    out.texts.push_back(std::move(fields[0]));
    out.labels.push_back(std::move(fields[1]));
    if (has_pairs) out.pairs.push_back(std::move(fields[2]));
  };
  ColumnUses uses{.texts = {0, 2}};
  if (problem == Problem::multi_label) uses.lists = {1};
  read_table(path, columns, add, uses);
}

/// The rows of shared files that belong to `split`.
LabelledTexts rows_of(const LabelledTexts& all, const DataConfig& config, Split split, Problem problem) {
  const bool has_classes = problem == Problem::single_label, has_pairs = !all.pairs.empty();
  std::vector<RowIdentity> identities;
  for (size_t i = 0; i < all.texts.size(); ++i) {
    identities.push_back({.text = all.texts[i] + '\t' + (has_pairs ? all.pairs[i] : std::string()),
                          .label = has_classes ? all.labels[i] : std::string()});
  }
  const auto is_kept = rows_of_split(config, split, identities);
  LabelledTexts kept;
  for (size_t i = 0; i < all.texts.size(); ++i) {
    if (!is_kept[i]) continue;
    kept.texts.push_back(all.texts[i]);
    kept.labels.push_back(all.labels[i]);
    if (has_pairs) kept.pairs.push_back(all.pairs[i]);
  }
  return kept;
}

/// Throws DataError if `prefix` is one of the two files that it should be the common part of.
void check_prefix(const ConfigPath& prefix, const DataConfig& config) {
  for (const auto& suffix : {"." + config.source, "." + config.target}) {
    if (!prefix.text.ends_with(suffix) || !find_path(prefix, has_file)) continue;
    throw DataError(fmt::format("{}: name the prefix of both files: {}", prefix.text,
                                prefix.text.substr(0, prefix.text.size() - suffix.size())));
  }
}

/// Appends the pairs of PREFIX.source and PREFIX.target.
void read_pair_files(const ConfigPath& prefix, const DataConfig& config, ParallelTexts& pairs) {
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
    pairs.source.emplace_back(without_blanks_at_end(sources[i]));
    pairs.target.emplace_back(without_blanks_at_end(targets[i]));
  }
}

/// Appends the pairs of a table. Line ends within a text become blanks: a text is a line.
void read_pair_table(const std::filesystem::path& path, const DataConfig& config, ParallelTexts& pairs) {
  const auto names = [](const std::string& side) { return ColumnNames{side, "translation." + side}; };
  read_table(path, {names(config.source), names(config.target)}, [&](TableRow row) {
    for (auto& text : row.fields) std::ranges::replace(text, '\n', ' ');
    if (is_blank(row.fields[0]) || is_blank(row.fields[1])) return;
    pairs.source.push_back(std::move(row.fields[0]));
    pairs.target.push_back(std::move(row.fields[1]));
  });
}

}  // namespace

RowsBySplit<ParallelTexts> parallel_texts(const DataConfig& config) {
  const auto read = [config](Split split) {
    ParallelTexts pairs;
    for (const auto& file : files_to_read(config, split)) {
      is_table(file.text) ? read_pair_table(data_path(file), config, pairs)
                          : read_pair_files(file, config, pairs);
    }
    return pairs;
  };
  const auto part = [config](const ParallelTexts& all, Split split) {
    auto pairs = all;
    keep_part(config, split, pairs.source);
    keep_part(config, split, pairs.target);
    return pairs;
  };
  const auto check = [config](const ParallelTexts& pairs, Split split) {
    if (!pairs.source.empty()) return;
    throw DataError(fmt::format("{}.{}: no pairs of sentences for {}",
                                files_to_read(config, split).front().text, config.source, name_of(split)));
  };
  return {config, {.read = read, .part = part, .check = check}};
}

RowsBySplit<LabelledTexts> labelled_texts(const DataConfig& config, Problem problem) {
  const auto read = [config, problem](Split split) {
    LabelledTexts rows;
    for (const auto& file : files_to_read(config, split)) read_rows(data_path(file), config, problem, rows);
    return rows;
  };
  const auto part = [config, problem](const LabelledTexts& all, Split split) {
    return rows_of(all, config, split, problem);
  };
  const auto check = [config](const LabelledTexts& rows, Split split) {
    if (rows.texts.empty()) fail_empty(config, split, "rows");
  };
  return {config, {.read = read, .part = part, .check = check}};
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
  const auto table = open_table(path);
  auto columns = text_columns(config);
  if (columns.size() == 1) {  // another author may call texts otherwise, or "Text"
    const auto header = table->columns();
    const auto is_there = [&](const auto& name) { return std::ranges::find(header, name) != header.end(); };
    const auto text = find_text_column(header);
    if (text && std::ranges::none_of(columns.front(), is_there)) columns = {{*text}};
  }
  table->read(columns, add, {.texts = {0, 1}});
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
