#pragma once
// The values of templates, as Python has them. A value does not change, except that a
// namespace gets attributes, a loop goes on and a generator is used up.

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "templates/values/limits.h"

namespace zoo::templates {

class Value;
struct Text;
struct Sequence;
struct Dict;
struct Namespace;
struct Method;
class Loop;
class Callable;

enum class Kind {
  undefined,
  none,
  boolean,
  integer,
  real,
  text,
  list,
  tuple,
  range,
  generator,
  keys,
  values,
  items,
  dict,
  name_space,
  method,
  callable,
  loop
};

/// The value of a name or an attribute that does not exist. It has no text and is false. Most uses of it are
/// errors, whose message is `problem`.
struct Undefined {
  std::shared_ptr<const std::string> problem;
  /// The sandbox forbids it: even its text is an error.
  bool is_forbidden = false;
};
struct None {};

class Value {
 public:
  using Form =
      std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>,
                   std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
                   std::shared_ptr<const Method>, std::shared_ptr<const Callable>, std::shared_ptr<Loop>>;

  Value() : form_(None{}) {}
  template <class T>
    requires std::constructible_from<Form, T>
  Value(T value) : form_(std::move(value)) {}
  Value(const char*) = delete;
  Value(int) = delete;

  Kind kind() const;
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_undefined() const { return std::holds_alternative<Undefined>(form_); }
  bool is_none() const { return std::holds_alternative<None>(form_); }
  /// The value as this type; null if it is of another one.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&form_);
  }
  /// A whole number or a truth value, which counts as 0 or 1.
  std::optional<int64_t> as_integer() const;
  /// A number or a truth value.
  std::optional<double> as_number() const;
  const std::string* as_text() const;
  bool is_markup() const;
  const Sequence* as_sequence() const;
  const Dict* as_dict() const;

 private:
  Form form_;
};

struct Text {
  std::string bytes;  // UTF-8
  /// Whether the filter `safe` or `escape` made it: markupsafe.Markup, which escapes what is added to it.
  bool is_markup = false;
};

/// Lists and what can be gone through like them. `kind` says how it is shown and what it can do.
struct Sequence {
  Kind kind;
  std::vector<Value> items;
  int64_t depth = 1;
  /// How many items of a generator are used up.
  mutable size_t used = 0;
};

/// Members in the order of their insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> members;
  int64_t depth = 1;

  /// Null if there is none.
  const Value* find(std::string_view key) const;
  const Value* find(Budget& budget, const Value& key) const;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  Value* find(std::string_view name);
  /// Throws Problem if the search or a new attribute costs more than there is.
  void set(Budget& budget, std::string_view name, Value value);
};

/// "abc".upper before it is called.
struct Method {
  Value object;
  std::string name;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// A macro or a function.
class Callable {
 public:
  virtual ~Callable() = default;
  virtual Value call(const Arguments& arguments) const = 0;
  virtual std::string name() const = 0;
};

/// The variable `loop`.
class Loop {
 public:
  using Source = std::function<std::optional<Value>()>;
  Loop(Source source, int64_t depth) : source_(std::move(source)), depth_(depth) {}

  /// Goes to the next item; null at the end.
  const Value* next();
  /// Nothing is asked of the source any more, and no item is kept.
  void close();
  /// The value of loop.NAME; nullopt if there is none.
  std::optional<Value> attribute(std::string_view name);
  int64_t index() const { return index_; }
  /// Whether `value` has changed since the last call.
  bool changed(Budget& budget, std::vector<Value> value);

 private:
  std::optional<Value> pull();
  const Value* peek();
  int64_t length();

  Source source_;
  int64_t depth_, index_ = -1;
  Value previous_, current_;
  std::vector<Value> ahead_;
  size_t next_ahead_ = 0;
  std::optional<std::vector<Value>> last_changed_;
};

// ---- making values

Value text(Budget& budget, std::string bytes);
Value markup(Budget& budget, std::string bytes);
/// Markup if `other` is, else a plain text.
Value text_like(Budget& budget, const Value& other, std::string bytes);
/// `kind`: any of Sequence.
Value sequence(Budget& budget, Kind kind, std::vector<Value> items);
inline Value list(Budget& budget, std::vector<Value> items) {
  return sequence(budget, Kind::list, std::move(items));
}
/// Members with equal keys become one, at the place of the first with the value of the last. Throws Problem
/// for a key that cannot be one.
Value dict(Budget& budget, std::vector<std::pair<Value, Value>> members);
Value undefined(std::string problem);
/// What the sandbox forbids.
Value forbidden(std::string problem);
Value from_json(Budget& budget, const nlohmann::ordered_json& json);

// ---- what Python says of values

/// "str", "list", "NoneType".
std::string type_name(const Value& value);
/// Whether Python takes the value for true. Throws Problem for a forbidden value.
bool is_true(const Value& value);
/// Throws Problem for a value without a length.
int64_t length(Budget& budget, const Value& value);
/// The items of a list, the keys of a dictionary, the characters of a text. A generator is used up. Throws
/// Problem for other values.
std::vector<Value> items_of(Budget& budget, const Value& value);
bool can_be_iterated(const Value& value);
/// Throws the problem of an undefined value; other values pass.
void require_defined(const Value& value);
/// The same for an undefined value that the sandbox forbids.
void require_allowed(const Value& value);

}  // namespace zoo::templates
