// Configurations as YAML: the resolved dump, and the annotated reference.

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "io/config/config_file.h"
#include "io/config/config_reader.h"
#include "io/config/config_reference.h"
#include "io/config/owned_keys.h"
#include "io/config/registry.h"
#include "io/config/yaml_text.h"
#include "io/text_width.h"

namespace zoo {
namespace {

/// Whether YAML 1.1 and YAML 1.2 readers both read the unquoted `text` as this string.
bool is_plain(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || !(letter(text[0]) || text[0] == '_' || text[0] == '/')) return false;
  for (const char c : text) {
    const bool safe =
        letter(c) || (c >= '0' && c <= '9') || std::string_view("_-./+").find(c) != std::string_view::npos;
    if (!safe) return false;
  }
  const auto lower = ascii_lower(text);
  for (const std::string_view word :
       {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan"}) {
    if (lower == word) return false;
  }
  return true;
}

std::string yaml(const std::string& text) {
  if (is_plain(text)) return text;
  if (find_invalid_utf8(text)) {
    throw ConfigError(
        fmt::format("'{}' is not valid UTF-8 and cannot be written to a configuration", excerpt(text)));
  }
  std::string out = "\"";
  for (const char32_t c : decode_utf8(text)) {
    const bool unprintable = c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF;
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '"' || c == '\\') {
      out += {'\\', static_cast<char>(c)};
    } else if (unprintable) {
      out += fmt::format("\\u{:04X}", static_cast<uint32_t>(c));
    } else {
      out += encode_utf8({&c, 1});
    }
  }
  return out + '"';
}

std::string yaml(bool value) { return value ? "true" : "false"; }
std::string yaml(int64_t value) { return fmt::format("{}", value); }

/// The shortest digits that read back as the same double. They contain a point, because YAML 1.1 readers take
/// 1e-05 for a string.
std::string yaml(double value) {
  if (!std::isfinite(value)) {
    throw std::logic_error("a configuration holds only finite numbers; use an optional for 'none'");
  }
  std::string text = fmt::format("{}", value);
  if (text.find('.') == text.npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

template <class T>
std::string yaml(const std::vector<T>& values) {
  std::string out = "[";
  for (const auto& value : values) out += (out.size() > 1 ? ", " : "") + yaml(value);
  return out + "]";
}

/// The keys of a type on one line.
class FlowWriter final : public ConfigVisitor {
 public:
  std::string text;

 protected:
  void leaf(const FieldInfo& field, bool& value) override { add(field, yaml(value)); }
  void leaf(const FieldInfo& field, int64_t& value) override { add(field, yaml(value)); }
  void leaf(const FieldInfo& field, double& value) override { add(field, yaml(value)); }
  void leaf(const FieldInfo& field, std::string& value) override { add(field, word(value)); }
  void leaf(const FieldInfo& field, std::vector<int64_t>& value) override { add(field, yaml(value)); }
  void leaf(const FieldInfo& field, std::vector<double>& value) override { add(field, yaml(value)); }
  void leaf(const FieldInfo& field, std::vector<std::string>& value) override { add(field, yaml(value)); }
  void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t& index) override {
    add(field, word(std::string(names[index])));
  }
  void select(const FieldInfo& field, const TypeList&, Selection& value) override {
    add(field, to_text(value));
  }
  void select(const FieldInfo& field, const TypeList&, std::vector<Selection>& values) override {
    add(field, list_of(values));
  }
  void structs(const FieldInfo& field, StructList& list) override { add(field, list_of(list)); }
  bool begin_group(const FieldInfo& field) override {
    add(field, "{");
    first_ = true;
    return true;
  }
  void end_group() override {
    text += "}";
    first_ = false;
  }
  bool begin_optional(const FieldInfo& field, bool has_value) override {
    if (!has_value) add(field, "null");
    optional_ = has_value;
    return has_value;
  }
  bool begin_auto(const FieldInfo& field, bool is_auto) override {
    if (is_auto) add(field, "auto");
    return is_auto;
  }

 public:
  static std::string list_of(const std::vector<Selection>& values) {
    if (values.size() == 1) return to_text(values.front());
    std::string out = "[";
    for (const auto& value : values) out += (out.size() > 1 ? ", " : "") + to_text(value);
    return out + "]";
  }
  static std::string list_of(StructList& list) {
    std::string out = "[";
    for (size_t i = 0; i < list.size(); ++i) {
      FlowWriter keys;
      keys.first_ = true;
      list.visit(i, keys);
      out += (i > 0 ? ", {" : "{") + keys.text + "}";
    }
    return out + "]";
  }

 private:
  /// In an optional the bare word auto would mean that it is absent.
  std::string word(const std::string& value) const {
    return optional_ && value == "auto" ? "\"auto\"" : yaml(value);
  }
  void add(const FieldInfo& field, const std::string& value) {
    optional_ = false;
    text += fmt::format("{}{}: {}", std::exchange(first_, false) ? "" : ", ", field.key, value);
  }
  bool first_ = false;     // whether the next key is the first of its group
  bool optional_ = false;  // whether the next value belongs to an optional
};

class Dumper final : public detail::ConfigText {
 public:
  std::string text() const override { return out_.empty() ? "{}\n" : out_; }

 protected:
  /// Keys that the selected types do not use are left out.
  bool wants(const FieldInfo& field) override { return selected_.own(field); }
  void leaf(const FieldInfo& field, bool& value) override { line(field, yaml(value)); }
  void leaf(const FieldInfo& field, int64_t& value) override { line(field, yaml(value)); }
  void leaf(const FieldInfo& field, double& value) override { line(field, yaml(value)); }
  void leaf(const FieldInfo& field, std::string& value) override { word(field, value); }
  void leaf(const FieldInfo& field, std::vector<int64_t>& value) override { line(field, yaml(value)); }
  void leaf(const FieldInfo& field, std::vector<double>& value) override { line(field, yaml(value)); }
  void leaf(const FieldInfo& field, std::vector<std::string>& value) override { line(field, yaml(value)); }

  void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t& index) override {
    word(field, std::string(names[index]));
  }

  void select(const FieldInfo& field, const TypeList& types, Selection& value) override {
    selected_.note(types, value);
    line(field, to_text(value));
  }
  void select(const FieldInfo& field, const TypeList&, std::vector<Selection>& values) override {
    line(field, FlowWriter::list_of(values));
  }
  void structs(const FieldInfo& field, StructList& list) override { line(field, FlowWriter::list_of(list)); }

  bool begin_group(const FieldInfo& field) override {
    optional_ = false;
    out_ += fmt::format("{:{}}{}:\n", "", indent(), field.key);
    starts_.push_back(out_.size());
    return true;
  }

  void end_group() override {
    const bool empty = out_.size() == starts_.back();
    starts_.pop_back();
    if (empty) out_.insert(out_.size() - 1, " {}");
  }

  bool begin_optional(const FieldInfo& field, bool has_value) override {
    if (!has_value) line(field, "null");
    optional_ = has_value;
    return has_value;
  }

  bool begin_auto(const FieldInfo& field, bool is_auto) override {
    if (is_auto) line(field, "auto");
    return is_auto;
  }

 private:
  size_t indent() const { return 2 * starts_.size(); }

  void word(const FieldInfo& field, const std::string& value) {
    // For an optional, the bare word auto means absent. So "auto" is quoted if it is the value.
    line(field, optional_ && value == "auto" ? "\"auto\"" : yaml(value));
  }

  void line(const FieldInfo& field, const std::string& value) {
    optional_ = false;
    out_ += fmt::format("{:{}}{}: {}\n", "", indent(), field.key, value);
  }

  SelectedTypes selected_;
  std::string out_;
  std::vector<size_t> starts_;  // where the lines of each open group begin
  bool optional_ = false;       // the next value belongs to an optional
};

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    if (lines.empty() || width_of(lines.back()) + 1 + width_of(word) > width) {
      lines.emplace_back(word);
    } else {
      lines.back().append(" ").append(word);
    }
  }
  return lines;
}

class ReferenceWriter final : public detail::ConfigText {
 public:
  /// Of one key, or of a group, only. Empty: of all.
  explicit ReferenceWriter(std::string wanted = "") : wanted_(std::move(wanted)) {}

  std::string text() const override {
    constexpr size_t page = 110, narrowest = 40;
    std::string out;
    for (const Row& row : rows_) {
      if (!is_wanted(row.path)) continue;
      if (row.starts_section && !out.empty()) out += '\n';
      out += row.code;
      const size_t column = std::max(columns_[row.group], width_of(row.code) + 2);
      size_t at = width_of(row.code);
      for (const auto& comment : wrapped(row.comment, page - std::min(column + 2, page - narrowest))) {
        out += fmt::format("{:{}}# {}\n", "", column - at, comment);
        at = 0;
      }
      if (at != 0) out += '\n';
    }
    return out.empty() && wanted_.empty() ? "{}\n" : out;
  }

 protected:
  void leaf(const FieldInfo& field, bool& value) override { add(field, yaml(value), "true or false"); }
  void leaf(const FieldInfo& field, int64_t& value) override { add(field, yaml(value), "integer"); }
  void leaf(const FieldInfo& field, double& value) override { add(field, yaml(value), "number"); }
  void leaf(const FieldInfo& field, std::string& value) override { add(field, yaml(value), "string"); }
  void leaf(const FieldInfo& field, std::vector<int64_t>& value) override {
    add(field, yaml(value), "list of integers");
  }
  void leaf(const FieldInfo& field, std::vector<double>& value) override {
    add(field, yaml(value), "list of numbers");
  }
  void leaf(const FieldInfo& field, std::vector<std::string>& value) override {
    add(field, yaml(value), "list of strings");
  }
  void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t& index) override {
    add(field, yaml(std::string(names[index])), fmt::format("one of {}", fmt::join(names, ", ")));
  }
  void select(const FieldInfo& field, const TypeList& types, Selection& value) override {
    add(field, to_text(value), fmt::format("one of {}", fmt::join(types.names(), ", ")));
    show_types(field, types);
  }
  void select(const FieldInfo& field, const TypeList& types, std::vector<Selection>& values) override {
    add(field, FlowWriter::list_of(values),
        fmt::format("one of {}, or a list of them, repeated in order", fmt::join(types.names(), ", ")));
    show_types(field, types);
  }
  void structs(const FieldInfo& field, StructList& list) override {
    add(field, FlowWriter::list_of(list), "list of groups of the keys below");
    open_.push_back({columns_.size(), true, path_of(field)});
    columns_.push_back(0);
    list.visit_new(*this);
    open_.pop_back();
  }

  bool begin_group(const FieldInfo& field) override {
    const bool absent = std::exchange(absent_, false);
    const bool optional = std::exchange(optional_, false);
    std::string comment(field.doc);
    if (optional) comment += " (group, optional)";
    // The keys of an absent group are commented out, so that the text is still a valid file.
    push_row(field, absent ? "null" : "", comment);
    open_.push_back({columns_.size(), absent || in_absent_group(), path_of(field)});
    columns_.push_back(0);
    return true;
  }

  void end_group() override { open_.pop_back(); }

  bool begin_optional(const FieldInfo&, bool has_value) override {
    optional_ = true;
    absent_ = !has_value;
    return true;
  }

  bool begin_auto(const FieldInfo&, bool is_auto) override {
    or_auto_ = true;
    is_auto_ = is_auto;
    return false;  // visits the value, which shows its type
  }

 private:
  struct Row {
    std::string code, comment;
    size_t group;
    bool starts_section;
    std::string path;  // of the key, dotted
  };
  struct Group {
    size_t column;
    bool commented_out;
    std::string path;
  };

  std::string path_of(const FieldInfo& field) const {
    return open_.empty() ? std::string(field.key) : fmt::format("{}.{}", open_.back().path, field.key);
  }

  /// Whether `path` is the wanted key or group, or belongs to it; "lr" stands for every key of that name.
  bool is_wanted(std::string_view path) const {
    const auto around = fmt::format(".{}.", path);
    return wanted_.empty() || around.find(fmt::format(".{}.", wanted_)) != std::string::npos;
  }

  /// Adds the keys of each type that has any, commented out.
  void show_types(const FieldInfo& field, const TypeList& types) {
    for (const auto* info : types.infos()) {
      if (!info->make_options) continue;
      const auto options = info->make_options();
      FlowWriter keys;
      options->visit(keys);
      if (keys.text.empty()) continue;
      rows_.push_back({fmt::format("{:{}}# {}: {{type: {}, …}}", "", 2 * open_.size(), field.key, info->name),
                       info->doc, open_.empty() ? 0 : open_.back().column, false, path_of(field)});
      open_.push_back({columns_.size(), true, path_of(field)});
      columns_.push_back(0);
      options->visit(*this);
      open_.pop_back();
    }
  }

  bool in_absent_group() const { return !open_.empty() && open_.back().commented_out; }

  void add(const FieldInfo& field, const std::string& value, std::string type) {
    const std::string limits = limits_text(field.limits);
    if (!limits.empty()) type += ", " + limits;
    if (std::exchange(or_auto_, false)) type += ", or auto";
    if (std::exchange(optional_, false)) type += ", optional";
    const bool is_auto = std::exchange(is_auto_, false);
    push_row(field,
             std::exchange(absent_, false) ? "null"
             : is_auto                     ? "auto"
                                           : value,
             fmt::format("{} ({})", field.doc, type));
  }

  void push_row(const FieldInfo& field, std::string_view value, std::string comment) {
    constexpr size_t widest = 44;
    std::string code = fmt::format("{:{}}{}{}:{}{}", "", 2 * open_.size(), in_absent_group() ? "# " : "",
                                   field.key, value.empty() ? "" : " ", value);
    const size_t group = open_.empty() ? 0 : open_.back().column;
    columns_[group] = std::max(columns_[group], std::min(width_of(code), widest) + 2);
    const bool top_level_group = open_.empty() && value.empty();
    rows_.push_back({std::move(code), std::move(comment), group, top_level_group, path_of(field)});
  }

  std::string wanted_;
  std::vector<Row> rows_;
  std::vector<Group> open_;
  std::vector<size_t> columns_ = {0};  // for each group, the column of its comments
  bool optional_ = false, absent_ = false;
  bool or_auto_ = false, is_auto_ = false;
};

}  // namespace

std::string to_text(const Selection& selection) {
  FlowWriter keys;
  if (selection.options) selection.options->copy()->visit(keys);
  return keys.text.empty() ? yaml(selection.type)
                           : fmt::format("{{type: {}{}}}", yaml(selection.type), keys.text);
}

std::string to_text(StructList& list) { return FlowWriter::list_of(list); }

std::unique_ptr<detail::ConfigText> detail::make_dumper() { return std::make_unique<Dumper>(); }
std::unique_ptr<detail::ConfigText> detail::make_reference_writer() {
  return std::make_unique<ReferenceWriter>();
}

std::unique_ptr<detail::ConfigText> make_key_writer(std::string key) {
  return std::make_unique<ReferenceWriter>(std::move(key));
}

std::string yaml_text(const std::string& text) { return yaml(text); }

}  // namespace zoo
