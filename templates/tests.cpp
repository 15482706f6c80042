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

using TestOfTwo = bool (*)(Budget&, const Value&, const Value&);
const std::map<std::string_view, TestOfTwo>& tests_of_two() {
  constexpr TestOfTwo eq = [](Budget& b, const Value& v, const Value& w) { return equal(b, v, w); };
  constexpr TestOfTwo ne = [](Budget& b, const Value& v, const Value& w) { return !equal(b, v, w); };
  constexpr TestOfTwo lt = [](Budget& b, const Value& v, const Value& w) {
    return compare(b, Order::less, v, w);
  };
  constexpr TestOfTwo le = [](Budget& b, const Value& v, const Value& w) {
    return compare(b, Order::less_equal, v, w);
  };
  constexpr TestOfTwo gt = [](Budget& b, const Value& v, const Value& w) {
    return compare(b, Order::greater, v, w);
  };
  constexpr TestOfTwo ge = [](Budget& b, const Value& v, const Value& w) {
    return compare(b, Order::greater_equal, v, w);
  };
  static const std::map<std::string_view, TestOfTwo> tests = {
      {"eq", eq},
      {"equalto", eq},
      {"==", eq},
      {"ne", ne},
      {"!=", ne},
      {"lt", lt},
      {"lessthan", lt},
      {"<", lt},
      {"le", le},
      {"<=", le},
      {"gt", gt},
      {">", gt},
      {"ge", ge},
      {">=", ge},
      {"greaterthan", gt},
      {"in", [](Budget& b, const Value& v, const Value& w) { return contains(b, w, v); }},
      {"sameas", [](Budget&, const Value& v, const Value& w) { return is_same_object(v, w); }},
      {"divisibleby", [](Budget& b, const Value& v, const Value& w) {
         const auto rest = compute(b, Operator::modulo, v, w).as_number();  // not of a text: "%s" % 2
         return rest && *rest == 0;
       }}};
  return tests;
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
  if (const auto found = tests_of_two().find(name); found != tests_of_two().end()) {
    const Bound bound(name, arguments, {"other"}, 1);
    return found->second(budget, value, bound.at(0));
  }
  throw Problem(fmt::format("the test '{}' does not exist or is not supported", excerpt(name, 40)));
}

}  // namespace zoo::templates
