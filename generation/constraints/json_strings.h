#pragma once

#include <string>
#include <vector>

#include "generation/constraints/expression.h"

namespace zoo {

/// The texts of an expression as the inside of a JSON string: with escapes where it needs them.
Expression within_json_string(const Expression& expression);

/// The inside of every JSON string but those that are `names`.
Expression other_json_names(const std::vector<std::string>& names);

}  // namespace zoo
