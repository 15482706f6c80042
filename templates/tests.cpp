// Tests: value is name(arguments).

#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "templates/filters.h"
#include "templates/values/arguments.h"
#include "templates/values/operators.h"
#include "templates/values/python_text.h"
#include "tokenizers/unicode/code_points.h"

namespace zoo::templates {
namespace {

bool is_kind_of_list(const Value& value) {
  return value.is(Kind::list) || value.is(Kind::tuple) || value.is(Kind::range);
}

int64_t remainder_of(Budget& budget, const Value& value, int64_t divisor) {
  const auto rest = compute(budget, Operator::modulo, value, Value(divisor)).as_number();
  if (!rest) throw Problem("a number is expected");
  return *rest == 0 ? 0 : *rest == 1 ? 1 : 2;
}

using TestOfOne = bool (*)(Budget&, const Value&);
const std::map<std::string_view, TestOfOne>& tests_of_one() {
  static const std::map<std::string_view, TestOfOne> tests = {
      {"defined", [](Budget&, const Value& v) { return !v.is_undefined(); }},
      {"undefined", [](Budget&, const Value& v) { return v.is_undefined(); }},
      {"none", [](Budget&, const Value& v) { return v.is_none(); }},
      {"boolean", [](Budget&, const Value& v) { return v.is(Kind::boolean); }},
      {"true", [](Budget&, const Value& v) { return v.is(Kind::boolean) && *v.as<bool>(); }},
      {"false", [](Budget&, const Value& v) { return v.is(Kind::boolean) && !*v.as<bool>(); }},
      {"integer", [](Budget&, const Value& v) { return v.is(Kind::integer); }},
      {"float", [](Budget&, const Value& v) { return v.is(Kind::real); }},
      {"number", [](Budget&, const Value& v) { return v.as_number().has_value(); }},
      {"string", [](Budget&, const Value& v) { return v.is(Kind::text); }},
      {"mapping", [](Budget&, const Value& v) { return v.is(Kind::dict); }},
      {"iterable", [](Budget&, const Value& v) { return can_be_iterated(v); }},
      {"sequence",
       [](Budget&, const Value& v) {
         return is_kind_of_list(v) || v.is(Kind::text) || v.is(Kind::dict) || v.is_undefined();
       }},
      {"callable",
       [](Budget&, const Value& v) {
         return v.is(Kind::callable) || v.is(Kind::method) || v.is_undefined() || v.is(Kind::loop);
       }},
      {"escaped", [](Budget&, const Value& v) { return v.is_markup(); }},
      {"lower",
       [](Budget& b, const Value& v) {
         const auto text = str(b, v);
         return lower(text) == text && upper(text) != text;
       }},
      {"upper",
       [](Budget& b, const Value& v) {
         const auto text = str(b, v);
         return upper(text) == text && lower(text) != text;
       }},
      {"even", [](Budget& b, const Value& v) { return remainder_of(b, v, 2) == 0; }},
      {"odd", [](Budget& b, const Value& v) { return remainder_of(b, v, 2) == 1; }}};
  return tests;
}

/// `is sameas`: the same object in Python.
bool is_same_object(const Value& left, const Value& right) {
  if (left.kind() != right.kind()) return false;
  if (left.is_none()) return true;
  if (left.is(Kind::boolean)) return *left.as<bool>() == *right.as<bool>();
  if (left.as_sequence()) return left.as_sequence() == right.as_sequence();
  if (left.as_dict()) return left.as_dict() == right.as_dict();
  throw Problem("sameas: only True, False, None, lists and dictionaries are supported");
}

const std::map<std::string_view, Comparator>& comparators() {
  using enum Comparator;
  static const std::map<std::string_view, Comparator> known = {
      {"eq", equal},      {"equalto", equal},    {"==", equal},         {"ne", unequal},
      {"!=", unequal},    {"lt", less},          {"lessthan", less},    {"<", less},
      {"le", less_equal}, {"<=", less_equal},    {"gt", greater},       {"greaterthan", greater},
      {">", greater},     {"ge", greater_equal}, {">=", greater_equal}, {"in", within}};
  return known;
}

}  // namespace

bool apply_test(Budget& budget, const std::string& name, const Value& value, const Arguments& arguments) {
  budget.step();
  if (const auto* text = value.as_text(); text && (name == "lower" || name == "upper"))
    budget.step(text->size() / 2);
  if (const auto found = tests_of_one().find(name); found != tests_of_one().end()) {
    const Bound nothing(name, arguments, {});
    return found->second(budget, value);
  }
  const auto comparator = comparators().find(name);
  if (comparator == comparators().end() && name != "sameas" && name != "divisibleby")
    throw Problem(fmt::format("the test '{}' does not exist or is not supported", excerpt(name, 40)));
  const Bound bound(name, arguments, {"other"}, 1);
  const auto& other = bound.at(0);
  if (comparator != comparators().end()) return compare(budget, comparator->second, value, other);
  if (name == "sameas") return is_same_object(value, other);
  const auto rest = compute(budget, Operator::modulo, value, other).as_number();  // not of a text: "%s" % 2
  return rest && *rest == 0;
}

}  // namespace zoo::templates
