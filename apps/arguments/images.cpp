#include "apps/arguments/images.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "apps/arguments/standard_input.h"
#include "base/error.h"
#include "data/directory.h"
#include "data/images/image_file.h"
#include "data/text/corpus.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The PNG and JPEG files of a directory in the order of their names. Throws DataError if there are none.
std::vector<std::string> images_in(const fs::path& directory) {
  std::vector<std::string> files;
  for (const auto& name : names_in(directory))
    if (is_image_name(name)) files.push_back((directory / name).string());
  if (files.empty()) throw DataError(fmt::format("{}: no PNG or JPEG images", directory.string()));
  return files;
}

/// Adds the paths that a text lists, one a line; `name` is what errors call the text.
void add_listed(std::string content, std::string_view name, std::vector<std::string>& files) {
  for (auto& line : lines_of_text(std::move(content), name))
    if (!line.empty()) files.push_back(std::move(line));
}

}  // namespace

void add_images(CLI::App& command, std::vector<fs::path>& images) {
  command
      .add_option("--image", images, "Images to read, PNG or JPEG, or directories of such; may be repeated")
      ->option_text("PATH ...");
}

std::vector<std::string> image_files(const std::vector<fs::path>& images,
                                     const std::vector<fs::path>& lists) {
  std::vector<std::string> files;
  for (const auto& path : images) {
    if (!has_directory(path)) {
      files.push_back(path.string());
      continue;
    }
    auto found = images_in(path);
    files.insert(files.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  for (const auto& list : lists) add_listed(read_file(list), list.string(), files);
  if (!images.empty() || !lists.empty()) return files;
  add_listed(standard_input("write the path of one image per line, or give --image FILE"), "standard input",
             files);
  return files;
}

}  // namespace zoo
