#include "pages/page_template.h"

#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zoo {

std::string as_json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string escaped_for_script(std::string_view json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result;
}

std::string escaped_for_html(std::string_view text) {
  static const std::map<char, std::string_view> entities = {
      {'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  const auto valid = nlohmann::json::parse(as_json_text(text)).get<std::string>();
  std::string result;
  for (const char c : valid) {
    const auto found = entities.find(c);
    found == entities.end() ? result += c : result += found->second;
  }
  return result;
}

std::string fill_template(std::string_view source, const std::map<std::string_view, std::string>& parts) {
  std::string page;
  for (size_t at = 0;;) {
    const size_t open = source.find("{{", at);
    page += source.substr(at, open == source.npos ? open : open - at);
    if (open == source.npos) return page;
    const size_t close = source.find("}}", open);
    page += parts.at(source.substr(open + 2, close - open - 2));
    at = close + 2;
  }
}

}  // namespace zoo
