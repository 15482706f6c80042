#include "templates/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "templates/values/limits.h"
#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/code_points.h"

namespace zoo::templates {
namespace {

constexpr auto operator_signs =
    std::to_array<std::string_view>({"**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                     "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"});

/// Line breaks are "\n", and the last one is left out.
std::string with_plain_ends(std::string_view source) {
  std::string result;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      result += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      result += source[i];
    }
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class TemplateLexer {
 public:
  explicit TemplateLexer(std::string_view source) : source_(with_plain_ends(source)) {}

  std::vector<Token> tokens() {
    while (at_ < source_.size()) read_data();
    add(TokenKind::end, {});
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  void add(TokenKind kind, std::string text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::move(text)});
  }
  void advance(size_t bytes) {
    const auto passed = rest().substr(0, bytes);
    line_ += static_cast<int>(std::ranges::count(passed, '\n'));
    at_ += passed.size();
  }
  void skip_blanks() { advance(rest().size() - strip_left(rest(), nullptr).size()); }
  [[noreturn]] void fail(std::string_view message) const { fail_at(line_, message); }

  /// The first "{{", "{%" or "{#" at `from` or later.
  size_t next_tag(size_t from) const {
    for (size_t at = source_.find('{', from); at != source_.npos; at = source_.find('{', at + 1)) {
      const char c = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (c == '{' || c == '%' || c == '#') return at;
    }
    return source_.npos;
  }

  /// The text before a tag, which takes blanks from it by its sign ('-', '+' or none) and its kind.
  std::string_view before_tag(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return strip_right(text, nullptr);
    if (sign == '+' || is_variable) return text;
    const size_t line = text.rfind('\n') + 1;
    if (line == 0 && !begins_line_) return text;
    return strip_left(text.substr(line), nullptr).empty() ? text.substr(0, line) : text;
  }

  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenKind::data, std::string(text));
  }

  void read_data() {
    const size_t tag = next_tag(at_);
    if (tag == source_.npos) {
      add_data(rest());
      advance(rest().size());
      return;
    }
    const auto text = std::string_view(source_).substr(at_, tag - at_);
    const char kind = source_[tag + 1];
    const char after = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char sign = after == '-' || after == '+' ? after : '\0';
    add_data(before_tag(text, sign, kind == '{'));
    advance(text.size() + (sign ? 3 : 2));
    if (kind == '#') return read_comment();
    if (kind == '%' && read_raw()) return;
    read_tag(kind == '{');
  }

  /// After a tag's end: "-" takes all blanks, and a block takes one line break.
  void pass_end(bool strips, bool is_block) {
    if (strips) {
      skip_blanks();
    } else if (is_block && peek() == '\n') {
      advance(1);
    }
    begins_line_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  void read_comment() {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) fail("a comment has no end");
    const char sign = end > at_ ? source_[end - 1] : '\0';
    advance(end + 2 - at_);
    sign == '+' ? pass_end(false, false) : pass_end(sign == '-', true);
  }

  /// Reads {% raw %} … {% endraw %}, whose "{%" is read. False, and nothing is read, for another tag.
  bool read_raw() {
    const size_t begin = at_;
    const int line = line_;
    skip_blanks();
    if (rest().starts_with("raw")) {
      advance(3);
      skip_blanks();
      const bool strips = rest().starts_with("-%}");
      if (strips || rest().starts_with("%}")) {
        advance(strips ? 3 : 2);
        if (strips) skip_blanks();
        read_raw_text();
        return true;
      }
    }
    at_ = begin;
    line_ = line;
    return false;
  }

  void read_raw_text() {
    begins_line_ = source_[at_ - 1] == '\n';
    for (size_t tag = source_.find("{%", at_); tag != source_.npos; tag = source_.find("{%", tag + 1)) {
      size_t end = tag + 2;
      const char sign =
          end < source_.size() && (source_[end] == '-' || source_[end] == '+') ? source_[end++] : '\0';
      const auto skip = [&] {
        const auto tail = std::string_view(source_).substr(end);
        end += tail.size() - strip_left(tail, nullptr).size();
      };
      skip();
      if (!std::string_view(source_).substr(end).starts_with("endraw")) continue;
      end += 6;
      skip();
      const char last =
          end < source_.size() && (source_[end] == '-' || source_[end] == '+') ? source_[end++] : '\0';
      if (!std::string_view(source_).substr(end).starts_with("%}")) continue;
      add_data(before_tag(std::string_view(source_).substr(at_, tag - at_), sign, false));
      advance(end + 2 - at_);
      last == '+' ? pass_end(false, false) : pass_end(last == '-', true);
      return;
    }
    fail("{% raw %} has no end");
  }

  void read_tag(bool is_variable) {
    add(is_variable ? TokenKind::variable_begin : TokenKind::block_begin, {});
    const std::string_view end = is_variable ? "}}" : "%}";
    std::string open;  // the brackets that have to be closed
    for (;;) {
      if (at_ == source_.size()) fail(is_variable ? "'{{' has no end" : "'{%' has no end");
      if (open.empty()) {
        const bool strips = peek() == '-' && rest().substr(1).starts_with(end);
        const bool keeps = !is_variable && peek() == '+' && rest().substr(1).starts_with(end);
        if (strips || keeps || rest().starts_with(end)) {
          add(is_variable ? TokenKind::variable_end : TokenKind::block_end, {});
          advance(strips || keeps ? 3 : 2);
          return pass_end(strips, !is_variable && !keeps);
        }
      }
      size_t next = at_;
      if (is_space(next_code_point(source_, next))) {
        skip_blanks();
      } else if (is_ascii_digit(peek())) {
        read_number();
      } else if (begins_name(peek())) {
        read_name();
      } else if (peek() == '\'' || peek() == '"') {
        read_string();
      } else {
        read_sign(open);
      }
    }
  }

  void read_name() {
    size_t n = 0;
    while (begins_name(peek(n)) || is_ascii_digit(peek(n))) ++n;
    if (static_cast<unsigned char>(peek(n)) >= 0x80)
      fail("names of other letters than a to z are not supported");
    add(TokenKind::name, std::string(rest().substr(0, n)));
    advance(n);
  }

  void read_sign(std::string& open) {
    const auto* const found =
        std::ranges::find_if(operator_signs, [&](std::string_view sign) { return rest().starts_with(sign); });
    if (found == operator_signs.end()) {
      size_t next = at_;
      next_code_point(source_, next);
      fail(fmt::format("unexpected '{}'", excerpt(rest().substr(0, next - at_))));
    }
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) fail(fmt::format("unexpected '{}'", c));
      open.pop_back();
    }
    add(TokenKind::sign, std::string(*found));
    advance(found->size());
  }

  /// Digits, with single underscores between them.
  size_t digits_end(size_t from) const {
    size_t n = from;
    while (is_ascii_digit(peek(n)) || (peek(n) == '_' && n > from && is_ascii_digit(peek(n + 1)))) ++n;
    return n;
  }

  void read_number() {
    const char prefix = static_cast<char>(std::tolower(static_cast<unsigned char>(peek(1))));
    if (peek() == '0' && (prefix == 'x' || prefix == 'o' || prefix == 'b'))
      return read_number_of_base(prefix == 'x' ? 16 : prefix == 'o' ? 8 : 2);
    size_t n = digits_end(0);
    bool is_real = false;
    if (peek(n) == '.' && is_ascii_digit(peek(n + 1))) {
      is_real = true;
      n = digits_end(n + 1);
    }
    if (peek(n) == 'e' || peek(n) == 'E') {
      const size_t sign = peek(n + 1) == '+' || peek(n + 1) == '-' ? 1 : 0;
      if (is_ascii_digit(peek(n + 1 + sign))) {
        is_real = true;
        n = digits_end(n + 1 + sign);
      }
    }
    auto text = std::string(rest().substr(0, n));
    std::erase(text, '_');
    if (!is_real && text.size() > 1 && text[0] == '0' && text.find_first_not_of('0') != text.npos) n = 1;
    Token token{.kind = is_real ? TokenKind::real : TokenKind::integer, .line = line_, .text = text};
    if (n == 1 && !is_real) token.text = text = text.substr(0, 1);
    const auto* const end = text.data() + text.size();
    const auto error = is_real ? std::from_chars(text.data(), end, token.real).ec
                               : std::from_chars(text.data(), end, token.integer).ec;
    if (is_real && error == std::errc::result_out_of_range) {
      token.real = std::strtod(text.c_str(), nullptr);
    } else if (error != std::errc()) {
      fail(fmt::format("the number {} is too large", excerpt(text, 30)));
    }
    tokens_.push_back(std::move(token));
    advance(n);
  }

  void read_number_of_base(int base) {
    size_t n = 2;
    while (std::isxdigit(static_cast<unsigned char>(peek(n))) != 0 || peek(n) == '_') ++n;
    auto text = std::string(rest().substr(2, n - 2));
    std::erase(text, '_');
    Token token{.kind = TokenKind::integer, .line = line_, .text = text};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token.integer, base);
    if (error != std::errc() || end != text.data() + text.size()) fail("a number that cannot be read");
    tokens_.push_back(std::move(token));
    advance(n);
  }

  // ---- strings

  void read_string() {
    const char quote = peek();
    size_t n = 1;
    while (at_ + n < source_.size() && peek(n) != quote) n += peek(n) == '\\' ? 2 : 1;
    if (at_ + n >= source_.size()) fail("a text in quotes has no end");
    add(TokenKind::string, unescaped(rest().substr(1, n - 1)));
    advance(n + 1);
  }

  /// Escapes of Python. An unknown one stays as it is.
  std::string unescaped(std::string_view text) const {
    constexpr std::string_view letters = "\\'\"abfnrtv", meanings = "\\'\"\a\b\f\n\r\t\v";
    std::string result;
    char32_t high = 0;  // the first half of a pair of UTF-16; 0: none
    for (size_t at = 0; at < text.size();) {
      const char c = text[at++];
      if (c != '\\') {
        if (high) fail("half a character");
        result += c;
        continue;
      }
      const char letter = text[at++];
      if (const size_t known = letters.find(letter); known != letters.npos) {
        result += meanings[known];
      } else if (letter == '\n') {
        // The line goes on.
      } else if (letter >= '0' && letter <= '7') {
        char32_t code = static_cast<char32_t>(letter - '0');
        for (int i = 0; i < 2 && at < text.size() && text[at] >= '0' && text[at] <= '7'; ++i)
          code = code * 8 + static_cast<char32_t>(text[at++] - '0');
        append_utf8(code, result);
      } else if (letter == 'x' || letter == 'u' || letter == 'U') {
        const char32_t code = hexadecimal(text, at, letter == 'x' ? 2 : letter == 'u' ? 4 : 8);
        if (code >= 0xD800 && code < 0xDC00 && !high) {
          high = code;
          continue;
        }
        if (high && code >= 0xDC00 && code < 0xE000) {
          append_utf8(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00), result);
          high = 0;
          continue;
        }
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail("an escape that is no character");
        append_utf8(code, result);
      } else if (letter == 'N') {
        fail("names of characters in texts are not supported");
      } else {
        result += '\\';
        result += letter;
      }
      if (high) fail("half a character");
    }
    if (high) fail("half a character");
    return result;
  }

  char32_t hexadecimal(std::string_view text, size_t& at, size_t digits) const {
    uint32_t code = 0;
    const auto part = text.substr(at, digits);
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), code, 16);
    if (error != std::errc() || part.size() != digits || end != part.data() + digits)
      fail("an escape of a text is cut off");
    at += digits;
    return code;
  }

  const std::string source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int line_ = 1;
  bool begins_line_ = true;
};

}  // namespace

void fail_at(int line, std::string_view message) {
  throw TemplateError(fmt::format("line {}: {}", line, excerpt(message, 300)));
}

std::vector<Token> read_tokens(std::string_view source) { return TemplateLexer(source).tokens(); }

}  // namespace zoo::templates
