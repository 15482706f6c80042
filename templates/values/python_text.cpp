#include "templates/values/python_text.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/code_points.h"

namespace zoo::templates {
namespace {

/// Throws Problem if a text is larger than a template may make.
void check_size(const Budget& budget, const std::string& text) {
  if (text.size() > budget.limits().value_bytes) throw Problem("the template makes more text than it may");
}

void append_quoted(std::string_view text, std::string& to) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  to += quote;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      to += '\\';
      to += static_cast<char>(c);
    } else if (c == '\n') {
      to += "\\n";
    } else if (c == '\r') {
      to += "\\r";
    } else if (c == '\t') {
      to += "\\t";
    } else if (is_printable(c)) {
      to += text.substr(begin, at - begin);
    } else if (c < 0x100) {
      to += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      to += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      to += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  to += quote;
}

/// Writes repr(). The depth is limited, because a namespace may hold itself.
class Writer {
 public:
  Writer(Budget& budget, std::string& to) : budget_(budget), to_(to) {}

  void write(const Value& value) {
    budget_.step();
    if (++depth_ > 2 * budget_.limits().value_depth)
      throw Problem("a value is nested too deeply to be shown");
    write_any(value);
    --depth_;
    check_size(budget_, to_);
  }

 private:
  void write_any(const Value& value) {
    require_allowed(value);
    if (value.is_undefined()) {
      to_ += "Undefined";
    } else if (value.is_none()) {
      to_ += "None";
    } else if (const auto* flag = value.as<bool>()) {
      to_ += *flag ? "True" : "False";
    } else if (const auto* whole = value.as<int64_t>()) {
      to_ += std::to_string(*whole);
    } else if (const auto* real = value.as<double>()) {
      to_ += real_text(*real);
    } else if (const auto* text = value.as_text()) {
      budget_.read(text->size());
      if (value.is_markup()) to_ += "Markup(";
      append_quoted(*text, to_);
      if (value.is_markup()) to_ += ')';
    } else if (const auto* dict = value.as_dict()) {
      to_ += '{';
      write_members(dict->members, [this](const Value& key) { write(key); });
      to_ += '}';
    } else if (const auto* name_space = value.as<std::shared_ptr<Namespace>>()) {
      to_ += "<Namespace {";
      write_members((*name_space)->attributes, [this](std::string_view name) { append_quoted(name, to_); });
      to_ += "}>";
    } else {
      write_sequence(value);
    }
  }

  template <class Members, class WriteKey>
  void write_members(const Members& members, const WriteKey& write_key) {
    bool is_first = true;
    for (const auto& [key, value] : members) {
      if (!std::exchange(is_first, false)) to_ += ", ";
      write_key(key);
      to_ += ": ";
      write(value);
    }
  }

  void write_sequence(const Value& value) {
    const auto* const sequence = value.as_sequence();
    if (!sequence || sequence->kind == Kind::generator)
      throw Problem(fmt::format("a value of type {} has no text", type_name(value)));
    const auto& items = sequence->items;
    if (sequence->kind == Kind::range) return write_range(items);
    const bool is_list = sequence->kind == Kind::list, is_tuple = sequence->kind == Kind::tuple;
    to_ += is_list ? "[" : is_tuple ? "(" : type_name(value) + "([";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) to_ += ", ";
      write(items[i]);
    }
    to_ += is_list ? "]" : is_tuple ? (items.size() == 1 ? ",)" : ")") : "])";
  }

  void write_range(const std::vector<Value>& items) {
    if (items.empty()) throw Problem("an empty range has no text");
    const auto at = [&](size_t i) { return *items[i].as<int64_t>(); };
    const int64_t step = items.size() > 1 ? at(1) - at(0) : 1;
    if (step != 1) throw Problem("a range with steps has no text");
    to_ += fmt::format("range({}, {})", at(0), at(items.size() - 1) + 1);
  }

  Budget& budget_;
  std::string& to_;
  int64_t depth_ = 0;
};

// ---- JSON

void append_json_string(const std::string& text, bool ascii, std::string& to) {
  to += nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

std::string json_number(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return real_text(number);
}

/// None, a truth value or a number in JSON; nothing for other values.
std::optional<std::string> json_scalar(const Value& value) {
  if (value.is_none()) return "null";
  if (const auto* flag = value.as<bool>()) return *flag ? "true" : "false";
  if (const auto* number = value.as<int64_t>()) return std::to_string(*number);
  if (const auto* number = value.as<double>()) return json_number(*number);
  return std::nullopt;
}

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style, std::string& to)
      : budget_(budget), style_(style), to_(to) {}

  void write(const Value& value) {
    budget_.step();
    if (const auto scalar = json_scalar(value)) {
      to_ += *scalar;
    } else if (const auto* const text = value.as_text()) {
      budget_.read(text->size());
      append_json_string(*text, style_.ascii, to_);
    } else if (value.is(Kind::list) || value.is(Kind::tuple)) {
      write_all('[', value.as_sequence()->items, ']', [this](const Value& item) { write(item); });
    } else if (const auto* const members = value.as_dict()) {
      write_members(*members);
    } else {
      throw Problem(fmt::format("tojson: JSON has no values of type {}", type_name(value)));
    }
    check_size(budget_, to_);
  }

 private:
  void new_line() {
    if (!style_.indent) return;
    const size_t bytes = style_.indent->size() * static_cast<size_t>(depth_);
    budget_.read(bytes);
    to_ += '\n';
    for (int64_t i = 0; i < depth_; ++i) to_ += *style_.indent;
    check_size(budget_, to_);
  }

  /// What `write_one` writes of each, with commas between them, on lines of their own if the style indents.
  template <class Items, class WriteOne>
  void write_all(char open, const Items& items, char close, const WriteOne& write_one) {
    to_ += open;
    ++depth_;
    bool is_first = true;
    for (const auto& item : items) {
      if (!std::exchange(is_first, false)) to_ += style_.between_items;
      new_line();
      write_one(item);
    }
    --depth_;
    if (!items.empty()) new_line();
    to_ += close;
  }

  std::string key_text(const Value& key) const {
    if (const auto* text = key.as_text()) return *text;
    if (const auto scalar = json_scalar(key)) return *scalar;
    throw Problem(fmt::format("tojson: a key of type {} cannot be one of JSON", type_name(key)));
  }

  void write_members(const Dict& dict) {
    std::vector<std::pair<std::string, const Value*>> members;
    for (const auto& [key, value] : dict.members) members.emplace_back(key_text(key), &value);
    if (style_.sorted) {
      std::ranges::stable_sort(members, {},
                               [](const auto& member) -> const std::string& { return member.first; });
    }
    write_all('{', members, '}', [this](const auto& member) {
      append_json_string(member.first, style_.ascii, to_);
      to_ += style_.after_key;
      write(*member.second);
    });
  }

  Budget& budget_;
  const JsonStyle& style_;
  std::string& to_;
  int64_t depth_ = 0;
};

}  // namespace

std::string real_text(double number) {
  if (std::isnan(number)) return "nan";
  auto text = fmt::format("{}", number);                     // the fewest digits, as repr()
  if (text.find_first_of(".en") == text.npos) text += ".0";  // not "1e+16", not "inf"
  return text;
}

std::string escaped(std::string_view whole) {
  constexpr std::string_view signs = "&<>'\"";
  constexpr const char* names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  std::string result;
  for (const char c : whole) {
    const size_t sign = signs.find(c);
    sign == signs.npos ? result += c : result += names[sign];
  }
  return result;
}

std::string str(Budget& budget, const Value& value) {
  if (const auto* bytes = value.as_text()) return *bytes;
  require_allowed(value);
  return value.is_undefined() ? std::string() : repr(budget, value);
}

std::string repr(Budget& budget, const Value& value) {
  std::string result;
  Writer(budget, result).write(value);
  return result;
}

std::string json_text(Budget& budget, const Value& value, const JsonStyle& style) {
  std::string result;
  JsonWriter(budget, style, result).write(value);
  return result;
}

}  // namespace zoo::templates
