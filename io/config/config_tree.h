#pragma once
// The YAML tree behind a ConfigFile. Every node records its file, line and column; yaml-cpp's own nodes lose
// them when trees are merged. Only config_tree.cpp includes yaml-cpp.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// Where a key or a value was written.
struct ConfigPlace {
  std::shared_ptr<const std::string> source;  // the file, or the override as it was given
  int line = 0;                               // from 1; 0: the source as a whole
  int column = 0;                             // from 1, in characters
  /// Whether another file named this one. It may then be any file, so an error that shows that it is no
  /// configuration gives the place, but not the text.
  bool named_by_file = false;

  /// "file:line:column", or only the source.
  std::string text() const;
  /// The directory of the file; none for an override.
  std::optional<std::filesystem::path> directory() const;
};

struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  ConfigPlace place;
  std::string text;     // of a scalar
  bool quoted = false;  // a quoted scalar is always a string
  std::vector<ConfigNode> items;
  std::map<std::string, Entry, std::less<>> entries;

  bool is_null() const { return kind == Kind::kNull; }
  bool is_map() const { return kind == Kind::kMap; }
  /// The entry of a map, or null.
  const Entry* find(std::string_view key) const;
  /// A description for messages: "'abc'", "a list", "a group of keys", "null".
  std::string shown() const;
};

struct ConfigNode::Entry {
  ConfigPlace place;  // of the key
  ConfigNode value;
};

/// About the number of values in a node, itself included; long texts count more than once.
size_t cost_of(const ConfigNode& node);

/// Deeper nesting is an error, also in dotted keys.
inline constexpr int kMaxConfigDepth = 64;

/// Reads a file and the files that it extends. The result is a map. The top-level key `name` of an extended
/// file is left out, because it names that file's own run. `named_at`: where another file names this one;
/// null if the user does. Throws ConfigError.
ConfigNode load_config_tree(const std::filesystem::path& path, const ConfigPlace* named_at = nullptr);

/// Reads the configuration of a run, which is complete: `extends` is an error. The run may come from a
/// stranger, so links are not followed. Throws ConfigError.
ConfigNode load_complete_config_tree(const std::filesystem::path& path);

/// The same from text. Messages use `name` as the name of the file, in whose directory `extends` looks first.
ConfigNode parse_config_tree(std::string_view text, std::string_view name);

/// Merges a map with the files that its `extends` names, and removes `extends`. The map's own keys win. For
/// maps that are configurations within another file. Throws ConfigError.
ConfigNode resolve_extends(ConfigNode map);

/// Merges two maps key by key, where `over` wins. Otherwise `over` replaces `base`.
void merge_config_trees(ConfigNode& base, ConfigNode over);

/// A map in which `dotted` leads to `value`. Throws ConfigError, at the value's place, for an empty name.
ConfigNode nested_config_tree(std::string_view dotted, ConfigNode value);

/// Applies `dotted.key=value` to a map. Throws ConfigError.
void apply_override(ConfigNode& root, std::string_view override_text);

}  // namespace zoo
