#include "serving/api/json_form.h"

#include <fmt/format.h>

namespace zoo {
namespace {

const std::string kText = R"("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")";
const std::string kLeaf =
    "(?:" + kText + R"(|-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?|true|false|null))";

/// One or more of `item`, separated.
std::string list_of(const std::string& item) { return fmt::format("{0}(?:, {0})*", item); }

std::string object_of(const std::string& value) {
  return R"(\{(?:)" + list_of(kText + ": " + value) + R"()?\})";
}

}  // namespace

std::string any_json_object() {
  std::string value = kLeaf;
  for (int level = 0; level < 2; ++level)
    value = "(?:" + kLeaf + "|" + object_of(value) + R"(|\[(?:)" + list_of(value) + R"()?\]))";
  return object_of(value);
}

}  // namespace zoo
