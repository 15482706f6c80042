#include "templates/values/value.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "templates/values/operators.h"
#include "tokenizers/unicode/code_points.h"

namespace zoo::templates {
namespace {

constexpr size_t block_bytes = 32;  // overhead of an allocation

int64_t depth_of(const Value& value) {
  if (const auto* items = value.as_sequence()) return items->depth;
  if (const auto* members = value.as_dict()) return members->depth;
  if (const auto* method = value.as<std::shared_ptr<const Method>>()) return 1 + depth_of((*method)->object);
  return 0;
}

void check_depth(const Budget& budget, int64_t depth) {
  if (depth > budget.limits().value_depth) throw Problem("lists are nested too deeply");
}

}  // namespace

Kind Value::kind() const {
  using enum Kind;
  if (const auto* sequence = as_sequence()) return sequence->kind;
  // In the order of Form, where `list` stands for all sequences.
  constexpr Kind kinds[] = {undefined, none, boolean,    integer, real,     text,
                            list,      dict, name_space, method,  callable, loop};
  static_assert(std::size(kinds) == std::variant_size_v<Form>);
  return kinds[form_.index()];
}

std::optional<int64_t> Value::as_integer() const {
  if (const auto* number = as<int64_t>()) return *number;
  if (const auto* flag = as<bool>()) return *flag ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::as_number() const {
  if (const auto* number = as<double>()) return *number;
  if (const auto number = as_integer()) return static_cast<double>(*number);
  return std::nullopt;
}

const std::string* Value::as_text() const {
  const auto* text = as<std::shared_ptr<const Text>>();
  return text ? &(*text)->bytes : nullptr;
}

bool Value::is_markup() const {
  const auto* text = as<std::shared_ptr<const Text>>();
  return text && (*text)->is_markup;
}

const Sequence* Value::as_sequence() const {
  const auto* sequence = as<std::shared_ptr<const Sequence>>();
  return sequence ? sequence->get() : nullptr;
}

const Dict* Value::as_dict() const {
  const auto* dict = as<std::shared_ptr<const Dict>>();
  return dict ? dict->get() : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    const auto* const text = name.as_text();
    if (text && *text == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(Budget& budget, const Value& key) const {
  check_key(key);
  budget.step(members.size() / 8);
  for (const auto& [name, value] : members) {
    if (equal(budget, name, key)) return &value;
  }
  return nullptr;
}

Value* Namespace::find(std::string_view name) {
  for (auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::set(Budget& budget, std::string_view name, Value value) {
  budget.step(attributes.size() / 8);
  if (auto* known = find(name)) {
    *known = std::move(value);
    return;
  }
  budget.make(sizeof(Value) + name.size());
  attributes.emplace_back(name, std::move(value));
}

// ---- Loop

std::optional<Value> Loop::pull() {
  if (next_ahead_ < ahead_.size()) {
    auto value = std::move(ahead_[next_ahead_++]);
    if (next_ahead_ == ahead_.size()) {
      ahead_.clear();
      next_ahead_ = 0;
    }
    return value;
  }
  return source_ ? source_() : std::nullopt;
}

const Value* Loop::peek() {
  if (next_ahead_ < ahead_.size()) return &ahead_[next_ahead_];
  auto value = source_ ? source_() : std::nullopt;
  if (!value) return nullptr;
  ahead_.push_back(std::move(*value));
  return &ahead_[next_ahead_];
}

int64_t Loop::length() {
  while (auto value = source_ ? source_() : std::nullopt) ahead_.push_back(std::move(*value));
  return index_ + 1 + static_cast<int64_t>(ahead_.size() - next_ahead_);
}

const Value* Loop::next() {
  auto value = pull();
  if (!value) return nullptr;
  previous_ = std::move(current_);
  current_ = std::move(*value);
  ++index_;
  return &current_;
}

void Loop::close() {
  source_ = nullptr;
  previous_ = current_ = Value();
  ahead_.clear();
  next_ahead_ = 0;
  last_changed_.reset();
}

std::optional<Value> Loop::attribute(std::string_view name) {
  if (name == "index") return Value(index_ + 1);
  if (name == "index0") return Value(index_);
  if (name == "first") return Value(index_ == 0);
  if (name == "last") return Value(peek() == nullptr);
  if (name == "length") return Value(length());
  if (name == "revindex") return Value(length() - index_);
  if (name == "revindex0") return Value(length() - index_ - 1);
  if (name == "depth") return Value(depth_ + 1);
  if (name == "depth0") return Value(depth_);
  if (name == "previtem") return index_ == 0 ? undefined("there is no previous item") : previous_;
  if (name == "nextitem") {
    const auto* const next = peek();
    return next ? *next : undefined("there is no next item");
  }
  return std::nullopt;
}

bool Loop::changed(Budget& budget, std::vector<Value> value) {
  bool is_same = last_changed_ && last_changed_->size() == value.size();
  for (size_t i = 0; is_same && i < value.size(); ++i) is_same = equal(budget, (*last_changed_)[i], value[i]);
  last_changed_ = std::move(value);
  return !is_same;
}

// ---- making values

Value text(Budget& budget, std::string bytes) {
  budget.make(sizeof(Text) + block_bytes + bytes.size());
  return std::make_shared<const Text>(Text{.bytes = std::move(bytes)});
}

Value markup(Budget& budget, std::string bytes) {
  budget.make(sizeof(Text) + block_bytes + bytes.size());
  return std::make_shared<const Text>(Text{.bytes = std::move(bytes), .is_markup = true});
}

Value text_like(Budget& budget, const Value& other, std::string bytes) {
  return other.is_markup() ? markup(budget, std::move(bytes)) : text(budget, std::move(bytes));
}

Value sequence(Budget& budget, Kind kind, std::vector<Value> items) {
  budget.make(sizeof(Sequence) + items.size() * sizeof(Value));
  int64_t depth = 0;
  for (const auto& item : items) depth = std::max(depth, depth_of(item));
  check_depth(budget, depth + 1);
  return std::make_shared<const Sequence>(
      Sequence{.kind = kind, .items = std::move(items), .depth = depth + 1});
}

Value dict(Budget& budget, std::vector<std::pair<Value, Value>> members) {
  budget.make(sizeof(Dict) + members.size() * 2 * sizeof(Value));
  Dict result;
  for (auto& [key, value] : members) {
    auto* const known = const_cast<Value*>(result.find(budget, key));
    if (known) {
      *known = std::move(value);
    } else {
      result.members.emplace_back(std::move(key), std::move(value));
    }
  }
  for (const auto& [key, value] : result.members)
    result.depth = std::max({result.depth, depth_of(key) + 1, depth_of(value) + 1});
  check_depth(budget, result.depth);
  return std::make_shared<const Dict>(std::move(result));
}

Value undefined(std::string problem) {
  return Undefined{.problem = std::make_shared<const std::string>(std::move(problem))};
}

Value forbidden(std::string problem) {
  return Undefined{.problem = std::make_shared<const std::string>(std::move(problem)), .is_forbidden = true};
}

Value from_json(Budget& budget, const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    throw Problem("a number is too large");
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return text(budget, json.get_ref<const std::string&>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(from_json(budget, item));
    return list(budget, std::move(items));
  }
  if (!json.is_object()) return {};
  Dict result;  // its keys differ already
  for (const auto& [key, value] : json.items()) {
    result.members.emplace_back(text(budget, key), from_json(budget, value));
    result.depth = std::max(result.depth, depth_of(result.members.back().second) + 1);
  }
  check_depth(budget, result.depth);
  budget.make(sizeof(Dict) + result.members.size() * 2 * sizeof(Value));
  return std::make_shared<const Dict>(std::move(result));
}

// ---- what Python says of values

std::string type_name(const Value& value) {
  // In the order of Kind.
  constexpr const char* names[] = {"Undefined", "NoneType",    "bool",       "int",   "float",
                                   "str",       "list",        "tuple",      "range", "generator",
                                   "dict_keys", "dict_values", "dict_items", "dict",  "Namespace",
                                   "method",    "function",    "LoopContext"};
  static_assert(std::size(names) == static_cast<size_t>(Kind::loop) + 1);
  return names[static_cast<size_t>(value.kind())];
}

void require_defined(const Value& value) {
  if (const auto* missing = value.as<Undefined>()) throw Problem(*missing->problem);
}

void require_allowed(const Value& value) {
  if (const auto* missing = value.as<Undefined>(); missing && missing->is_forbidden) require_defined(value);
}

bool is_true(const Value& value) {
  require_allowed(value);
  if (const auto number = value.as_number()) return *number != 0;
  if (const auto* bytes = value.as_text()) return !bytes->empty();
  if (const auto* dict = value.as_dict()) return !dict->members.empty();
  if (const auto* items = value.as_sequence()) return items->kind == Kind::generator || !items->items.empty();
  return !value.is_none() && !value.is_undefined();
}

int64_t length(Budget& budget, const Value& value) {
  if (const auto* bytes = value.as_text()) {
    budget.read(bytes->size());
    return static_cast<int64_t>(count_code_points(*bytes));
  }
  if (const auto* members = value.as_dict()) return std::ssize(members->members);
  const auto* const items = value.as_sequence();
  if (items && items->kind != Kind::generator) return std::ssize(items->items);
  if (const auto* loop = value.as<std::shared_ptr<Loop>>())
    return *(*loop)->attribute("length")->as_integer();
  require_allowed(value);
  if (value.is_undefined()) return 0;
  throw Problem(fmt::format("a value of type {} has no length", type_name(value)));
}

bool can_be_iterated(const Value& value) {
  return value.is_undefined() || value.as_text() || value.as_dict() || value.as_sequence() ||
         value.is(Kind::loop);
}

std::vector<Value> items_of(Budget& budget, const Value& value) {
  if (const auto* items = value.as_sequence()) {
    budget.step(items->items.size() / 4);
    if (items->kind != Kind::generator) return items->items;
    const auto from = items->items.begin() + static_cast<ptrdiff_t>(items->used);
    items->used = items->items.size();
    return {from, items->items.end()};
  }
  std::vector<Value> items;
  if (const auto* members = value.as_dict()) {
    for (const auto& member : members->members) items.push_back(member.first);
    return items;
  }
  if (const auto* bytes = value.as_text()) {
    for (size_t at = 0; at < bytes->size();) {
      const size_t begin = at;
      at = next_place(*bytes, at);
      items.push_back(text(budget, bytes->substr(begin, at - begin)));
    }
    return items;
  }
  require_allowed(value);
  if (value.is_undefined()) return items;
  throw Problem(fmt::format("a value of type {} cannot be gone through", type_name(value)));
}

}  // namespace zoo::templates
