#include "pages/page_template.h"

#include <iterator>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/json_document.h"

namespace zoo {

std::string as_json_text(const nlohmann::ordered_json& json) { return shown_json(json); }

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
  const auto valid = parse_json(as_json_text(text)).get<std::string>();
  std::string result;
  for (const char c : valid) {
    const auto found = entities.find(c);
    found == entities.end() ? result += c : result += found->second;
  }
  return result;
}

std::string filled_page(std::string_view page, std::string_view title, std::string_view data) {
  // The first places only: texts and programs behind them may have such marks, too.
  constexpr std::string_view title_mark = "{{title}}", data_mark = "{{data}}";
  const size_t title_at = page.find(title_mark), data_at = page.find(data_mark);
  std::string result(page.substr(0, title_at));
  result += escaped_for_html(title);
  result += page.substr(title_at + title_mark.size(), data_at - title_at - title_mark.size());
  result += escaped_for_script(data);
  result += page.substr(data_at + data_mark.size());
  return result;
}

}  // namespace zoo
