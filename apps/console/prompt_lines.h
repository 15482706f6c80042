#pragma once
// Prompts as lines: of a file, of standard input, or typed by a person.

#include <cstddef>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// The lines of a stream without their ends ("\n" or "\r\n"), and without a byte order mark before the first.
class LineReader {
 public:
  LineReader(std::istream& in, size_t most_bytes) : in_(in), most_bytes_(most_bytes) {}
  /// The next line; none at the end. Throws DataError if it has more than `most_bytes`, without reading all
  /// of it.
  std::optional<std::string> next();

 private:
  std::istream& in_;
  size_t most_bytes_;
  size_t n_lines_ = 0;
};

/// All lines of a stream. Throws as LineReader.
std::vector<std::string> read_lines(std::istream& in, size_t most_bytes);

/// Whether a person types what this program reads from standard input.
bool input_is_typed();

/// Reads lines that a person types, until Ctrl-D, and calls `answer` with each and its number from 0. The
/// invitation, and a "> " before each line, go to standard error. Shows a DataError and goes on.
void converse(std::string_view invitation, size_t most_bytes,
              const std::function<void(size_t number, std::string line)>& answer);

}  // namespace zoo
