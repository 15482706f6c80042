#pragma once
// Sequences of proteins with names, from texts and files.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

struct NamedSequence {
  std::string name;
  std::string letters;  // capitals
};

/// A sequence without blanks and line breaks, in capitals; a * at its end, which a stop codon leaves, is left
/// out. Throws DataError, which calls it `name`, if it is empty or has other characters than letters.
std::string checked_sequence(std::string_view text, std::string_view name);

/// The sequences of a file: FASTA, whose names are the first words of the headers; a structure, of which the
/// first model counts, and chains that are no proteins do not; or a text with a sequence in each line, which
/// are named after the file. All may be compressed with gzip. Throws DataError.
std::vector<NamedSequence> read_sequences(const std::filesystem::path& path);

}  // namespace zoo
