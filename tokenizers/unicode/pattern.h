#pragma once
// Regular expressions over Unicode, by the library PCRE2 (Unicode 14.0 in Debian 12), in the notation of
// Oniguruma that tokenizers of the Hub use. A code point that Oniguruma takes for something else, because its
// Unicode is newer, is read as another one of the same kind (tokenizers/unicode/tables.h).
//
//   const Pattern words(R"( ?\p{L}+|\s+)");
//   words.for_each_match(text, [&](size_t begin, size_t end) { … });

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace zoo {

class Pattern {
 public:
  /// Throws DataError for an expression that is wrong or too long, and for one that Oniguruma and PCRE2
  /// understand differently.
  explicit Pattern(std::string_view expression);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  /// Calls `use` with the bytes of each match in `text`, which is UTF-8, from left to right. An empty match
  /// right behind the match before it does not count. Threads may
  /// share a pattern. Throws DataError if the expression takes too many steps.
  void for_each_match(std::string_view text, const std::function<void(size_t begin, size_t end)>& use) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

/// The expression in PCRE2's notation. Throws DataError.
std::string as_pcre2(std::string_view expression);

}  // namespace zoo
