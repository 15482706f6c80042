#pragma once
// The visitor that fills a configuration from a ConfigNode tree.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_tree.h"
#include "io/config/describe.h"

namespace zoo {

class ConfigReader final : public ConfigVisitor {
 public:
  /// `root` must be a map and must outlive the reader.
  explicit ConfigReader(const ConfigNode& root);

  /// Call it after the visit: throws ConfigError for the first key that is not part of the configuration.
  void finish() const;

 protected:
  void leaf(const FieldInfo& field, bool& value) override;
  void leaf(const FieldInfo& field, int64_t& value) override;
  void leaf(const FieldInfo& field, double& value) override;
  void leaf(const FieldInfo& field, std::string& value) override;
  void leaf(const FieldInfo& field, std::vector<int64_t>& value) override;
  void leaf(const FieldInfo& field, std::vector<double>& value) override;
  void leaf(const FieldInfo& field, std::vector<std::string>& value) override;
  void path(const FieldInfo& field, ConfigPath& value) override;
  void paths(const FieldInfo& field, std::vector<ConfigPath>& values) override;
  void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t& index) override;
  void select(const FieldInfo& field, const TypeList& types, Selection& value) override;
  void select(const FieldInfo& field, const TypeList& types, std::vector<Selection>& values) override;
  void structs(const FieldInfo& field, StructList& list) override;
  bool begin_group(const FieldInfo& field) override;
  void end_group() override;
  bool begin_optional(const FieldInfo& field, bool has_value) override;
  bool begin_auto(const FieldInfo& field, bool is_auto) override;

 private:
  struct Group {
    const ConfigNode* node;  // null: not in the file; every key keeps its default
    std::string path;        // dotted; "" at the top
  };
  struct Unknown {
    std::string group, key;
    ConfigPlace place;
  };

  void read_selection(const std::string& path, const ConfigNode& node, const TypeList& types,
                      Selection& value);
  std::string path_of(const FieldInfo& field) const;
  /// Marks the key as known. Returns its value in the file, or null.
  const ConfigNode* find(const FieldInfo& field);
  [[noreturn]] void fail(const FieldInfo& field, const ConfigNode& node, std::string_view expected) const;
  int64_t parse_int(const FieldInfo& field, const ConfigNode& node) const;
  double parse_double(const FieldInfo& field, const ConfigNode& node) const;
  template <class Number>
  Number within_limits(const FieldInfo& field, const ConfigNode& node, Number value) const;
  void collect_unknown(const ConfigNode& node, const std::string& path, std::vector<Unknown>& found) const;
  std::string suggestion(const Unknown& unknown) const;

  std::vector<Group> groups_;
  std::string auto_path_;  // of the last key that accepts `auto`
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> known_;  // group -> its keys
};

/// "> 0", ">= 1", "between 0 and 1"; "" for no limits.
std::string limits_text(const Limits& limits);

}  // namespace zoo
