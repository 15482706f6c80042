// Filters of items: of lists, dictionaries, texts.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "templates/filters.h"
#include "templates/values/arguments.h"
#include "templates/values/members.h"
#include "templates/values/operators.h"
#include "templates/values/python_text.h"
#include "tokenizers/unicode/code_points.h"

namespace zoo::templates {
namespace {

Value generator(Budget& budget, std::vector<Value> items) {
  return sequence(budget, Kind::generator, std::move(items));
}

/// The key that sorts an item: its attribute or the item itself, with texts in lower case.
Value sort_key(Budget& budget, const Value& item, const Value* path, bool keeps_case) {
  const bool has_path = path && !path->is_none();
  const auto key = [&](const Value& value) {
    return !keeps_case && value.as_text() ? text(budget, lower(*value.as_text())) : value;
  };
  if (!has_path) return key(item);
  const auto* const names = path->as_text();
  if (!names || names->find(',') == names->npos) return key(attribute_path(budget, item, *path));
  std::vector<Value> keys;
  for (size_t begin = 0; begin <= names->size();) {
    const size_t end = std::min(names->find(',', begin), names->size());
    keys.push_back(key(attribute_path(budget, item, text(budget, names->substr(begin, end - begin)))));
    begin = end + 1;
  }
  return list(budget, std::move(keys));
}

/// Sorts pairs of keys and items, stably. Comparisons may throw, which std::stable_sort allows.
void sort_by_keys(Budget& budget, std::vector<std::pair<Value, Value>>& items, bool descending) {
  std::ranges::stable_sort(items, [&](const auto& a, const auto& b) {
    return descending ? compare(budget, Comparator::less, b.first, a.first)
                      : compare(budget, Comparator::less, a.first, b.first);
  });
}

/// The items alone, sorted.
Value sorted(Budget& budget, std::vector<std::pair<Value, Value>> keyed, bool descending) {
  sort_by_keys(budget, keyed, descending);
  std::vector<Value> items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return list(budget, std::move(items));
}

Value sort(Budget& budget, const Value& value, const Arguments& arguments) {
  const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<std::pair<Value, Value>> keyed;
  for (auto& item : items_of(budget, value))
    keyed.emplace_back(sort_key(budget, item, bound.find(2), bound.flag(1)), std::move(item));
  return sorted(budget, std::move(keyed), bound.flag(0));
}

Value dictsort(Budget& budget, const Value& value, const Arguments& arguments) {
  const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = bound.find(1) ? bound.text(1) : "key";
  const auto* const members = value.as_dict();
  if (by != "key" && by != "value") throw Problem("dictsort: by is 'key' or 'value'");
  if (!members) {
    require_defined(value);
    throw Problem(fmt::format("dictsort: a dictionary is expected, not {}", type_name(value)));
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, member] : members->members) {
    const auto& sorted_by = by == "key" ? key : member;
    keyed.emplace_back(sort_key(budget, sorted_by, nullptr, bound.flag(0)),
                       sequence(budget, Kind::tuple, {key, member}));
  }
  return sorted(budget, std::move(keyed), bound.flag(2));
}

Value extreme(Budget& budget, const std::string& name, const Value& value, const Arguments& arguments) {
  const Bound bound(name, arguments, {"case_sensitive", "attribute"});
  const auto order = name == "min" ? Comparator::less : Comparator::greater;
  std::optional<std::pair<Value, Value>> best;
  for (const auto& item : items_of(budget, value)) {
    auto key = sort_key(budget, item, bound.find(1), bound.flag(0));
    if (!best || compare(budget, order, key, best->first)) best = {std::move(key), item};
  }
  return best ? best->second : undefined(fmt::format("{}: there are no items", name));
}

Value unique(Budget& budget, const Value& value, const Arguments& arguments) {
  const Bound bound("unique", arguments, {"case_sensitive", "attribute"});
  std::vector<Value> keys, items;
  for (const auto& item : items_of(budget, value)) {
    auto key = sort_key(budget, item, bound.find(1), bound.flag(0));
    check_key(key);
    if (std::ranges::any_of(keys, [&](const Value& known) { return equal(budget, known, key); })) continue;
    keys.push_back(std::move(key));
    items.push_back(item);
  }
  return generator(budget, std::move(items));
}

Value sum(Budget& budget, const Value& value, const Arguments& arguments) {
  const Bound bound("sum", arguments, {"attribute", "start"});
  Value total = bound.find(1) ? bound.at(1) : Value(int64_t{0});
  if (total.as_text()) throw Problem("sum: texts cannot be summed");
  const bool has_path = bound.find(0) && !bound.at(0).is_none();
  for (const auto& item : items_of(budget, value))
    total =
        compute(budget, Operator::add, total, has_path ? attribute_path(budget, item, bound.at(0)) : item);
  return total;
}

Value join(Budget& budget, const Value& value, const Arguments& arguments) {
  const Bound bound("join", arguments, {"d", "attribute"});
  const auto separator = bound.find(0) ? str(budget, bound.at(0)) : std::string();
  const bool has_path = bound.find(1) && !bound.at(1).is_none();
  std::string result;
  bool is_first = true;
  for (const auto& item : items_of(budget, value)) {
    const auto part = str(budget, has_path ? attribute_path(budget, item, bound.at(1)) : item);
    budget.make(part.size() + separator.size());
    if (!is_first) result += separator;
    is_first = false;
    result += part;
  }
  return text(budget, std::move(result));
}

Value first(Budget& budget, const Value& value) {
  const auto* const items = value.as_sequence();
  if (items && items->kind == Kind::generator) {
    if (items->used == items->items.size()) return undefined("first: there are no items");
    return items->items[items->used++];
  }
  if (const auto* bytes = value.as_text())
    return bytes->empty() ? undefined("first: there are no items")
                          : text(budget, bytes->substr(0, next_place(*bytes, 0)));
  const auto all = items_of(budget, value);
  return all.empty() ? undefined("first: there are no items") : all.front();
}

Value last(Budget& budget, const Value& value) {
  require_defined(value);
  if (value.is(Kind::generator)) throw Problem("last: a generator has no last item");
  const auto all = items_of(budget, value);
  return all.empty() ? undefined("last: there are no items") : all.back();
}

Value reverse(Budget& budget, const Value& value) {
  auto items = items_of(budget, value);
  std::ranges::reverse(items);
  if (!value.as_text()) return generator(budget, std::move(items));
  std::string result;
  for (const auto& item : items) result += *item.as_text();
  return text(budget, std::move(result));
}

Value map(Budget& budget, const Value& value, const Arguments& arguments) {
  std::vector<Value> items;
  if (!is_true(value)) return generator(budget, {});  // also for None
  if (arguments.positional.empty()) {
    const Bound bound("map", arguments, {"attribute", "default"}, 1);
    for (const auto& item : items_of(budget, value)) {
      auto member = attribute_path(budget, item, bound.at(0));
      items.push_back(member.is_undefined() && bound.find(1) ? bound.at(1) : member);
    }
    return generator(budget, std::move(items));
  }
  const auto* const name = arguments.positional[0].as_text();
  if (!name) throw Problem("map: the name of a filter is expected");
  const Arguments rest{.positional = {arguments.positional.begin() + 1, arguments.positional.end()},
                       .named = arguments.named};
  for (const auto& item : items_of(budget, value)) items.push_back(apply_filter(budget, *name, item, rest));
  return generator(budget, std::move(items));
}

/// select, reject, selectattr, rejectattr.
Value select(Budget& budget, const std::string& name, const Value& value, const Arguments& arguments) {
  if (!is_true(value)) return generator(budget, {});  // also for None
  const bool has_path = name.ends_with("attr"), wanted = name.starts_with("select");
  const size_t at = has_path ? 1 : 0;
  if (arguments.positional.size() < at) throw Problem(fmt::format("{}: an attribute is expected", name));
  const std::string* test = nullptr;
  Arguments rest{.positional = {}, .named = arguments.named};
  if (arguments.positional.size() > at) {
    test = arguments.positional[at].as_text();
    if (!test) throw Problem(fmt::format("{}: the name of a test is expected", name));
    rest.positional.assign(arguments.positional.begin() + static_cast<ptrdiff_t>(at) + 1,
                           arguments.positional.end());
  }
  std::vector<Value> items;
  for (const auto& item : items_of(budget, value)) {
    const auto subject = has_path ? attribute_path(budget, item, arguments.positional[0]) : item;
    const bool holds = test ? apply_test(budget, *test, subject, rest) : is_true(subject);
    if (holds == wanted) items.push_back(item);
  }
  return generator(budget, std::move(items));
}

Value items(Budget& budget, const Value& value) {
  std::vector<Value> pairs;
  if (const auto* members = value.as_dict()) {
    for (const auto& [key, member] : members->members)
      pairs.push_back(sequence(budget, Kind::tuple, {key, member}));
  } else if (!value.is_undefined()) {
    throw Problem(fmt::format("items: a dictionary is expected, not {}", type_name(value)));
  }
  return generator(budget, std::move(pairs));
}

Value batch(Budget& budget, const Value& value, const Arguments& arguments) {
  const Bound bound("batch", arguments, {"linecount", "fill_with"}, 1);
  const int64_t n = bound.integer(0, 1);
  std::vector<Value> batches, part;
  for (const auto& item : items_of(budget, value)) {
    if (std::ssize(part) == n) batches.push_back(list(budget, std::exchange(part, {})));
    part.push_back(item);
  }
  if (!part.empty()) {
    const bool fills = bound.find(1) && !bound.at(1).is_none();
    while (fills && std::ssize(part) < n) {
      budget.make(sizeof(Value));
      part.push_back(bound.at(1));
    }
    batches.push_back(list(budget, std::move(part)));
  }
  return generator(budget, std::move(batches));
}

Value groupby(Budget& budget, const Value& value, const Arguments& arguments) {
  const Bound bound("groupby", arguments, {"attribute"}, 1);
  std::vector<std::pair<Value, Value>> keyed;
  for (auto& item : items_of(budget, value))
    keyed.emplace_back(sort_key(budget, item, bound.find(0), false), std::move(item));
  sort_by_keys(budget, keyed, false);
  std::vector<Value> groups;
  for (size_t begin = 0, end = 0; begin < keyed.size(); begin = end) {
    std::vector<Value> members;
    while (end < keyed.size() && equal(budget, keyed[begin].first, keyed[end].first))
      members.push_back(keyed[end++].second);
    const auto name = sort_key(budget, keyed[begin].second, bound.find(0), true);
    groups.push_back(sequence(budget, Kind::tuple, {name, list(budget, std::move(members))}));
  }
  return list(budget, std::move(groups));
}

}  // namespace

std::optional<Value> apply_sequence_filter(Budget& budget, const std::string& name, const Value& value,
                                           const Arguments& arguments) {
  using Function = Value (*)(Budget&, const Value&, const Arguments&);
  static const std::map<std::string_view, Function> functions = {
      {"sort", sort}, {"dictsort", dictsort}, {"unique", unique}, {"sum", sum},
      {"join", join}, {"map", map},           {"batch", batch},   {"groupby", groupby}};
  if (const auto found = functions.find(name); found != functions.end())
    return found->second(budget, value, arguments);
  if (name == "min" || name == "max") return extreme(budget, name, value, arguments);
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr")
    return select(budget, name, value, arguments);
  if (name == "attr") {
    const Bound bound(name, arguments, {"name"}, 1);
    const auto found = attribute(budget, value, bound.text(0));
    // The attribute alone: not the member of a dictionary.
    if (value.as_dict() && !found.is(Kind::method)) return undefined("attr: there is no such attribute");
    return found;
  }
  const auto takes_nothing = [&] { const Bound nothing(name, arguments, {}); };
  if (name == "length" || name == "count") return takes_nothing(), Value(length(budget, value));
  if (name == "first") return takes_nothing(), first(budget, value);
  if (name == "last") return takes_nothing(), last(budget, value);
  if (name == "list") return takes_nothing(), list(budget, items_of(budget, value));
  if (name == "reverse") return takes_nothing(), reverse(budget, value);
  if (name == "items") return takes_nothing(), items(budget, value);
  return std::nullopt;
}

}  // namespace zoo::templates
