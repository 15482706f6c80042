#pragma once
// Operators between values, as Python has them.

#include "templates/values/value.h"

namespace zoo::templates {

enum class Operator { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class Comparator { less, less_equal, greater, greater_equal, equal, unequal, within, not_within };

/// All throw Problem where Python has no such operator for these values.
Value compute(Budget& budget, Operator op, const Value& left, const Value& right);
Value negate(const Value& value);
Value plus(const Value& value);

bool equal(Budget& budget, const Value& left, const Value& right);
bool compare(Budget& budget, Comparator comparator, const Value& left, const Value& right);
/// `item in container`.
bool contains(Budget& budget, const Value& container, const Value& item);
/// Throws Problem for a value that cannot be a key of a dictionary.
void check_key(const Value& key);

}  // namespace zoo::templates
