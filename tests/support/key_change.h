#pragma once
// A visitor that changes one key of a configuration after the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "io/config/describe.h"
#include "io/config/registry.h"

namespace zoo::testing {

/// Lists the keys of a configuration, and changes one of them.
class KeyChange final : public ConfigVisitor {
 public:
  KeyChange() = default;
  /// Change number `number` of `key`.
  KeyChange(std::string key, size_t number) : wanted_(std::move(key)), number_(number) {}

  const std::vector<std::string>& keys() const { return keys_; }
  /// Whether the key has such a change.
  bool is_done() const { return done_; }
  /// Whether the key takes one of a few values, each of which must have an effect of its own.
  bool is_choice() const { return is_choice_; }

 protected:
  void leaf(const FieldInfo& field, bool& value) override {
    is_choice_ |= is_wanted(field) && !is_new_;
    // An optional that had no value has `false` now, which may be its default.
    change(field, value, is_new_ ? std::vector{true, false} : std::vector{!value});
  }
  void leaf(const FieldInfo& field, int64_t& value) override {
    change_number(field, value,
                  value == 0 ? std::vector<int64_t>{2, 1, 4} : std::vector{2 * value, value + 1, value / 2});
  }
  void leaf(const FieldInfo& field, double& value) override {
    change_number(field, value, value == 0 ? std::vector{0.3} : std::vector{2 * value, value / 2});
  }
  void leaf(const FieldInfo& field, std::string&) override { note(field); }
  void leaf(const FieldInfo& field, std::vector<int64_t>& value) override {
    const bool is_small = !field.limits.contain(4);
    change(field, value, {is_small ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{3, 4}});
  }
  void leaf(const FieldInfo& field, std::vector<double>&) override { note(field); }
  void leaf(const FieldInfo& field, std::vector<std::string>&) override { note(field); }
  void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t& index) override {
    is_choice_ |= is_wanted(field);
    std::vector<size_t> others;
    for (size_t i = 0; i < names.size(); ++i)
      if (i != index || is_new_) others.push_back(i);
    change(field, index, others);
  }
  void select(const FieldInfo& field, const TypeList& types, Selection& value) override {
    // Of types with keys of their own, only positions are exchanged, for those without keys.
    const bool any_has_keys = std::ranges::any_of(types.infos(), has_keys);
    if (value.options || (any_has_keys && !field.key.ends_with("position")))
      return visit_keys(field.key, value);
    is_choice_ |= is_wanted(field);
    std::vector<std::string> others;
    for (const TypeInfo* type : types.infos())
      if (!has_keys(type) && type->name != value.type) others.push_back(type->name);
    change(field, value.type, others);
  }
  void select(const FieldInfo& field, const TypeList&, std::vector<Selection>& values) override {
    for (size_t i = 0; i < values.size(); ++i)
      visit_keys(i == 0 ? std::string(field.key) : fmt::format("{}[{}]", field.key, i), values[i]);
  }
  void structs(const FieldInfo& field, StructList&) override { note(field); }
  bool begin_group(const FieldInfo& field) override {
    groups_.push_back(path_of(field) + ".");
    return true;
  }
  void end_group() override { groups_.pop_back(); }
  bool begin_optional(const FieldInfo& field, bool has_value) override {
    note(field);
    is_new_ = !has_value && is_wanted(field);
    return has_value || is_new_;
  }
  bool begin_auto(const FieldInfo&, bool is_auto) override { return is_auto; }

 private:
  static bool has_keys(const TypeInfo* type) { return static_cast<bool>(type->make_options); }
  std::string path_of(const FieldInfo& field) const {
    return (groups_.empty() ? "" : groups_.back()) + std::string(field.key);
  }
  bool is_wanted(const FieldInfo& field) const { return path_of(field) == wanted_; }
  void note(const FieldInfo& field) {
    if (std::ranges::find(keys_, path_of(field)) == keys_.end()) keys_.push_back(path_of(field));
  }
  template <class T>
  void change(const FieldInfo& field, T& value, const std::vector<T>& others) {
    note(field);
    if (is_wanted(field) && number_ < others.size()) value = others[number_], done_ = true;
    is_new_ = false;
  }
  template <class T>
  void change_number(const FieldInfo& field, T& value, std::vector<T> others) {
    std::erase_if(others, [&](T other) { return !field.limits.contain(static_cast<double>(other)); });
    change(field, value, others);
  }
  void visit_keys(std::string_view name, Selection& selection) {
    if (!selection.options) return;
    const auto options = selection.options->copy();
    groups_.push_back((groups_.empty() ? "" : groups_.back()) + std::string(name) + ".");
    options->visit(*this);
    groups_.pop_back();
    selection.options = options;
  }

  std::string wanted_;
  size_t number_ = 0;
  std::vector<std::string> keys_, groups_;
  bool done_ = false, is_choice_ = false, is_new_ = false;
};

/// What a configuration makes: tensors with their names.
using Made = std::vector<std::pair<std::string, torch::Tensor>>;

inline bool are_equal(const Made& a, const Made& b) {
  return std::ranges::equal(a, b, [](const auto& one, const auto& other) {
    return one.first == other.first && one.second.sizes() == other.second.sizes() &&
           torch::equal(one.second, other.second);
  });
}

/// The outcome of all changes of a key: how many are refused, make the same, or make something else.
struct Effect {
  int refused = 0, same = 0, other = 0;
  bool is_choice = false;
};
/// make(config) throws Error for a configuration that is refused. `before`: what it makes of `config`.
template <class Config, class Make>
Effect effect_of(const std::string& key, const Config& config, const Made& before, Make make) {
  Effect effect;
  for (size_t number = 0;; ++number) {
    Config changed = config;
    KeyChange change(key, number);
    describe(change, changed);
    if (!change.is_done()) break;
    effect.is_choice = change.is_choice();
    try {
      ++(are_equal(make(changed), before) ? effect.same : effect.other);
    } catch (const Error&) {
      ++effect.refused;
    }
  }
  return effect;
}

/// The keys of a configuration of which some change has an effect.
template <class Config, class Make>
std::vector<std::string> keys_with_effect(const Config& config, Make make) {
  KeyChange all;
  auto copy = config;
  describe(all, copy);
  const auto before = make(config);
  std::vector<std::string> keys;
  for (const auto& key : all.keys())
    if (effect_of(key, config, before, make).other > 0) keys.push_back(key);
  return keys;
}

}  // namespace zoo::testing
