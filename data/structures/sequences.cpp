#include "data/structures/sequences.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/gzip_reader.h"
#include "data/structures/structure.h"
#include "data/text_files.h"

namespace zoo {
namespace {

/// The name of a file without directories and the endings of its form.
std::string stem_of(std::filesystem::path path) {
  if (ascii_lower(path.extension().string()) == ".gz") path = path.stem();
  return path.stem().string();
}

std::vector<NamedSequence> sequences_of(const Structure& structure, const std::string& stem) {
  std::vector<NamedSequence> sequences;
  for (const auto& chain : structure.models.front().chains) {
    if (auto letters = letters_of(chain); letters.find_first_not_of('X') != letters.npos)
      sequences.push_back({.name = stem + "_" + chain.name, .letters = std::move(letters)});
  }
  if (sequences.size() == 1) sequences.front().name = stem;
  return sequences;
}

}  // namespace

std::string checked_sequence(std::string_view text, std::string_view name) {
  std::string letters;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
    letters += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  if (letters.ends_with('*')) letters.pop_back();
  if (letters.empty()) throw DataError(fmt::format("{}: the sequence is empty", name));
  for (size_t i = 0; i < letters.size(); ++i) {
    if (letters[i] >= 'A' && letters[i] <= 'Z') continue;
    throw DataError(fmt::format("{}: character {} of the sequence is no letter: {}", name, i + 1,
                                excerpt(std::string_view(letters).substr(i), 20)));
  }
  return letters;
}

std::vector<NamedSequence> read_sequences(const std::filesystem::path& path) {
  const auto place = path.string(), stem = stem_of(path);
  std::vector<NamedSequence> sequences;
  if (is_structure_file(path)) {
    sequences = sequences_of(read_structure(path), stem);
    if (sequences.empty()) throw DataError(fmt::format("{}: has no chain of a protein", place));
    return sequences;
  }
  const auto text = checked_text(read_unpacked(path, kMostInputBytes), place);
  // Old files of FASTA have comments behind semicolons.
  const auto is_skipped = [](std::string_view line) { return is_blank(line) || line.front() == ';'; };
  const auto lines = lines_of(text);
  const auto first = std::ranges::find_if_not(lines, is_skipped);
  const bool is_fasta = first != lines.end() && first->starts_with('>');
  int64_t number = 0;
  for (const auto line : lines) {
    ++number;
    if (is_skipped(line)) continue;
    if (!is_fasta) {
      sequences.push_back(
          {.name = stem, .letters = checked_sequence(line, fmt::format("{}:{}", place, number))});
    } else if (line.front() == '>') {
      const auto begin = std::min(line.find_first_not_of(" \t", 1), line.size());
      const auto name = line.substr(begin, line.find_first_of(" \t", begin) - begin);
      sequences.push_back({.name = name.empty() ? stem : std::string(name), .letters = {}});
    } else {
      sequences.back().letters += line;
    }
  }
  if (sequences.empty()) throw DataError(fmt::format("{}: has no sequences", place));
  if (!is_fasta) return sequences;
  for (auto& sequence : sequences)
    sequence.letters =
        checked_sequence(sequence.letters, fmt::format("{}: {}", place, excerpt(sequence.name)));
  return sequences;
}

}  // namespace zoo
