#include "io/config/config_file.h"

#include <utility>

#include <fmt/format.h>

#include "io/config/config_reader.h"
#include "io/config/config_tree.h"

namespace zoo {
namespace {

/// Calls `visit` with the entry of each key along `dotted`, as far as the tree has them. Returns whether it
/// has all of them.
template <class Visit>
bool walk(const ConfigNode& root, std::string_view dotted, Visit visit) {
  const ConfigNode* node = &root;
  while (true) {
    const size_t dot = dotted.find('.');
    const auto* entry = node->find(dotted.substr(0, dot));
    if (!entry) return false;
    visit(*entry);
    if (dot == dotted.npos) return true;
    node = &entry->value;
    dotted.remove_prefix(dot + 1);
  }
}

/// Makes the places in a tree those of its source as a whole.
void forget_lines(ConfigNode& node) {
  node.place.line = 0;
  for (auto& item : node.items) forget_lines(item);
  for (auto& [key, entry] : node.entries) {
    entry.place.line = 0;
    forget_lines(entry.value);
  }
}

}  // namespace

ConfigFile ConfigFile::load(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return {path.string(), load_config_tree(path), overrides};
}

ConfigFile ConfigFile::load_complete(const std::filesystem::path& path) {
  return {path.string(), load_complete_config_tree(path), {}};
}

ConfigFile ConfigFile::parse(std::string_view text, std::string_view name,
                             const std::vector<std::string>& overrides) {
  return {std::string(name), parse_config_tree(text, name), overrides};
}

ConfigFile ConfigFile::parse_made(std::string_view text, std::string_view name,
                                  const std::vector<std::string>& overrides) {
  auto root = parse_config_tree(text, name);
  forget_lines(root);
  return {std::string(name), std::move(root), overrides};
}

ConfigFile ConfigFile::from_tree(std::string name, ConfigNode root,
                                 const std::vector<std::string>& overrides) {
  return {std::move(name), std::move(root), overrides};
}

ConfigFile::ConfigFile(std::string name, ConfigNode root, const std::vector<std::string>& overrides)
    : name_(std::move(name)) {
  for (const auto& text : overrides) apply_override(root, text);
  root_ = std::make_shared<const ConfigNode>(std::move(root));
}

void ConfigFile::fail(std::string_view key, std::string_view problem) const {
  std::string place = name_;
  const bool whole = walk(*root_, key, [&](const ConfigNode::Entry& entry) { place = entry.place.text(); });
  if (whole) walk(*root_, key, [&](const ConfigNode::Entry& entry) { place = entry.value.place.text(); });
  const bool names_key = key.empty() || problem.starts_with(key);
  throw ConfigError(names_key ? fmt::format("{}: {}", place, problem)
                              : fmt::format("{}: {} {}", place, key, problem));
}

bool ConfigFile::sets(std::string_view key) const {
  bool null = true;
  return walk(*root_, key, [&](const ConfigNode::Entry& entry) { null = entry.value.is_null(); }) && !null;
}

bool ConfigFile::sets_itself(std::string_view key) const {
  const ConfigNode* value = nullptr;
  if (!walk(*root_, key, [&](const ConfigNode::Entry& entry) { value = &entry.value; })) return false;
  const auto& place = value->place;
  return !value->is_null() && !value->is_map() && (!place.directory() || *place.source == name_);
}

std::unique_ptr<ConfigVisitor> ConfigFile::make_reader() const {
  return std::make_unique<ConfigReader>(*root_);
}

void ConfigFile::finish(const ConfigVisitor& reader) const {
  static_cast<const ConfigReader&>(reader).finish();
}

Complain complain_under(std::string prefix, const Complain& complain) {
  return [prefix = std::move(prefix), &complain](std::string_view key, std::string_view problem) {
    complain(fmt::format("{}.{}", prefix, key), problem);
  };
}

}  // namespace zoo
