#include "io/config/config_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/config/registry.h"
#include "io/config/usual_names.h"

namespace zoo {
namespace {

std::string joined(const std::string& group, std::string_view key) {
  return group.empty() ? std::string(key) : fmt::format("{}.{}", group, key);
}

template <class Number>
std::from_chars_result parse(std::string_view text, Number& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc() && result.ptr != end) result.ec = std::errc::invalid_argument;
  return result;
}

/// inf, -.Inf, .nan and so on, in YAML's spelling and in C's spelling, which std::from_chars reads.
bool is_infinity_or_nan(std::string_view text) {
  const auto lower = ascii_lower(text);
  const size_t word = lower.find_first_not_of("+-.");
  if (word == lower.npos) return false;
  const auto rest = std::string_view(lower).substr(word);
  return rest == "inf" || rest == "infinity" || rest.starts_with("nan");
}

/// The value that somebody means who writes `word`: the one that others call so, or the most similar one.
std::optional<std::string> meant_by(const std::string& word, const std::vector<std::string>& values) {
  constexpr auto other_names =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"rope", "rotary"},
                                                                    {"relative", "t5"},
                                                                    {"absolute", "learned"},
                                                                    {"gpt", "decoder"},
                                                                    {"gpt2", "decoder"},
                                                                    {"llama", "decoder"},
                                                                    {"causal_lm", "language_modeling"},
                                                                    {"bert", "encoder"},
                                                                    {"mlm", "masked_language_modeling"},
                                                                    {"t5", "encoder_decoder"},
                                                                    {"seq2seq", "encoder_decoder"},
                                                                    {"transformer", "encoder_decoder"},
                                                                    {"translation", "text_to_text"},
                                                                    {"classification", "text_classification"},
                                                                    {"ner", "token_classification"},
                                                                    {"detection", "object_detection"},
                                                                    {"swish", "silu"},
                                                                    {"half", "fp16"},
                                                                    {"float16", "fp16"},
                                                                    {"bfloat16", "bf16"},
                                                                    {"float32", "fp32"},
                                                                    {"wsd", "warmup_stable_decay"},
                                                                    {"local", "window"},
                                                                    {"sliding_window", "window"}});
  for (const auto& [name, value] : other_names) {
    if (word == name && std::ranges::find(values, value) != values.end()) return std::string(value);
  }
  return nearest(word, values);
}

bool is_plain_scalar(const ConfigNode& node) {
  return node.kind == ConfigNode::Kind::kScalar && !node.quoted;
}

}  // namespace

std::string limits_text(const Limits& limits) {
  const bool has_min = std::isfinite(limits.min), has_max = std::isfinite(limits.max);
  if (has_min && has_max && !limits.min_excluded)
    return fmt::format("between {} and {}", limits.min, limits.max);
  std::string text;
  if (has_min) text = fmt::format("{} {}", limits.min_excluded ? ">" : ">=", limits.min);
  if (has_min && has_max) text += " and ";
  if (has_max) text += fmt::format("<= {}", limits.max);
  return text;
}

ConfigReader::ConfigReader(const ConfigNode& root) {
  groups_.push_back({&root, ""});
  known_[""];
}

std::string ConfigReader::path_of(const FieldInfo& field) const {
  return joined(groups_.back().path, field.key);
}

const ConfigNode* ConfigReader::find(const FieldInfo& field) {
  const Group& group = groups_.back();
  known_[group.path].emplace(field.key);
  if (!group.node) return nullptr;
  const auto* entry = group.node->find(field.key);
  return entry ? &entry->value : nullptr;
}

void ConfigReader::fail(const FieldInfo& field, const ConfigNode& node, std::string_view expected) const {
  const auto path = path_of(field);
  throw ConfigError(fmt::format("{}: {} must be {}{}, not {}", node.place.text(), path, expected,
                                path == auto_path_ ? " or auto" : "", node.shown()));
}

template <class Number>
Number ConfigReader::within_limits(const FieldInfo& field, const ConfigNode& node, Number value) const {
  if (!field.limits.contain(static_cast<double>(value))) {
    throw ConfigError(fmt::format("{}: {} must be {}, not {}", node.place.text(), path_of(field),
                                  limits_text(field.limits), excerpt(node.text)));
  }
  return value;
}

int64_t ConfigReader::parse_int(const FieldInfo& field, const ConfigNode& node) const {
  if (!is_plain_scalar(node)) fail(field, node, "an integer");
  int64_t value = 0;
  const auto error = parse(node.text, value).ec;
  if (error == std::errc::result_out_of_range) fail(field, node, "an integer of at most 64 bits");
  if (error != std::errc()) {
    // 1e6 and 2.0 are integers too, as long as a double holds them exactly.
    constexpr double largest_exact = 9007199254740992.0;
    double number = 0;
    if (parse(node.text, number).ec != std::errc() || !std::isfinite(number) ||
        number != std::trunc(number)) {
      fail(field, node, "an integer");
    }
    if (std::abs(number) > largest_exact) fail(field, node, "an integer written in digits, or a smaller one");
    value = static_cast<int64_t>(number);
  }
  return within_limits(field, node, value);
}

double ConfigReader::parse_double(const FieldInfo& field, const ConfigNode& node) const {
  if (!is_plain_scalar(node)) fail(field, node, "a number");
  if (is_infinity_or_nan(node.text)) fail(field, node, "a finite number");
  double value = 0;
  const auto error = parse(node.text, value).ec;
  if (error == std::errc::result_out_of_range) fail(field, node, "a number that a double can hold");
  if (error != std::errc()) fail(field, node, "a number");
  return within_limits(field, node, value);
}

void ConfigReader::leaf(const FieldInfo& field, bool& value) {
  const ConfigNode* node = find(field);
  if (!node) return;
  const auto is = [&](std::string_view a, std::string_view b, std::string_view c) {
    return is_plain_scalar(*node) && (node->text == a || node->text == b || node->text == c);
  };
  if (is("true", "True", "TRUE")) {
    value = true;
  } else if (is("false", "False", "FALSE")) {
    value = false;
  } else {
    fail(field, *node, "true or false");
  }
}

void ConfigReader::leaf(const FieldInfo& field, int64_t& value) {
  if (const ConfigNode* node = find(field)) value = parse_int(field, *node);
}

void ConfigReader::leaf(const FieldInfo& field, double& value) {
  if (const ConfigNode* node = find(field)) value = parse_double(field, *node);
}

void ConfigReader::leaf(const FieldInfo& field, std::string& value) {
  const ConfigNode* node = find(field);
  if (!node) return;
  if (node->kind != ConfigNode::Kind::kScalar) fail(field, *node, "a string");
  value = node->text;
}

void ConfigReader::leaf(const FieldInfo& field, std::vector<int64_t>& value) {
  const ConfigNode* node = find(field);
  if (!node) return;
  if (node->kind != ConfigNode::Kind::kList) fail(field, *node, "a list of integers");
  value.clear();
  for (const auto& item : node->items) value.push_back(parse_int(field, item));
}

void ConfigReader::leaf(const FieldInfo& field, std::vector<double>& value) {
  const ConfigNode* node = find(field);
  if (!node) return;
  if (node->kind != ConfigNode::Kind::kList) fail(field, *node, "a list of numbers");
  value.clear();
  for (const auto& item : node->items) value.push_back(parse_double(field, item));
}

void ConfigReader::leaf(const FieldInfo& field, std::vector<std::string>& value) {
  const ConfigNode* node = find(field);
  if (!node) return;
  if (node->kind == ConfigNode::Kind::kScalar) {
    value = {node->text};
    return;
  }
  if (node->kind != ConfigNode::Kind::kList) fail(field, *node, "a list of strings");
  value.clear();
  for (const auto& item : node->items) {
    if (item.kind != ConfigNode::Kind::kScalar) fail(field, item, "a list of strings");
    value.push_back(item.text);
  }
}

void ConfigReader::path(const FieldInfo& field, ConfigPath& value) {
  leaf(field, value.text);
  if (const ConfigNode* node = find(field)) value.beside = node->place.directory();
}

void ConfigReader::paths(const FieldInfo& field, std::vector<ConfigPath>& values) {
  const ConfigNode* node = find(field);
  if (!node) return;
  std::vector<std::string> texts;
  leaf(field, texts);
  values.clear();
  for (auto& text : texts) values.emplace_back(std::move(text));
  for (auto& value : values) value.beside = node->place.directory();
}

void ConfigReader::choice(const FieldInfo& field, std::span<const std::string_view> names, size_t& index) {
  const ConfigNode* node = find(field);
  if (!node) return;
  const auto at = std::find(names.begin(), names.end(), node->text);
  if (node->kind == ConfigNode::Kind::kScalar && at != names.end()) {
    index = static_cast<size_t>(at - names.begin());
    return;
  }
  std::string problem = fmt::format("{}: {} must be one of {}, not {}", node->place.text(), path_of(field),
                                    fmt::join(names, ", "), node->shown());
  const std::vector<std::string> candidates(names.begin(), names.end());
  if (const auto meant = meant_by(node->text, candidates))
    problem += fmt::format("; did you mean '{}'?", *meant);
  throw ConfigError(problem);
}

void ConfigReader::read_selection(const std::string& path, const ConfigNode& node, const TypeList& types,
                                  Selection& value) {
  const auto names = types.names();
  const auto* const entry = node.is_map() ? node.find("type") : nullptr;
  if (node.is_map() && !entry) {
    throw ConfigError(fmt::format("{}: {} has no type: add `type:` with one of {}", node.place.text(), path,
                                  fmt::join(names, ", ")));
  }
  const ConfigNode& name = entry ? entry->value : node;
  const auto found = std::ranges::find(names, name.text);
  if (name.kind != ConfigNode::Kind::kScalar || found == names.end()) {
    std::string problem = fmt::format("{}: {} must be one of {}, not {}", name.place.text(),
                                      entry ? path + ".type" : path, fmt::join(names, ", "), name.shown());
    if (const auto meant = meant_by(name.text, names)) problem += fmt::format("; did you mean '{}'?", *meant);
    throw ConfigError(problem);
  }
  const auto& info = *types.infos()[static_cast<size_t>(found - names.begin())];
  std::shared_ptr<TypeOptions> options;
  if (value.type == info.name && value.options) {
    options = value.options->copy();
  } else if (info.make_options) {
    options = info.make_options();
  }
  known_[path] = {"type"};
  groups_.push_back({node.is_map() ? &node : nullptr, path});
  if (options) options->visit(*this);
  groups_.pop_back();
  value.type = info.name;
  value.options = options;
  std::vector<Unknown> unknown;
  collect_unknown(node, path, unknown);
  if (unknown.empty()) return;
  throw ConfigError(fmt::format("{}: unknown key '{}' of the type {}{}", unknown.front().place.text(),
                                excerpt(unknown.front().key, 200), info.name, suggestion(unknown.front())));
}

void ConfigReader::select(const FieldInfo& field, const TypeList& types, Selection& value) {
  if (const ConfigNode* node = find(field)) read_selection(path_of(field), *node, types, value);
}

void ConfigReader::select(const FieldInfo& field, const TypeList& types, std::vector<Selection>& values) {
  const ConfigNode* node = find(field);
  if (!node) return;
  if (node->kind != ConfigNode::Kind::kList) {
    values.resize(1);
    return read_selection(path_of(field), *node, types, values.front());
  }
  if (node->items.empty() && field.list_size == ListSize::at_least_one)
    fail(field, *node, "one type or a list that is not empty");
  values.clear();
  for (size_t i = 0; i < node->items.size(); ++i) {
    values.emplace_back();
    read_selection(fmt::format("{}[{}]", path_of(field), i), node->items[i], types, values.back());
  }
}

void ConfigReader::structs(const FieldInfo& field, StructList& list) {
  const ConfigNode* node = find(field);
  if (!node) return;
  constexpr std::string_view expected = "a list of groups of keys, as in [{key: value}]";
  if (node->kind != ConfigNode::Kind::kList) fail(field, *node, expected);
  list.resize(0);
  for (size_t i = 0; i < node->items.size(); ++i) {
    const auto& item = node->items[i];
    if (!item.is_map()) fail(field, item, expected);
    const auto path = fmt::format("{}[{}]", path_of(field), i);
    known_[path];
    list.resize(i + 1);
    groups_.push_back({&item, path});
    list.visit(i, *this);
    groups_.pop_back();
    std::vector<Unknown> unknown;
    collect_unknown(item, path, unknown);
    if (!unknown.empty()) {
      throw ConfigError(fmt::format("{}: unknown key '{}' in {}{}", unknown.front().place.text(),
                                    excerpt(unknown.front().key, 200), path, suggestion(unknown.front())));
    }
  }
}

bool ConfigReader::begin_group(const FieldInfo& field) {
  const ConfigNode* node = find(field);
  // "generation:" with everything below it commented out is an empty group.
  if (node && !node->is_map() && !node->is_null()) fail(field, *node, "a group of keys");
  std::string path = path_of(field);
  known_[path];
  groups_.push_back({node && node->is_map() ? node : nullptr, std::move(path)});
  return true;
}

void ConfigReader::end_group() { groups_.pop_back(); }

bool ConfigReader::begin_optional(const FieldInfo& field, bool has_value) {
  const ConfigNode* node = find(field);
  if (!node) return has_value;
  return !node->is_null() && !(is_plain_scalar(*node) && node->text == "auto");
}

bool ConfigReader::begin_auto(const FieldInfo& field, bool is_auto) {
  auto_path_ = path_of(field);
  const ConfigNode* node = find(field);
  if (!node) return is_auto;
  return is_plain_scalar(*node) && node->text == "auto";
}

void ConfigReader::collect_unknown(const ConfigNode& node, const std::string& path,
                                   std::vector<Unknown>& found) const {
  const auto known = known_.find(path);
  if (known == known_.end()) return;  // the value of a key, or an optional group that is absent
  for (const auto& [key, entry] : node.entries) {
    if (known->second.contains(key)) {
      collect_unknown(entry.value, joined(path, key), found);
    } else {
      found.push_back({path, key, entry.place});
    }
  }
}

std::string ConfigReader::suggestion(const Unknown& unknown) const {
  const bool in_file = unknown.place.line > 0;
  const auto said = [&](const std::string& group, const std::string& key) {
    // Within its own group of a file the bare key is enough; --set and other groups need the whole path.
    return fmt::format("; did you mean '{}'?", in_file && group == unknown.group ? key : joined(group, key));
  };
  const std::string whole = joined(unknown.group, unknown.key);
  if (const size_t dot = whole.rfind('.'); dot != whole.npos) {
    const auto group = known_.find(whole.substr(0, dot));
    if (group != known_.end() && group->second.contains(whole.substr(dot + 1))) {
      return "; in a file, write groups as nested keys, not with dots";
    }
  }
  const auto& siblings = known_.at(unknown.group);
  const auto near = nearest(unknown.key, std::vector<std::string>(siblings.begin(), siblings.end()));
  if (near && edit_distance(*near, unknown.key) <= 1) return said(unknown.group, *near);
  for (const auto& [group, keys] : known_) {
    if (keys.contains(unknown.key)) return said(group, unknown.key);
  }
  if (const auto usual = key_called(unknown.key)) {
    const std::string group(usual->substr(0, usual->rfind('.'))), key(usual->substr(usual->rfind('.') + 1));
    const auto known = known_.find(group);
    if (known != known_.end() && known->second.contains(key)) return said(group, key);
  }
  if (near) return said(unknown.group, *near);
  for (const auto& [group, keys] : known_) {
    const auto elsewhere = nearest(unknown.key, std::vector<std::string>(keys.begin(), keys.end()));
    if (elsewhere && edit_distance(*elsewhere, unknown.key) <= 1) return said(group, *elsewhere);
  }
  std::vector<std::string> names(siblings.begin(), siblings.end());
  constexpr size_t few = 12;
  if (names.empty() || names.size() > few) return "; 'zoo config' lists every key";
  return fmt::format("; known here: {}", fmt::join(names, ", "));
}

void ConfigReader::finish() const {
  std::vector<Unknown> found;
  collect_unknown(*groups_.front().node, "", found);
  if (found.empty()) return;
  const auto order = [](const Unknown& u) { return std::tuple(u.place.line, u.place.column); };
  const auto& first = *std::min_element(found.begin(), found.end(),
                                        [&](const auto& a, const auto& b) { return order(a) < order(b); });
  const auto hint = suggestion(first);
  // A key that is like none of ours: the file may be anything but a configuration.
  if (first.place.named_by_file && first.group.empty() && !hint.starts_with("; did you mean"))
    throw ConfigError(fmt::format("{}: unknown key{}", first.place.text(), hint));
  throw ConfigError(fmt::format("{}: unknown key '{}'{}", first.place.text(),
                                excerpt(joined(first.group, first.key), 200), hint));
}

}  // namespace zoo
