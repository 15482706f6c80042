#include "generation/constraints/expression.h"

#include "tokenizers/unicode/characters.h"

namespace zoo {

Expression Expression::text(std::string_view text) {
  Expression result;
  for (size_t at = 0; at < text.size();)
    result.parts.push_back(one_of(CodePoints::one(next_code_point(text, at))));
  return result;
}

}  // namespace zoo
