#include "apps/console/prompt_lines.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "apps/console/show_error.h"
#include "base/error.h"
#include "base/text.h"

namespace zoo {

std::optional<std::string> LineReader::next() {
  using Traits = std::istream::traits_type;
  std::string line;
  auto* const buffer = in_.rdbuf();
  auto byte = buffer->sbumpc();
  if (Traits::eq_int_type(byte, Traits::eof())) return std::nullopt;
  ++n_lines_;
  for (; !Traits::eq_int_type(byte, Traits::eof()) && byte != '\n'; byte = buffer->sbumpc()) {
    if (line.size() == most_bytes_) {
      throw DataError(fmt::format("line {} has more than {} bytes, which is more than the model can read",
                                  n_lines_, most_bytes_));
    }
    line.push_back(Traits::to_char_type(byte));
  }
  if (line.ends_with('\r')) line.pop_back();
  return n_lines_ == 1 ? std::string(without_byte_order_mark(line)) : line;
}

std::vector<std::string> read_lines(std::istream& in, size_t most_bytes) {
  LineReader reader(in, most_bytes);
  std::vector<std::string> lines;
  while (auto line = reader.next()) lines.push_back(std::move(*line));
  return lines;
}

bool input_is_typed() { return ::isatty(STDIN_FILENO) != 0; }

void converse(std::string_view invitation, size_t most_bytes,
              const std::function<void(size_t number, std::string line)>& answer) {
  std::cerr << invitation << "; Ctrl-D ends.\n";
  LineReader reader(std::cin, most_bytes);
  for (size_t number = 0;; ++number) {
    std::cerr << "> ";
    auto line = reader.next();
    if (!line) break;
    try {
      answer(number, std::move(*line));
    } catch (const DataError& error) {
      show_error(error.what());
    }
  }
  std::cerr << '\n';
}

}  // namespace zoo
