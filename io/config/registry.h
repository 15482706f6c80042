#pragma once
// Registries of types that a configuration can name and a program can extend: tasks, objectives, model
// families, mixers, norms, activations, positions, optimisers, schedules, rules of tokens, metrics,
// observers. A type has a name and its own keys. A file selects a type of a registry by
//
//     attention: full                           or, with the type's keys,
//     attention: {type: window, size: 256}
//
// On its first use, a registry receives the types of the library. Programs add() types before the first
// configuration is read. After that, registries do not change.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/named_enum.h"
#include "io/config/describe.h"

namespace zoo {

/// The interface of the keys of a selected type, a struct with a describe().
class TypeOptions {
 public:
  virtual ~TypeOptions() = default;
  virtual void visit(ConfigVisitor& visitor) = 0;
  virtual std::shared_ptr<TypeOptions> copy() const = 0;
};

template <class Struct>
class OptionsOf final : public TypeOptions {
 public:
  OptionsOf() = default;
  explicit OptionsOf(Struct initial) : value(std::move(initial)) {}
  void visit(ConfigVisitor& visitor) override { describe(visitor, value); }
  std::shared_ptr<TypeOptions> copy() const override { return std::make_shared<OptionsOf>(*this); }

  Struct value;
};

/// A selected type with the values of its keys.
struct Selection {
  std::string type;
  std::shared_ptr<const TypeOptions> options = nullptr;  // null: the type has no keys

  Selection() = default;
  explicit Selection(std::string name) : type(std::move(name)) {}
  template <class Struct>
  Selection(std::string name, Struct values)
      : type(std::move(name)), options(std::make_shared<OptionsOf<Struct>>(std::move(values))) {}

  /// The values of the keys. Throws std::bad_cast if the type has other keys, UsageError if it has none.
  template <class Struct>
  const Struct& as() const {
    if (!options) throw UsageError(fmt::format("the type {} was selected without its keys", type));
    return dynamic_cast<const OptionsOf<Struct>&>(*options).value;
  }
  bool operator==(std::string_view name) const { return type == name; }
};

/// A selection among the values of an enumeration, which the library has, and types that programs add.
template <NamedEnum Kind>
struct KindSelection : Selection {
  KindSelection(Kind library_kind) : Selection(std::string(name_of(library_kind))) {}
  KindSelection(Selection selection) : Selection(std::move(selection)) {}
  /// Nothing: an added type.
  std::optional<Kind> kind() const { return enumerator_named<Kind>(type); }
  bool operator==(Kind other) const { return type == name_of(other); }
};

/// The text of a selection in a configuration: NAME, or {type: NAME, key: value, …} if the type has keys.
std::string to_text(const Selection& selection);

/// The common part of all types of a registry.
struct TypeInfo {
  std::string name;
  std::string doc;  // one line for `zoo config`
  /// Makes the type's keys with their defaults; null: no keys.
  std::function<std::shared_ptr<TypeOptions>()> make_options = nullptr;
  bool is_added = false;  // Registry::add(): by a program, not the library
};

/// The member that a type needs and lacks; empty if it lacks none. Types with members that they need have an
/// overload.
inline std::string_view what_lacks(const TypeInfo& /*type*/) { return {}; }

/// A TypeInfo::make_options for a struct with a describe().
template <class Struct>
std::function<std::shared_ptr<TypeOptions>()> options_of() {
  return [] { return std::make_shared<OptionsOf<Struct>>(); };
}

/// The types that a key of a configuration can name.
class TypeList {
 public:
  virtual ~TypeList() = default;
  virtual std::vector<const TypeInfo*> infos() const = 0;

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto* info : infos()) result.push_back(info->name);
    return result;
  }
};

/// Types of one kind. `Entry` derives from TypeInfo and adds the members that this kind needs.
template <class Entry>
class Registry final : public TypeList {
 public:
  /// `kind` is the name of the kind in errors: "task".
  explicit Registry(std::string kind, std::vector<Entry> entries = {}) : kind_(std::move(kind)) {
    for (auto& entry : entries) insert(std::move(entry));
  }
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Throws UsageError if the name is taken, or if the entry lacks something.
  void add(Entry entry) {
    entry.is_added = true;
    insert(std::move(entry));
  }
  /// Null if there is no entry with this name.
  const Entry* find(std::string_view name) const {
    for (const auto& entry : entries_)
      if (entry.name == name) return &entry;
    return nullptr;
  }
  /// Throws ConfigError if there is no entry with this name.
  const Entry& at(std::string_view name) const {
    if (const auto* entry = find(name)) return *entry;
    throw ConfigError(
        fmt::format("there is no {} '{}'; there are: {}", kind_, name, fmt::join(names(), ", ")));
  }
  const Entry& at(const Selection& selection) const { return at(selection.type); }
  /// A selection of this name with the defaults of its keys. Throws ConfigError as at().
  Selection select(std::string_view name) const {
    const auto& entry = at(name);
    Selection result(entry.name);
    if (entry.make_options) result.options = entry.make_options();
    return result;
  }
  std::vector<const TypeInfo*> infos() const override {
    std::vector<const TypeInfo*> result;
    for (const auto& entry : entries_) result.push_back(&entry);
    return result;
  }

 private:
  void insert(Entry entry) {
    if (entry.name.empty()) throw UsageError(fmt::format("a {} needs a name", kind_));
    if (const auto lacking = what_lacks(entry); !lacking.empty())
      throw UsageError(fmt::format("the {} '{}' lacks {}", kind_, entry.name, lacking));
    if (find(entry.name)) throw UsageError(fmt::format("there is a {} '{}' already", kind_, entry.name));
    entries_.push_back(std::move(entry));
  }

  std::string kind_;
  std::deque<Entry> entries_;  // a deque: references to entries stay valid
};

}  // namespace zoo
