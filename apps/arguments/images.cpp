#include "apps/arguments/images.h"

#include <iostream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "apps/arguments/standard_input.h"
#include "base/error.h"
#include "data/files/text_files.h"
#include "data/images/image_listing.h"
#include "data/text/corpus.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The images of a directory. Throws DataError if there are none.
std::vector<std::string> images_in(const fs::path& directory) {
  const auto listing = list_images(directory);
  const auto skipped = listing.skipped_text();
  if (listing.files.empty()) {
    throw DataError(fmt::format("{}: no PNG, JPEG or WebP images{}", directory.string(),
                                skipped ? fmt::format(" ({})", *skipped) : ""));
  }
  if (skipped) std::cerr << fmt::format("note: {}: {}\n", directory.string(), *skipped);
  std::vector<std::string> files;
  for (const auto& file : listing.files) files.push_back(file.string());
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
                  "Images to read (PNG, JPEG, WebP), or directories of such; may be repeated")
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
  for (const auto& list : lists)
    add_listed(read_file(list, Follow::everything, kMostInputBytes), list.string(), files);
  if (!images.empty() || !lists.empty()) return files;
  add_listed(standard_input("write the path of one image per line, or give --image FILE"), "standard input",
             files);
  return files;
}

std::function<void(const std::string&)> UnreadableImages::listener() {
  if (what_ == Unreadable::fail || n_inputs_ == 1) return nullptr;
  return [this](const std::string& problem) { problems_.push_back(problem); };
}

void UnreadableImages::finish() const {
  if (!any()) return;
  for (const auto& problem : problems_) std::cerr << "skipped: " << problem << '\n';
  if (std::ssize(problems_) == n_inputs_)
    throw DataError(fmt::format("none of the {} images can be read", n_inputs_));
  std::cerr << fmt::format("note: {} of {} images skipped\n", problems_.size(), n_inputs_);
}

}  // namespace zoo
