#include "io/terminal_guard.h"

#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace zoo {
namespace {

/// What a sink gets if `text` arrives in pieces of `size` bytes, with a flush after each.
std::string shown(std::string_view text, size_t size) {
  std::ostringstream sink;
  {
    PrintableBuffer buffer(*sink.rdbuf());
    std::ostream stream(&buffer);
    for (; !text.empty(); text.remove_prefix(std::min(size, text.size())))
      stream << text.substr(0, size) << std::flush;
  }
  return sink.str();
}

TEST(PrintableBuffer, EscapesWhateverThePiecesAre) {
  const std::string_view text = "tab\tline\nä€😀 \x1b[31m \xC2\x9B \xE2\x82! \xFF end \xE2";
  const std::string_view expected = "tab\tline\nä€😀 \\x1b[31m \\u009b \\xe2\\x82! \\xff end \\xe2";
  for (size_t size = 1; size <= text.size(); ++size) EXPECT_EQ(shown(text, size), expected) << size;
}

TEST(PrintableBuffer, TakesSingleCharacters) {
  std::ostringstream sink;
  PrintableBuffer buffer(*sink.rdbuf());
  std::ostream stream(&buffer);
  stream.put('a').put('\x1b').put('\n');
  EXPECT_EQ(sink.str(), "a\\x1b\n");
}

TEST(PrintableBuffer, ReportsASinkThatFails) {
  struct Full : std::streambuf {
  } sink;
  PrintableBuffer buffer(sink);
  std::ostream stream(&buffer);
  stream << "text";
  EXPECT_FALSE(stream);
}

TEST(TerminalGuard, LeavesOtherOutputAlone) {
  auto* const before = std::cout.rdbuf();
  {
    const TerminalGuard guard;  // the tests' output is no terminal, or it is given back
  }
  EXPECT_EQ(std::cout.rdbuf(), before);
}

}  // namespace
}  // namespace zoo
