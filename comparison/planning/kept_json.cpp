#include "comparison/planning/kept_json.h"

#include "io/files.h"
#include "io/json_document.h"
#include "pages/tables/report_document.h"

namespace zoo {

Json read_kept(const std::filesystem::path& path, const Json& key) {
  if (!is_there(path)) return nullptr;
  const auto json = ordered_json_or_null(read_json_text(path));
  return member(json, "key") == key ? member(json, "value") : Json();
}

void keep(const std::filesystem::path& path, const Json& key, const Json& value) {
  write_file_atomically(path, json_text(Json{{"key", key}, {"value", value}}) + "\n");
}

}  // namespace zoo
