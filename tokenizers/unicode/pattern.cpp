#include "tokenizers/unicode/pattern.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

constexpr size_t longest_expression = 8192;
constexpr uint32_t most_steps = 2'000'000;  // of one match, as PCRE2 counts them

/// `\w` of Oniguruma: also letters in circles and some numbers.
constexpr std::string_view word_characters =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9})"
    R"(\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

[[noreturn]] void refuse_expression(std::string_view expression, std::string_view why) {
  throw DataError(fmt::format("the regular expression '{}' {}", excerpt(expression, 60), why));
}

/// Turns an expression into PCRE2's notation, from left to right.
class Translation {
 public:
  explicit Translation(std::string_view expression) : from_(expression) {}

  std::string result() {
    while (at_ < from_.size()) next();
    if (in_class_) refuse("has a [ without its ]");
    return std::move(to_);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const { refuse_expression(from_, why); }

  void next() {
    const char c = from_[at_];
    if (c == '\\') return escape();
    if (in_class_) {
      within_class(c);
    } else if (c == '[') {
      in_class_ = true;
      is_first_ = true;
      take(1);
      if (rest().starts_with('^')) take(1);
    } else if (c == '}' && rest().substr(1).starts_with('+')) {
      refuse("has '}+', which is not supported");
    } else if (c == '(' && rest().starts_with("(?")) {
      group();
    } else if (c == '(' && rest().starts_with("(*")) {
      refuse("has '(*', which is not supported");
    } else if (c == '#' || static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n' || c == '\r') {
      take(1);
    } else {
      refuse("has a control character");
    }
  }

  void within_class(char c) {
    if (c == ']' && !is_first_) {
      in_class_ = false;
      return take(1);
    }
    if (c == '[' || c == ']') refuse("has a set within a set, which is not supported");
    if (rest().starts_with("&&")) refuse("has '&&', which is not supported");
    is_first_ = false;
    take(1);
  }

  /// Groups that mean the same to both, and options for a part.
  void group() {
    static constexpr auto known = std::to_array<std::string_view>(
        {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)", "(?-i:"});
    for (const auto start : known) {
      if (rest().starts_with(start)) return take(start.size());
    }
    refuse("has a kind of group that is not supported");
  }

  void escape() {
    if (at_ + 1 == from_.size()) refuse("ends with \\");
    const char c = from_[at_ + 1];
    is_first_ = false;
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c == 's') {
      to_ += "\\p{White_Space}";
    } else if (c == 'S') {
      to_ += "\\P{White_Space}";
    } else if (c == 'w') {
      to_ += in_class_ ? std::string(word_characters) : fmt::format("[{}]", word_characters);
    } else if (c == 'W' && !in_class_) {
      to_ += fmt::format("[^{}]", word_characters);
    } else if (c == 'p' || c == 'P') {
      return property();
    } else if ((c == 'A' || c == 'z') && !in_class_) {  // the beginning and the end of the text
      to_ += {'\\', c};
    } else if (c == 'd' || c == 'D' || c == 'r' || c == 'n' || c == 't' || c == 'f' || c == 'v') {
      to_ += c == 'v' ? std::string("\\x0B") : std::string{'\\', c};  // \v is any vertical blank in PCRE2
    } else if (is_letter || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) < 0x20) {
      refuse(fmt::format("has '\\{}', which is not supported", excerpt({&c, 1})));
    } else if (static_cast<unsigned char>(c) < 0x80) {
      to_ += {'\\', c};
    } else {  // a character that means nothing else
      ++at_;
      return;
    }
    at_ += 2;
  }

  void property() {
    const size_t end = from_.find('}', at_);
    if (from_.substr(at_ + 2, 1) != "{" || end == from_.npos) refuse("has \\p without {…}");
    std::string name(from_.substr(at_ + 3, end - at_ - 3));
    const bool is_simple = std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '^';
    });
    if (!is_simple || name.empty()) refuse("has a name of a property that is not supported");
    // Longer names can be scripts; PCRE2 would take their extensions, too.
    static constexpr auto general = std::to_array<std::string_view>({"Alphabetic", "White_Space", "Any"});
    const size_t letters = name.size() - (name.front() == '^');
    const bool is_script = letters > 2 && std::ranges::find(general, name) == general.end();
    if (is_script && name.front() == '^') refuse("has a negated script, which is not supported");
    to_ += fmt::format("\\{}{{{}{}}}", from_[at_ + 1], is_script ? "sc:" : "", name);
    at_ = end + 1;
  }

  std::string_view rest() const { return from_.substr(at_); }
  void take(size_t n) {
    to_ += from_.substr(at_, n);
    at_ += n;
  }

  std::string_view from_;
  std::string to_;
  size_t at_ = 0;
  bool in_class_ = false, is_first_ = false;
};

struct FreePcre2 {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

/// `made`, which is null if there was no memory for it.
template <class T>
T* made_by_pcre2(T* made) {
  if (!made) throw SystemError("no memory for a regular expression");
  return made;
}

/// `text` with stand-ins for characters that PCRE2 does not know; nullopt if it has none. Offsets stay.
std::optional<std::string> with_stand_ins(std::string_view text) {
  // The first one has three bytes.
  const auto is_long = [](char byte) { return static_cast<unsigned char>(byte) >= 0xE0; };
  size_t at = static_cast<size_t>(std::ranges::find_if(text, is_long) - text.begin());
  std::optional<std::string> result;
  while (at < text.size()) {
    const size_t begin = at;
    const char32_t c = next_code_point(text, at);
    const char32_t instead = stand_in_for(c);
    if (instead == c) continue;
    if (!result) result = std::string(text);
    std::string bytes;
    append_utf8(instead, bytes);
    result->replace(begin, at - begin, bytes);
  }
  return result;
}

const PCRE2_UCHAR8* units(std::string_view text) {
  return reinterpret_cast<const PCRE2_UCHAR8*>(text.data() ? text.data() : "");
}

}  // namespace

std::string as_pcre2(std::string_view expression) { return Translation(expression).result(); }

struct Pattern::Compiled {
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  };

  std::unique_ptr<pcre2_code, Free> code;
  std::unique_ptr<pcre2_match_context, Free> limits;  // matching only reads it
  std::string expression;
};

Pattern::Pattern(std::string_view expression) : compiled_(std::make_unique<Compiled>()) {
  if (expression.size() > longest_expression) refuse_expression(expression, "is too long");
  if (find_invalid_utf8(expression)) refuse_expression(expression, "is not UTF-8");
  const std::string translated = as_pcre2(expression);
  const std::unique_ptr<pcre2_compile_context, FreePcre2> context(
      made_by_pcre2(pcre2_compile_context_create(nullptr)));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  constexpr uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled_->code.reset(
      pcre2_compile(units(translated), translated.size(), options, &error, &offset, context.get()));
  if (!compiled_->code) {
    std::array<PCRE2_UCHAR8, 200> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    refuse_expression(expression, fmt::format("is wrong: {}", reinterpret_cast<const char*>(message.data())));
  }
  compiled_->expression = expression;
  compiled_->limits.reset(made_by_pcre2(pcre2_match_context_create(nullptr)));
  pcre2_set_match_limit(compiled_->limits.get(), most_steps);
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);  // without it, matching is slower
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

void Pattern::for_each_match(std::string_view given, const std::function<void(size_t, size_t)>& use) const {
  const auto changed = with_stand_ins(given);
  const std::string_view text = changed ? std::string_view(*changed) : given;
  const pcre2_code* const code = compiled_->code.get();
  const std::unique_ptr<pcre2_match_data, FreePcre2> data(
      made_by_pcre2(pcre2_match_data_create_from_pattern(code, nullptr)));
  pcre2_match_context* const limits = compiled_->limits.get();
  const PCRE2_SIZE* const match = pcre2_get_ovector_pointer(data.get());
  constexpr uint32_t options = PCRE2_NO_UTF_CHECK;
  size_t last_end = text.npos;
  for (size_t at = 0; at <= text.size();) {
    int found = pcre2_match(code, units(text), text.size(), at, options, data.get(), limits);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter has its states on the heap
      found = pcre2_match(code, units(text), text.size(), at, options | PCRE2_NO_JIT, data.get(), limits);
    }
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found < 0) refuse_expression(compiled_->expression, "takes too many steps for this text");
    const size_t begin = match[0], end = match[1];
    if (begin == end && end == last_end) {  // nothing new: go on at the next character
      for (++at; at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;) ++at;
      continue;
    }
    use(begin, end);
    at = last_end = end;
  }
}

}  // namespace zoo
