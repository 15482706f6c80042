#include "comparison/kept_json.h"

#include <system_error>

#include "comparison/report/report_document.h"
#include "io/files.h"

namespace zoo {

Json read_kept(const std::filesystem::path& path, const Json& key) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return nullptr;
  const auto json = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  return member(json, "key") == key ? member(json, "value") : Json();
}

void keep(const std::filesystem::path& path, const Json& key, const Json& value) {
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  write_file_atomically(path, Json{{"key", key}, {"value", value}}.dump() + "\n");
}

}  // namespace zoo
