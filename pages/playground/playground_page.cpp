#include "pages/playground/playground_page.h"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "io/sha256.h"
#include "pages/page_template.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char playground_page[];
}  // namespace embedded

namespace {

/// The 32 bytes of a SHA-256, given as 64 hexadecimal digits, in base64.
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto value_of = [](char digit) {
    return static_cast<uint32_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  };
  std::string result;
  // Three hexadecimal digits are twelve bits, two digits of base64. 64 of them leave one, of four bits.
  for (size_t i = 0; i < hex.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = i; k < i + 3; ++k) bits = bits << 4U | (k < hex.size() ? value_of(hex[k]) : 0);
    result += digits[bits >> 6U];
    if (i + 1 < hex.size()) result += digits[bits & 63U];
  }
  while (result.size() % 4 != 0) result += '=';
  return result;
}

/// What stands between `begin` and `end`, as the policy names it.
std::string hash_source(std::string_view page, std::string_view begin, std::string_view end) {
  const size_t from = page.find(begin) + begin.size();
  return fmt::format("'sha256-{}'", base64_of_hex(sha256(page.substr(from, page.find(end, from) - from))));
}

PlaygroundPage make_playground_page() {
  const auto html = filled_page(embedded::playground_page, "zoo serve", "{}");
  const auto script = hash_source(html, "<script type=\"module\">", "</script>");
  const auto style = hash_source(html, "<style>", "</style>");
  return {.html = html,
          .content_security_policy = fmt::format(
              "default-src 'none'; script-src {}; style-src {}; img-src data: blob:; media-src blob:; "
              "connect-src 'self'; "
              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
              script, style)};
}

}  // namespace

const PlaygroundPage& playground_page() {
  static const PlaygroundPage page = make_playground_page();
  return page;
}

}  // namespace zoo
