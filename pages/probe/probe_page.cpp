#include "pages/probe/probe_page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pages/page_template.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char probe_page[];
}  // namespace embedded

std::string probe_page(const nlohmann::ordered_json& card) {
  const auto title =
      fmt::format("{} {}", card.at("part").get<std::string>(), card.at("name").get<std::string>());
  return filled_page(embedded::probe_page, title, as_json_text(card));
}

}  // namespace zoo
