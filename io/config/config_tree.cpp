#include "io/config/config_tree.h"

#include <algorithm>
#include <istream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/error.h"
#include "base/text.h"
#include "io/config/find_config.h"
#include "io/files.h"

namespace zoo {
namespace {

/// A text to parse, and how its places are named.
struct Source {
  std::shared_ptr<const std::string> name;
  bool numbered = true;        // places have lines and columns
  bool named_by_file = false;  // see ConfigPlace

  ConfigPlace place(int line = 0, int column = 0) const { return {name, line, column, named_by_file}; }
};

Source source_of(std::string name) { return {.name = std::make_shared<const std::string>(std::move(name))}; }

constexpr size_t kMaxBytes = 4 << 20;
/// Of one file. Nested aliases can grow without end: "a: &a [...], b: &b [*a, *a, …]".
constexpr size_t kMaxCost = 100'000;
constexpr size_t kMaxExtended =
    1'000'000;  // of all files that one configuration extends, each time they are merged

[[noreturn]] void fail_at(const ConfigPlace& place, std::string_view problem) {
  throw ConfigError(fmt::format("{}: {}", place.text(), problem));
}

int depth_of(const ConfigNode& node) {
  int depth = 0;
  for (const auto& item : node.items) depth = std::max(depth, depth_of(item));
  for (const auto& [key, entry] : node.entries) depth = std::max(depth, depth_of(entry.value));
  return depth + 1;
}

/// Builds a ConfigNode from the parser's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, Source source) : text_(text), source_(std::move(source)) {
    line_starts_.push_back(0);
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_starts_.push_back(i + 1);
    }
  }

  ConfigNode take_root() { return std::move(root_); }

  ConfigPlace place(const YAML::Mark& mark) {
    if (!source_.numbered || mark.is_null()) return source_.place();
    // The parser counts bytes in a line, but messages count characters. Counting continues from the last
    // place, so that a long line is not counted again for every value.
    const auto line = std::min(static_cast<size_t>(mark.line), line_starts_.size() - 1);
    const size_t at = byte_of(mark);
    if (line != counted_.line || at < counted_.byte) counted_ = {line, line_starts_[line], 0};
    for (; counted_.byte < at; ++counted_.byte) {
      counted_.characters += (static_cast<unsigned char>(text_[counted_.byte]) & 0xC0) != 0x80;
    }
    return source_.place(static_cast<int>(line) + 1, counted_.characters + 1);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail_at(place(mark), "a second YAML document starts here; keep one per file");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    ConfigNode node;
    node.place = place(mark);
    add(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    ConfigNode node;
    node.kind = ConfigNode::Kind::kScalar;
    node.place = place(mark);
    node.text = value;
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (node.quoted) check_closed(mark);
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      fail_at(place(mark), "an alias must not be inside the value that it refers to");
    ConfigNode node = found->second;
    if (static_cast<int>(open_.size()) + depth_of(node) > kMaxConfigDepth) fail_too_deep(mark);
    add(std::move(node), 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    ConfigNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;  // of a map: a key was read and its value comes next
    std::string key;
    ConfigPlace key_place;
  };

  [[noreturn]] void fail_too_deep(const YAML::Mark& mark) {
    fail_at(place(mark), fmt::format("nested deeper than {} levels", kMaxConfigDepth));
  }

  size_t byte_of(const YAML::Mark& mark) const {
    const auto line = std::min(static_cast<size_t>(mark.line), line_starts_.size() - 1);
    return std::min(line_starts_[line] + static_cast<size_t>(mark.column), text_.size());
  }

  /// Without a closing quote, yaml-cpp takes the rest of the file, including later keys, as the string.
  void check_closed(const YAML::Mark& mark) {
    size_t at = byte_of(mark);
    constexpr std::string_view blanks = " \t\r\n";
    while (at < text_.size() && (text_[at] == '&' || text_[at] == '!')) {  // the node's anchor and tag
      at = text_.find_first_not_of(blanks, text_.find_first_of(blanks, at));
    }
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return;
    const char quote = text_[at];
    for (size_t i = at + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        const bool doubled = quote == '\'' && i + 1 < text_.size() && text_[i + 1] == quote;
        if (!doubled) return;
        ++i;
      }
    }
    fail_at(place(mark), "the quote that opens here is never closed");
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    const bool standard = tag.empty() || tag == "?" || tag == "!" || tag.starts_with("tag:yaml.org,2002:");
    if (!standard)
      fail_at(place(mark), fmt::format("the YAML tag{} means nothing here; remove it", quoted(tag)));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, ConfigNode::Kind kind) {
    check_tag(mark, tag);
    if (static_cast<int>(open_.size()) >= kMaxConfigDepth) fail_too_deep(mark);
    if (!open_.empty() && open_.back().node.is_map() && !open_.back().has_key) {
      fail_at(place(mark), "a key must be a word, not a list or a group; is a closing bracket missing?");
    }
    Open frame;
    frame.anchor = anchor;
    frame.node.kind = kind;
    frame.node.place = place(mark);
    open_.push_back(std::move(frame));
  }

  void close() {
    Open frame = std::move(open_.back());
    open_.pop_back();
    add(std::move(frame.node), frame.anchor);
  }

  void charge(const ConfigPlace& where, size_t cost) {
    cost_ += cost;
    if (cost_ > kMaxCost) {
      fail_at(where,
              fmt::format("more than {} values (an alias counts as the value that it refers to)", kMaxCost));
    }
  }

  void add(ConfigNode node, YAML::anchor_t anchor) {
    // A closed group adds only its own cost: its content has been counted already, except through aliases.
    const bool leaf = node.kind == ConfigNode::Kind::kNull || node.kind == ConfigNode::Kind::kScalar;
    charge(node.place, leaf ? cost_of(node) : 1);
    if (anchor != 0) {
      charge(node.place, cost_of(node));
      anchors_[anchor] = node;
    }
    attach(std::move(node));
  }

  void attach(ConfigNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (!parent.node.is_map()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.kind != ConfigNode::Kind::kScalar) fail_at(node.place, "a key must be a word");
      const auto* earlier = parent.node.find(node.text);
      if (earlier) {
        fail_at(node.place,
                fmt::format("duplicate key{} (first set {})", quoted(node.text),
                            source_.numbered ? fmt::format("in line {}", earlier->place.line) : "before"));
      }
      parent.has_key = true;
      parent.key = std::move(node.text);
      parent.key_place = node.place;
    } else {
      if (node.is_null()) node.place = parent.key_place;  // the parser is already past it
      parent.has_key = false;
      parent.node.entries.emplace(std::move(parent.key),
                                  ConfigNode::Entry{std::move(parent.key_place), std::move(node)});
      parent.key.clear();
    }
  }

  /// " 'text'", where it may be shown.
  std::string quoted(const std::string& text) const {
    return source_.named_by_file ? "" : fmt::format(" '{}'", excerpt(text));
  }

  std::string_view text_;
  Source source_;
  std::vector<size_t> line_starts_;
  struct {
    size_t line = 0, byte = 0;
    int characters = 0;
  } counted_;  // the last place that was computed
  std::vector<Open> open_;
  std::map<YAML::anchor_t, ConfigNode> anchors_;
  ConfigNode root_;
  size_t cost_ = 0;
  int documents_ = 0;
};

YAML::Mark mark_at(std::string_view text, size_t byte) {
  YAML::Mark mark;
  const auto before = text.substr(0, byte);
  mark.pos = static_cast<int>(byte);
  mark.line = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const size_t line_break = before.rfind('\n');
  mark.column = static_cast<int>(line_break == before.npos ? byte : byte - line_break - 1);
  return mark;
}

/// Parses any YAML value; an empty text gives null.
ConfigNode parse_yaml(std::string_view text, const Source& source) {
  if (text.size() > kMaxBytes) {
    fail_at(source.place(),
            fmt::format("larger than {} MiB, too large for a configuration", kMaxBytes >> 20));
  }
  text = without_byte_order_mark(text);
  TreeBuilder builder(text, source);
  if (const auto bad = find_invalid_utf8(text)) {
    fail_at(builder.place(mark_at(text, *bad)), "not valid UTF-8; save the file as UTF-8");
  }
  // yaml-cpp takes U+0004 for the end of the file and would silently drop the rest.
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F;
  });
  if (control != text.end()) {
    const auto at = static_cast<size_t>(control - text.begin());
    fail_at(builder.place(mark_at(text, at)), "a control character, which YAML does not allow");
  }
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    fail_at(builder.place(error.mark), source.named_by_file
                                           ? std::string("not valid YAML")
                                           : fmt::format("not valid YAML: {}", excerpt(error.msg)));
  }
  return builder.take_root();
}

/// Parses a configuration, which is a map. An empty text gives an empty map.
ConfigNode parse_map(std::string_view text, const Source& source) {
  ConfigNode map = parse_yaml(text, source);
  if (map.is_null()) {
    map.kind = ConfigNode::Kind::kMap;
    map.place = source.place();
  }
  if (!map.is_map()) {
    fail_at(map.place, fmt::format("a configuration is a group of keys at the top{}",
                                   source.named_by_file ? "" : ", not " + map.shown()));
  }
  return map;
}

/// Reads each file once and follows `extends`.
class Loader {
 public:
  /// `asked_by`: where another file names this one; null if the user does.
  ConfigNode load(const std::filesystem::path& path, const ConfigPlace* asked_by) {
    std::error_code ignored;
    const auto identity = std::filesystem::weakly_canonical(path, ignored).string();
    if (std::find(chain_.begin(), chain_.end(), identity) != chain_.end()) {
      std::string names;
      for (const auto& name : chain_names_) names += name + " extends ";
      fail_at(*asked_by, "files extend each other in a circle: " + names + path.string());
    }
    if (const auto known = done_.find(identity); known != done_.end()) return known->second;
    if (chain_.size() >= static_cast<size_t>(kMaxConfigDepth))
      fail_at(*asked_by, "extends: the chain is too long");

    std::string text;
    try {
      text = read_file(path, asked_by ? Follow::links : Follow::everything, kMaxBytes);
    } catch (const DataError& error) {
      if (!asked_by) throw ConfigError(error.what());
      fail_at(*asked_by, fmt::format("extends: {}", error.what()));
    }
    chain_.push_back(identity);
    chain_names_.push_back(path.string());
    Source source = source_of(path.string());
    source.named_by_file = asked_by != nullptr;
    ConfigNode tree = resolve(parse_map(text, source));
    chain_.pop_back();
    chain_names_.pop_back();
    return done_.emplace(identity, std::move(tree)).first->second;
  }

  ConfigNode resolve(ConfigNode own) {
    const auto extends = own.entries.extract("extends");
    if (extends.empty()) return own;

    ConfigNode merged;
    merged.kind = ConfigNode::Kind::kMap;
    const ConfigNode& bases = extends.mapped().value;
    for (const auto& base : bases.kind == ConfigNode::Kind::kList ? bases.items : std::vector{bases}) {
      if (base.kind != ConfigNode::Kind::kScalar || base.text.empty()) {
        fail_at(base.place, fmt::format("extends must be a file or a list of files, not {}", base.shown()));
      }
      ConfigNode tree = load(find_base(base), &base.place);
      extended_ += cost_of(tree);
      if (extended_ > kMaxExtended)
        fail_at(base.place,
                fmt::format("extends: the files have more than {} values together", kMaxExtended));
      // Otherwise the run of this configuration would have the name, and take the place, of the base's run.
      tree.entries.erase("name");
      merge_config_trees(merged, std::move(tree));
    }
    merged.place = own.place;
    merge_config_trees(merged, std::move(own));
    return merged;
  }

 private:
  static std::filesystem::path find_base(const ConfigNode& base) {
    try {
      return find_config(ConfigPath(base.text, base.place.directory().value_or("")));
    } catch (const ConfigError& error) {
      fail_at(base.place, fmt::format("extends: {}", error.what()));
    }
  }

  std::vector<std::string> chain_;        // the files being read: each extends the next
  std::vector<std::string> chain_names_;  // the same files, named as the user would write them
  std::map<std::string, ConfigNode> done_;
  size_t extended_ = 0;
};

}  // namespace

std::string ConfigPlace::text() const {
  const std::string name = source ? excerpt(*source, 300) : "";
  return line > 0 ? fmt::format("{}:{}:{}", name, line, column) : name;
}

std::optional<std::filesystem::path> ConfigPlace::directory() const {
  if (!source || line == 0) return std::nullopt;
  return std::filesystem::path(*source).parent_path();
}

size_t cost_of(const ConfigNode& node) {
  size_t cost = 1 + node.text.size() / 64;
  for (const auto& item : node.items) cost += cost_of(item);
  for (const auto& [key, entry] : node.entries) cost += 1 + key.size() / 64 + cost_of(entry.value);
  return cost;
}

const ConfigNode::Entry* ConfigNode::find(std::string_view key) const {
  const auto at = entries.find(key);
  return at == entries.end() ? nullptr : &at->second;
}

std::string ConfigNode::shown() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a group of keys";
    case Kind::kScalar:
      return quoted ? fmt::format("the string \"{}\"", excerpt(text)) : fmt::format("'{}'", excerpt(text));
  }
  return {};
}

ConfigNode load_config_tree(const std::filesystem::path& path, const ConfigPlace* named_at) {
  return Loader().load(path, named_at);
}

ConfigNode load_complete_config_tree(const std::filesystem::path& path) {
  std::string text;
  try {
    text = read_file(path, Follow::nothing, kMaxBytes);
  } catch (const DataError& error) {
    throw ConfigError(error.what());
  }
  auto tree = parse_map(text, source_of(path.string()));
  if (const auto* extends = tree.find("extends"))
    fail_at(extends->place, "the configuration of a run is complete and extends no other: remove this key");
  return tree;
}

ConfigNode parse_config_tree(std::string_view text, std::string_view name) {
  return Loader().resolve(parse_map(text, source_of(std::string(name))));
}

ConfigNode resolve_extends(ConfigNode map) { return Loader().resolve(std::move(map)); }

void merge_config_trees(ConfigNode& base, ConfigNode over) {
  if (!base.is_map() || !over.is_map()) {
    base = std::move(over);
    return;
  }
  for (auto& [key, entry] : over.entries) {
    const auto [at, added] = base.entries.try_emplace(key);
    at->second.place = entry.place;
    if (added) {
      at->second.value = std::move(entry.value);
    } else {
      merge_config_trees(at->second.value, std::move(entry.value));
    }
  }
}

ConfigNode nested_config_tree(std::string_view dotted, ConfigNode value) {
  const ConfigPlace place = value.place;
  std::vector<std::string> keys(1);
  for (const char c : dotted) {
    if (c == '.') {
      keys.emplace_back();
    } else {
      keys.back() += c;
    }
  }
  if (std::find(keys.begin(), keys.end(), "") != keys.end() || find_invalid_utf8(dotted)) {
    fail_at(place, "the key must be names joined by dots, such as model.n_layers");
  }
  if (keys.size() > static_cast<size_t>(kMaxConfigDepth)) {
    fail_at(place, fmt::format("nested deeper than {} levels", kMaxConfigDepth));
  }
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    ConfigNode group;
    group.kind = ConfigNode::Kind::kMap;
    group.place = place;
    group.entries.emplace(std::move(*key), ConfigNode::Entry{place, std::move(value)});
    value = std::move(group);
  }
  return value;
}

void apply_override(ConfigNode& root, std::string_view override_text) {
  Source source = source_of("--set " + excerpt(override_text));
  source.numbered = false;
  const ConfigPlace place = source.place();
  const size_t equals = override_text.find('=');
  if (equals == override_text.npos) fail_at(place, "write it as KEY=VALUE, such as model.n_layers=4");
  ConfigNode change = parse_yaml(override_text.substr(equals + 1), source);
  change.place = place;
  merge_config_trees(root, nested_config_tree(override_text.substr(0, equals), std::move(change)));
}

}  // namespace zoo
