#pragma once
// The source of a template as tokens, with trim_blocks and lstrip_blocks, as transformers sets them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo::templates {

enum class TokenKind {
  data,            // text outside of tags
  block_begin,     // {%
  block_end,       // %}
  variable_begin,  // {{
  variable_end,    // }}
  name,
  string,
  integer,
  real,
  sign,  // an operator or a bracket
  end
};

struct Token {
  TokenKind kind;
  int line;          // from 1
  std::string text;  // of a string: what it stands for
  int64_t integer = 0;
  double real = 0;

  bool is(std::string_view sign) const { return kind == TokenKind::sign && text == sign; }
  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

/// Comments are left out, raw blocks are data. The last token is `end`. Throws TemplateError.
std::vector<Token> read_tokens(std::string_view source);

/// Throws TemplateError "line N: message".
[[noreturn]] void fail_at(int line, std::string_view message);

}  // namespace zoo::templates
