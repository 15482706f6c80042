#pragma once
// JSON schemas (draft 2020-12, https://json-schema.org): a subset whose values an automaton can write.
//
//   type (one, or a list), enum, const, anyOf, oneOf of alternatives that no value can share, allOf of one,
//   $ref to #/$defs/NAME or #/definitions/NAME without a circle
//   object: properties, required, in the order of properties and without others
//   array: items, minItems, maxItems
//   string: minLength, maxLength, or pattern (regular_expression.h), or format (json_values.h)
//   integer, number: minimum, maximum, exclusiveMinimum, exclusiveMaximum (of numbers: whole ones)
//   boolean, null
//
// title, description, default, examples, deprecated, $schema, $id, $comment and additionalProperties change
// nothing, because no additional properties are written. Values are written as json.dumps of Python does,
// with a blank after each comma and colon; strings may have escapes. Integers have up to 15 digits, numbers
// up to 15 before and after the point and an exponent of up to two.

#include <string_view>

#include "generation/constraints/expression.h"

namespace zoo {

/// The JSON texts of the values that `schema`, a JSON text, describes. Throws DataError: not JSON, or what is
/// wrong or not supported, and where, as a JSON pointer.
Expression parse_json_schema(std::string_view schema);

}  // namespace zoo
