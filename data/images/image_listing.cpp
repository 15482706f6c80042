#include "data/images/image_listing.h"

#include <fmt/format.h>

#include "data/directory.h"
#include "data/images/image_file.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

std::string kind_of(const fs::path& path) {
  if (!has_file(path)) return "no file";
  return path.has_extension() ? path.extension().string() : "no extension";
}

void add_images_of(const fs::path& directory, ImageListing& listing) {
  for (const auto& name : names_in(directory)) {
    if (name.string().starts_with('.')) continue;
    const auto path = directory / name;
    std::error_code ignored;
    if (fs::is_directory(fs::symlink_status(path, ignored))) {
      add_images_of(path, listing);
    } else if (is_image_name(name) && has_file(path)) {
      listing.files.push_back(path);
    } else {
      ++listing.skipped[kind_of(path)];
    }
  }
}

}  // namespace

std::optional<std::string> ImageListing::skipped_text() const {
  if (skipped.empty()) return std::nullopt;
  int64_t n = 0;
  std::string kinds;
  for (const auto& [kind, count] : skipped) {
    n += count;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
  }
  return fmt::format("{} other file{} left out: {}", n, n == 1 ? "" : "s", kinds);
}

ImageListing list_images(const fs::path& directory) {
  ImageListing listing;
  add_images_of(directory, listing);
  return listing;
}

}  // namespace zoo
