#include "apps/arguments/images.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "data/images/image_file.h"
#include "data/text/corpus.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The PNG and JPEG files of a directory in the order of their names. Throws DataError if there are none.
std::vector<std::string> images_in(const fs::path& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (is_image_name(entry->path())) files.push_back(entry->path().string());
  if (error) throw DataError(fmt::format("cannot read '{}': {}", directory.string(), error.message()));
  if (files.empty()) throw DataError(fmt::format("{}: no PNG or JPEG images", directory.string()));
  std::ranges::sort(files);
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
      .add_option("--image", images,
                  "Images to classify, PNG or JPEG, or directories of such; may be repeated")
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
  std::string content{std::istreambuf_iterator<char>(std::cin), {}};
  if (without_blanks_at_end(content).empty())
    throw DataError("standard input is empty: write the path of one image per line, or give --image FILE");
  add_listed(std::move(content), "standard input", files);
  return files;
}

}  // namespace zoo
