#pragma once
// Every struct that a YAML file can fill is described once, by a function
//
//     void describe(ConfigVisitor& v, OptimizerConfig& c) {
//       v.field("lr", c.lr, "Peak learning rate.", Limits::positive());
//       v.field("betas", c.betas, "Decay rates of the two moments of Adam.");
//     }
//
// Parsing, checking, `--set`, the resolved dump and the reference of `zoo config` are visitors that this
// function receives (io/config/config_file.h). Defaults are the struct's own member initialisers.

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/named_enum.h"
#include "io/config/config_path.h"

namespace zoo {

/// The range that a number must lie in.
struct Limits {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_excluded = false;

  static Limits at_least(double min) { return {.min = min}; }
  static Limits positive() { return {.min = 0, .min_excluded = true}; }
  static Limits between(double min, double max) { return {.min = min, .max = max}; }
  /// Whole numbers.
  static Limits whole(int64_t min, int64_t max) {
    return between(static_cast<double>(min), static_cast<double>(max));
  }
  bool contain(double value) const { return value <= max && (min_excluded ? value > min : value >= min); }
};

/// Which outputs an option of a search has an effect on.
enum class OptionUse { always, sampling, beams };

/// How a key is called where it is an option outside configurations. Visitors of a struct make such options;
/// a key that says nothing is one everywhere, under its own name.
struct Elsewhere {
  static constexpr std::string_view same = "=", nowhere{};
  std::string_view flag = same;     // on the command line: a key top_k is --top-k
  std::string_view value = "N";     // what help calls the value of the flag
  std::string_view request = same;  // in a request to a server
  // In generation_config.json of Hugging Face transformers, if the value means the same there.
  std::string_view transformers = same;
  OptionUse use = OptionUse::always;
};

/// How many types a list of them may have.
enum class ListSize { at_least_one, any };

/// One key: its name within its group, its meaning, its range, its names elsewhere.
struct FieldInfo {
  std::string_view key;
  std::string_view doc;
  Limits limits = {};
  Elsewhere elsewhere = {};
  std::span<const std::string_view> owners = {};  // ConfigVisitor::only_for()
  ListSize list_size = ListSize::at_least_one;    // of selections()

  /// The key's name in a request or a file; empty: it has none there.
  std::string_view name_in(std::string_view Elsewhere::* place) const {
    return elsewhere.*place == Elsewhere::same ? key : elsewhere.*place;
  }
};

/// A value that the program may choose: `auto` in a file, no value here.
template <class T>
struct AutoOr {
  AutoOr() = default;  // auto
  AutoOr(T known) : value(std::move(known)) {}
  bool is_auto() const { return !value.has_value(); }
  bool operator==(const AutoOr&) const = default;

  std::optional<T> value;
};

class TypeList;
struct Selection;
class ConfigVisitor;

/// A list of structs with a describe(), for visitors, which do not know the struct.
class StructList {
 public:
  virtual ~StructList() = default;
  virtual size_t size() const = 0;
  /// Added structs have their defaults.
  virtual void resize(size_t size) = 0;
  /// Visits the keys of struct number `i`.
  virtual void visit(size_t i, ConfigVisitor& visitor) = 0;
  /// Visits the keys of a struct with its defaults, which does not become part of the list.
  virtual void visit_new(ConfigVisitor& visitor) const = 0;
};

/// The text of a list in a configuration: [{key: value, …}, …].
std::string to_text(StructList& list);

/// Visits every key of a configuration. Derived classes read, write or document it.
class ConfigVisitor {
 public:
  virtual ~ConfigVisitor() = default;

  /// Visits one key: a bool, int64_t, double, string, path, a list of the last four, a named enumeration, a
  /// struct with its own describe() or a list of them, or an optional (absent = decided from other keys) or
  /// AutoOr of any of these.
  template <class T>
  void field(std::string_view key, T& value, std::string_view doc, Limits limits = {},
             Elsewhere elsewhere = {}) {
    const FieldInfo info{key, doc, limits, elsewhere, owners_};
    if (wants(info)) visit(info, value);
  }
  /// Visits a key that selects one of `types`, see io/config/registry.h.
  void selection(std::string_view key, Selection& value, const TypeList& types, std::string_view doc) {
    const FieldInfo info{.key = key, .doc = doc, .owners = owners_};
    if (wants(info)) select(info, types, value);
  }
  /// The keys that are visited during a call of `keys` belong to configurations that select one of these
  /// types (tasks, model families): no other uses them (io/config/owned_keys.h).
  template <class Keys>
  void only_for(std::initializer_list<std::string_view> owners, const Keys& keys) {
    const auto outer = std::exchange(owners_, owners);
    keys();
    owners_ = outer;
  }
  /// The same for a key that selects one type or a list of them.
  void selections(std::string_view key, std::vector<Selection>& values, const TypeList& types,
                  std::string_view doc, ListSize list_size = ListSize::at_least_one) {
    const FieldInfo info{.key = key, .doc = doc, .owners = owners_, .list_size = list_size};
    if (wants(info)) select(info, types, values);
  }

 protected:
  /// Whether the key is visited at all.
  virtual bool wants(const FieldInfo&) { return true; }
  virtual void leaf(const FieldInfo& field, bool& value) = 0;
  virtual void leaf(const FieldInfo& field, int64_t& value) = 0;
  virtual void leaf(const FieldInfo& field, double& value) = 0;
  virtual void leaf(const FieldInfo& field, std::string& value) = 0;
  virtual void leaf(const FieldInfo& field, std::vector<int64_t>& value) = 0;
  virtual void leaf(const FieldInfo& field, std::vector<double>& value) = 0;
  virtual void leaf(const FieldInfo& field, std::vector<std::string>& value) = 0;
  /// A path is the text that the file has, unless a visitor wants more of it.
  virtual void path(const FieldInfo& field, ConfigPath& value) { leaf(field, value.text); }
  virtual void paths(const FieldInfo& field, std::vector<ConfigPath>& values);
  /// One of `names`; `index` is read and written.
  virtual void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t& index) = 0;
  virtual void select(const FieldInfo& field, const TypeList& types, Selection& value) = 0;
  virtual void select(const FieldInfo& field, const TypeList& types, std::vector<Selection>& values) = 0;
  virtual void structs(const FieldInfo& field, StructList& list) = 0;
  /// A nested struct is visited between these two calls; false leaves it out.
  virtual bool begin_group(const FieldInfo& field) = 0;
  virtual void end_group() = 0;
  /// Returns whether the optional gets a value. If so, the value is visited next, as the same field.
  virtual bool begin_optional(const FieldInfo& field, bool has_value) = 0;
  /// Returns whether the value is `auto`. If not, the value is visited next, as the same field.
  virtual bool begin_auto(const FieldInfo& field, bool is_auto) = 0;

 private:
  template <class T>
  void visit(const FieldInfo& field, T& value) {
    if constexpr (NamedEnum<T>) {
      static constexpr auto names = config_names(T{});
      auto index = static_cast<size_t>(value);
      choice(field, names, index);
      value = static_cast<T>(index);
    } else if constexpr (std::same_as<T, ConfigPath>) {
      path(field, value);
    } else if constexpr (std::same_as<T, std::vector<ConfigPath>>) {
      paths(field, value);
    } else if constexpr (requires { leaf(field, value); }) {
      leaf(field, value);
    } else {
      if (!begin_group(field)) return;
      describe(*this, value);
      end_group();
    }
  }

  template <class T>
    requires requires(ConfigVisitor& v, T& value) { describe(v, value); }
  void visit(const FieldInfo& field, std::vector<T>& values);

  template <class T>
  void visit(const FieldInfo& field, std::optional<T>& value) {
    if (!begin_optional(field, value.has_value())) {
      value.reset();
      return;
    }
    if (!value) value.emplace();
    visit(field, *value);
  }

  template <class T>
  void visit(const FieldInfo& field, AutoOr<T>& value) {
    if (begin_auto(field, value.is_auto())) {
      value.value.reset();
      return;
    }
    if (value.is_auto()) value.value.emplace();
    visit(field, *value.value);
  }

  std::vector<std::string_view> owners_;
};

template <class Struct>
class StructListOf final : public StructList {
 public:
  explicit StructListOf(std::vector<Struct>& values) : values_(values) {}
  size_t size() const override { return values_.size(); }
  void resize(size_t size) override { values_.resize(size); }
  void visit(size_t i, ConfigVisitor& visitor) override { describe(visitor, values_[i]); }
  void visit_new(ConfigVisitor& visitor) const override {
    Struct fresh;
    describe(visitor, fresh);
  }

 private:
  std::vector<Struct>& values_;
};

template <class T>
  requires requires(ConfigVisitor& v, T& value) { describe(v, value); }
void ConfigVisitor::visit(const FieldInfo& field, std::vector<T>& values) {
  StructListOf<T> list(values);
  structs(field, list);
}

inline void ConfigVisitor::paths(const FieldInfo& field, std::vector<ConfigPath>& values) {
  std::vector<std::string> texts;
  for (const auto& value : values) texts.push_back(value.text);
  leaf(field, texts);
}

/// Visits every key and does nothing: a base for visitors that look at a few kinds of keys.
class SilentVisitor : public ConfigVisitor {
 protected:
  void leaf(const FieldInfo&, bool&) override {}
  void leaf(const FieldInfo&, int64_t&) override {}
  void leaf(const FieldInfo&, double&) override {}
  void leaf(const FieldInfo&, std::string&) override {}
  void leaf(const FieldInfo&, std::vector<int64_t>&) override {}
  void leaf(const FieldInfo&, std::vector<double>&) override {}
  void leaf(const FieldInfo&, std::vector<std::string>&) override {}
  void choice(const FieldInfo&, std::span<const std::string_view>, size_t&) override {}
  void select(const FieldInfo&, const TypeList&, Selection&) override {}
  void select(const FieldInfo&, const TypeList&, std::vector<Selection>&) override {}
  void structs(const FieldInfo&, StructList&) override {}
  bool begin_group(const FieldInfo&) override { return true; }
  void end_group() override {}
  bool begin_optional(const FieldInfo&, bool has_value) override { return has_value; }
  bool begin_auto(const FieldInfo&, bool is_auto) override { return is_auto; }
};

}  // namespace zoo
