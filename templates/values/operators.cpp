#include "templates/values/operators.h"

#include <cmath>

#include <fmt/format.h>

#include "templates/values/formatting.h"
#include "templates/values/python_text.h"

namespace zoo::templates {
namespace {

constexpr const char* too_large = "a whole number is larger than 64 bits";

[[noreturn]] void refuse_operator(std::string_view op, const Value& left, const Value& right) {
  require_defined(left);
  require_defined(right);
  throw Problem(fmt::format("'{}' cannot be used between {} and {}", op, type_name(left), type_name(right)));
}

const char* sign_of(Operator op) {
  constexpr const char* signs[] = {"+", "-", "*", "/", "//", "%", "**"};
  return signs[static_cast<size_t>(op)];
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent & 1 && __builtin_mul_overflow(result, base, &result)) throw Problem(too_large);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) throw Problem(too_large);
  }
  return result;
}

Value compute_integers(Operator op, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Operator::add:
      overflows = __builtin_add_overflow(left, right, &result);
      break;
    case Operator::subtract:
      overflows = __builtin_sub_overflow(left, right, &result);
      break;
    case Operator::multiply:
      overflows = __builtin_mul_overflow(left, right, &result);
      break;
    case Operator::divide:
      if (right == 0) throw Problem("division by zero");
      return static_cast<double>(left) / static_cast<double>(right);
    case Operator::floor_divide:
    case Operator::modulo: {
      if (right == 0) throw Problem("division by zero");
      if (right == -1) {  // -2^63 / -1 does not fit into 64 bits
        if (op == Operator::modulo) return int64_t{0};
        overflows = __builtin_sub_overflow(int64_t{0}, left, &result);
        break;
      }
      int64_t quotient = left / right, rest = left % right;
      if (rest != 0 && (rest < 0) != (right < 0)) {
        --quotient;
        rest += right;
      }
      return op == Operator::modulo ? rest : quotient;
    }
    case Operator::power:
      if (right < 0) {
        if (left == 0) throw Problem("division by zero");
        return std::pow(static_cast<double>(left), static_cast<double>(right));
      }
      return integer_power(left, right);
  }
  if (overflows) throw Problem(too_large);
  return result;
}

Value compute_reals(Operator op, double left, double right) {
  switch (op) {
    case Operator::add:
      return left + right;
    case Operator::subtract:
      return left - right;
    case Operator::multiply:
      return left * right;
    case Operator::power: {
      if (left == 0 && right < 0) throw Problem("division by zero");
      const double result = std::pow(left, right);
      if (std::isnan(result) && !std::isnan(left) && !std::isnan(right))
        throw Problem("a power that is no real number");
      if (std::isinf(result) && std::isfinite(left) && std::isfinite(right))
        throw Problem("a number is too large");
      return result;
    }
    default:
      break;
  }
  if (right == 0) throw Problem("division by zero");
  if (op == Operator::divide) return left / right;
  double rest = std::fmod(left, right);
  if (rest != 0 && (rest < 0) != (right < 0)) rest += right;
  if (op == Operator::modulo) return rest == 0 ? std::copysign(0.0, right) : rest;
  const double quotient = (left - rest) / right, whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

Value repeat(Budget& budget, const Value& value, int64_t times) {
  const auto n = static_cast<size_t>(std::max<int64_t>(times, 0));
  const auto check = [&](size_t unit) {
    if (unit > 0 && n > budget.limits().value_bytes / unit)
      throw Problem("the template makes more text than it may");
    budget.make(unit * n);
  };
  if (const auto* bytes = value.as_text()) {
    check(bytes->size());
    std::string result;
    if (bytes->empty()) return text(budget, {});
    result.reserve(bytes->size() * n);
    for (size_t i = 0; i < n; ++i) result += *bytes;
    return text_like(budget, value, std::move(result));
  }
  const auto& items = value.as_sequence()->items;
  check(items.size() * sizeof(Value));
  std::vector<Value> result;
  if (items.empty()) return sequence(budget, value.kind(), {});
  for (size_t i = 0; i < n; ++i) result.insert(result.end(), items.begin(), items.end());
  return sequence(budget, value.kind(), std::move(result));
}

bool is_list_or_tuple(const Value& value) { return value.is(Kind::list) || value.is(Kind::tuple); }

int order_of(double left, double right) { return left < right ? -1 : left > right ? 1 : 0; }

/// Whether `comparator`, one of order, holds between values that compare as `sign` and 0.
bool holds(Comparator comparator, int sign) {
  using enum Comparator;
  if (sign == 0) return comparator == less_equal || comparator == greater_equal;
  return (sign < 0) == (comparator == less || comparator == less_equal);
}

bool equal_items(Budget& budget, const std::vector<Value>& left, const std::vector<Value>& right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (!equal(budget, left[i], right[i])) return false;
  }
  return true;
}

bool equal_members(Budget& budget, const Dict& left, const Dict& right) {
  if (left.members.size() != right.members.size()) return false;
  for (const auto& [key, value] : left.members) {
    const auto* const other = right.find(budget, key);
    if (!other || !equal(budget, value, *other)) return false;
  }
  return true;
}

template <class T>
bool is_same(const Value& left, const Value& right) {
  const auto *a = left.as<std::shared_ptr<T>>(), *b = right.as<std::shared_ptr<T>>();
  return a && b && *a == *b;
}

}  // namespace

Value compute(Budget& budget, Operator op, const Value& left, const Value& right) {
  if (op == Operator::modulo && left.as_text()) {
    if (left.is_markup()) throw Problem("'%' of a safe text is not supported");
    return text(budget, percent_format(budget, *left.as_text(), right));
  }
  const auto a = left.as_integer(), b = right.as_integer();
  if (a && b) return compute_integers(op, *a, *b);
  if (op == Operator::add) {
    if (left.as_text() && right.as_text()) {
      if (left.is_markup() || right.is_markup()) {
        const auto part = [](const Value& value) {
          return value.is_markup() ? *value.as_text() : escaped(*value.as_text());
        };
        return markup(budget, part(left) + part(right));
      }
      budget.make(left.as_text()->size() + right.as_text()->size());
      return text(budget, *left.as_text() + *right.as_text());
    }
    if (is_list_or_tuple(left) && left.kind() == right.kind()) {
      auto items = left.as_sequence()->items;
      const auto& more = right.as_sequence()->items;
      budget.step(items.size() + more.size());
      items.insert(items.end(), more.begin(), more.end());
      return sequence(budget, left.kind(), std::move(items));
    }
  }
  if (op == Operator::multiply) {
    if (b && (left.as_text() || is_list_or_tuple(left))) return repeat(budget, left, *b);
    if (a && (right.as_text() || is_list_or_tuple(right))) return repeat(budget, right, *a);
  }
  const auto x = left.as_number(), y = right.as_number();
  if (x && y) return compute_reals(op, *x, *y);
  refuse_operator(sign_of(op), left, right);
}

Value negate(const Value& value) {
  if (const auto number = value.as_integer()) {
    if (*number == INT64_MIN) throw Problem(too_large);
    return -*number;
  }
  if (const auto* number = value.as<double>()) return -*number;
  require_defined(value);
  throw Problem(fmt::format("'-' cannot be used before {}", type_name(value)));
}

Value plus(const Value& value) {
  if (const auto number = value.as_integer()) return *number;
  if (value.as<double>()) return value;
  require_defined(value);
  throw Problem(fmt::format("'+' cannot be used before {}", type_name(value)));
}

bool equal(Budget& budget, const Value& left, const Value& right) {
  budget.step();
  if (const auto *a = left.as_text(), *b = right.as_text(); a && b) {
    if (a->size() == b->size()) budget.read(a->size());
    return *a == *b;
  }
  const auto a = left.as_integer(), b = right.as_integer();
  if (a && b) return *a == *b;
  const auto x = left.as_number(), y = right.as_number();
  if (x && y) return *x == *y;
  if (left.is_none() || right.is_none()) return left.is_none() && right.is_none();
  require_allowed(left);
  require_allowed(right);
  if (left.is_undefined() || right.is_undefined()) return left.is_undefined() && right.is_undefined();
  if (left.as_dict() && right.as_dict()) return equal_members(budget, *left.as_dict(), *right.as_dict());
  if (is_same<const Sequence>(left, right) || is_same<Namespace>(left, right) ||
      is_same<const Callable>(left, right) || is_same<Loop>(left, right))
    return true;
  const auto *items = left.as_sequence(), *others = right.as_sequence();
  if (!items || !others || items->kind != others->kind) return false;
  if (items->kind == Kind::generator || items->kind == Kind::values) return false;
  return equal_items(budget, items->items, others->items);
}

bool compare(Budget& budget, Comparator comparator, const Value& left, const Value& right) {
  using enum Comparator;
  if (comparator == Comparator::equal || comparator == unequal)
    return templates::equal(budget, left, right) == (comparator == Comparator::equal);
  if (comparator == within || comparator == not_within)
    return contains(budget, right, left) == (comparator == within);
  budget.step();
  if (const auto *a = left.as_text(), *b = right.as_text(); a && b) {
    budget.read(std::min(a->size(), b->size()));
    return holds(comparator, a->compare(*b));
  }
  const auto a = left.as_integer(), b = right.as_integer();
  if (a && b) return holds(comparator, *a < *b ? -1 : *a > *b ? 1 : 0);
  const auto x = left.as_number(), y = right.as_number();
  if (x && y) return !std::isnan(*x) && !std::isnan(*y) && holds(comparator, order_of(*x, *y));
  if (is_list_or_tuple(left) && left.kind() == right.kind()) {
    const auto &items = left.as_sequence()->items, &others = right.as_sequence()->items;
    for (size_t i = 0; i < std::min(items.size(), others.size()); ++i) {
      if (!templates::equal(budget, items[i], others[i]))
        return compare(budget, comparator, items[i], others[i]);
    }
    return holds(comparator, order_of(static_cast<double>(items.size()), static_cast<double>(others.size())));
  }
  constexpr const char* signs[] = {"<", "<=", ">", ">="};
  refuse_operator(signs[static_cast<size_t>(comparator)], left, right);
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  budget.step();
  if (const auto* bytes = container.as_text()) {
    const auto* const part = item.as_text();
    if (!part) refuse_operator("in", item, container);
    budget.read(bytes->size() * (part->size() / 64 + 1));
    return bytes->find(*part) != bytes->npos;
  }
  if (const auto* members = container.as_dict()) return members->find(budget, item) != nullptr;
  if (!can_be_iterated(container)) refuse_operator("in", item, container);
  for (const auto& other : items_of(budget, container)) {
    if (equal(budget, item, other)) return true;
  }
  return false;
}

void check_key(const Value& key) {
  const bool holds_values = key.as_dict() || key.is(Kind::list) || key.is(Kind::keys) ||
                            key.is(Kind::items) || key.is(Kind::values);
  if (holds_values) throw Problem(fmt::format("a value of type {} cannot be a key", type_name(key)));
  if (key.is(Kind::tuple)) {
    for (const auto& item : key.as_sequence()->items) check_key(item);
  }
}

}  // namespace zoo::templates
