#include "comparison/kept_json.h"

#include "comparison/report/report_document.h"
#include "io/files.h"

namespace zoo {

Json read_kept(const std::filesystem::path& path, const Json& key) {
  if (!is_there(path)) return nullptr;
  const auto json = Json::parse(read_file(path, Follow::nothing), nullptr, /*allow_exceptions=*/false);
  return member(json, "key") == key ? member(json, "value") : Json();
}

void keep(const std::filesystem::path& path, const Json& key, const Json& value) {
  write_file_atomically(path, Json{{"key", key}, {"value", value}}.dump() + "\n");
}

}  // namespace zoo
