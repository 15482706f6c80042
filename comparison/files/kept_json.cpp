#include "comparison/files/kept_json.h"

#include <algorithm>

#include "base/error.h"
#include "io/files.h"
#include "io/json_document.h"
#include "pages/report/report_document.h"

namespace zoo {
namespace {

bool is_of(KeptKind kind, const Json& value) {
  switch (kind) {
    case KeptKind::numbers:
      return value.is_object() &&
             std::ranges::all_of(value, [](const Json& v) { return v.is_number() || v.is_null(); });
    case KeptKind::object:
      return value.is_object();
    case KeptKind::list:
      return value.is_array();
    case KeptKind::number:
      return value.is_number();
  }
  return false;
}

}  // namespace

Json read_kept(const std::filesystem::path& path, const Json& key, KeptKind kind) {
  if (!is_there(path)) return nullptr;
  const auto json = ordered_json_or_null(read_json_text(path));
  if (member(json, "key") != key) return nullptr;
  const Json& value = member(json, "value");
  return is_of(kind, value) ? value : Json();
}

void keep(const std::filesystem::path& path, const Json& key, const Json& value) {
  write_file_atomically(path, Json{{"key", key}, {"value", value}}.dump() + "\n");
}

}  // namespace zoo
