#include "experiments/own_files.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/stored_model.h"
#include "data/directory.h"
#include "data/tables.h"
#include "experiments/own_examples.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "tasks/experiment.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The top-level keys of a configuration.
std::set<std::string, std::less<>> top_level_keys() {
  std::set<std::string, std::less<>> keys = {"extends"};
  const Experiment defaults;
  for (const auto& value : flatten(defaults)) keys.insert(value.key.substr(0, value.key.find('.')));
  return keys;
}

/// Whether each line that is not indented begins with a key of a configuration, and there is one.
bool looks_like_configuration(std::string_view text) {
  const auto keys = top_level_keys();
  bool any = false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const auto line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty() || std::string_view(" \t\r#-]}").find(line.front()) != std::string_view::npos) continue;
    const size_t colon = line.find(':');
    if (colon == line.npos || !keys.contains(line.substr(0, colon))) return false;
    any = true;
  }
  return any;
}

/// Throws DataError for a file of JSON that is data.
void check_json(const fs::path& path) {
  constexpr size_t beginning = 1 << 16;
  const MappedFile file(path);
  const auto text = without_byte_order_mark(file.bytes());
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return;
  const auto advice = [&](std::string_view problem) {
    throw DataError(fmt::format("{}: {}", path.string(), problem));
  };
  if (text[first] == '[')
    advice(
        fmt::format("a list of records is read as one record a line: jq -c '.[]' {0} > {0}l", path.string()));
  if (text.substr(0, beginning).find("\"annotations\"") != text.npos)
    advice(
        "boxes in COCO's form train a model by a configuration with task: object_detection and data.train: "
        "this "
        "file (docs/data.md has one)");
}

}  // namespace

bool is_own_text(const fs::path& path) {
  if (is_own_pictures(path)) return true;
  if (!has_file(path)) return false;
  if (has_extension(path, {".json"})) check_json(path);
  if (has_extension(path, {".yaml", ".yml", ".json"})) return false;
  if (is_table(path)) return true;
  // A text by its name is not opened to see whether weights are in it.
  if (!has_extension(path, {".txt", ".text", ".md"}) && is_stored_model(path)) return false;
  constexpr size_t longest_configuration = 1 << 16;
  std::error_code ignored;
  if (fs::file_size(path, ignored) > longest_configuration) return true;
  const MappedFile file(path);
  return !looks_like_configuration(without_byte_order_mark(file.bytes()));
}

bool are_own_texts(const std::vector<fs::path>& files) {
  if (files.size() == 1) return is_own_text(files.front());
  std::error_code ignored;
  for (const auto& file : files) {
    if (fs::exists(file, ignored) && !is_own_text(file))
      throw UsageError(
          fmt::format("{} is no text: give one configuration, or any number of texts", file.string()));
  }
  return true;
}

std::vector<fs::path> with_texts_of_folder(const std::vector<fs::path>& files) {
  if (files.size() != 1 || !has_directory(files.front()) || is_stored_model(files.front())) return files;
  const auto& folder = files.front();
  const auto of_kind = [&](std::initializer_list<std::string_view> endings) {
    return list_files(folder, [=](const fs::path& name) { return has_extension(name, endings); }).files;
  };
  if (!of_kind({".png", ".jpg", ".jpeg", ".webp"}).empty()) return files;
  if (auto texts = of_kind({".txt", ".text"}); !texts.empty()) return texts;
  if (!of_kind({".wav", ".flac"}).empty())
    throw DataError(fmt::format(
        "{}: recordings alone say nothing of what is spoken: write a table with the columns audio "
        "and text (docs/speech.md), and a configuration with task: speech_recognition",
        folder.string()));
  return files;
}

}  // namespace zoo
