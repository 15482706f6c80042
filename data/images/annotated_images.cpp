#include "data/images/annotated_images.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/images/coco_file.h"
#include "data/images/image_file.h"
#include "io/file_kind.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The directories in which the pictures of a description are looked for.
std::vector<fs::path> places_of(const fs::path& description) {
  constexpr std::string_view prefix = "instances_";
  const auto here = description.parent_path();
  std::vector<fs::path> places{here, here / "images"};
  const auto stem = description.stem().string();
  if (stem.starts_with(prefix)) places.push_back(here / ".." / stem.substr(prefix.size()));
  return places;
}

/// The place that has the first picture. Throws DataError if none has it.
fs::path directory_of(const CocoFile& coco, const fs::path& description) {
  std::string names;
  for (const auto& place : places_of(description)) {
    if (has_file(place / coco.pictures.front().file_name)) return place;
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", place.lexically_normal().string());
  }
  throw DataError(fmt::format("{}: no '{}' in {}", description.string(),
                              excerpt(coco.pictures.front().file_name), names));
}

/// The number of each category among the labels, or none.
std::vector<std::optional<int64_t>> label_numbers(const CocoFile& coco,
                                                  const std::vector<std::string>& labels) {
  std::unordered_map<std::string_view, int64_t> number_of;
  for (const auto& label : labels) number_of.emplace(label, &label - labels.data());
  std::vector<std::optional<int64_t>> numbers;
  for (const auto& category : coco.categories) {
    const auto found = number_of.find(category.name);
    numbers.push_back(found == number_of.end() ? std::nullopt : std::optional(found->second));
  }
  return numbers;
}

/// The COCO file that a name leads to. Throws DataError for data of another kind.
fs::path coco_path(const ConfigPath& name) {
  const auto path = data_file_or_directory(name);
  if (!has_extension(path, {".json"})) {
    throw DataError(
        fmt::format("{}: pictures with objects are read from a COCO file (NAME.json)", path.string()));
  }
  return path;
}

}  // namespace

Image AnnotatedImages::image(int64_t index) const {
  return read_of_set(index, size(), [&](int64_t i) { return read(i); });
}

Image AnnotatedImages::read(int64_t index) const {
  const auto& picture = at(index);
  Image image = read_image(picture.file, Follow::links, n_channels_, transparency_);
  if (image.shape.height != picture.shape.height || image.shape.width != picture.shape.width) {
    throw DataError(fmt::format("{}: has {} x {} pixels, but is described as {} x {}", picture.file.string(),
                                image.shape.width, image.shape.height, picture.shape.width,
                                picture.shape.height));
  }
  return image;
}

void AnnotatedImages::add_coco(const CocoFile& coco, const fs::path& path,
                               const std::vector<std::string>& labels) {
  const auto directory = directory_of(coco, path);
  const auto numbers = label_numbers(coco, labels);
  const int64_t first = size();
  for (const auto& picture : coco.pictures) {
    pictures_.push_back(
        {.file = directory / picture.file_name,
         .shape = {.channels = n_channels_, .height = picture.height, .width = picture.width}});
  }
  for (const auto& annotation : coco.annotations) {
    const auto number = numbers[static_cast<size_t>(annotation.category)];
    if (!number) {
      throw UnknownSymbolError(
          fmt::format("the category '{}' does not occur in the training data",
                      excerpt(coco.categories[static_cast<size_t>(annotation.category)].name)));
    }
    const int64_t index = first + annotation.picture;
    pictures_[static_cast<size_t>(index)].objects.push_back({.image = index,
                                                             .category = *number,
                                                             .box = annotation.box,
                                                             .area = annotation.area,
                                                             .is_crowd = annotation.is_crowd});
  }
}

void AnnotatedImages::keep(const std::vector<int64_t>& indices) {
  std::vector<Picture> kept;
  for (const int64_t index : indices) {
    kept.push_back(at(index));
    for (auto& object : kept.back().objects) object.image = std::ssize(kept) - 1;
  }
  pictures_ = std::move(kept);
}

std::vector<DescribedPictures> read_descriptions(const DataConfig& config, Split split) {
  std::vector<DescribedPictures> descriptions;
  for (const auto& name : files_to_read(config, split)) {
    const auto path = coco_path(name);
    descriptions.push_back({.path = path, .content = read_coco(path)});
  }
  return descriptions;
}

std::vector<std::string> categories_of(const std::vector<DescribedPictures>& descriptions) {
  std::vector<std::string> names;
  std::unordered_set<std::string> known;
  for (const auto& description : descriptions) {
    for (const auto& category : description.content.categories)
      if (known.insert(category.name).second) names.push_back(category.name);
  }
  return names;
}

RowsBySplit<AnnotatedImages> marked_images(const DataConfig& config, const std::vector<std::string>& labels,
                                           std::vector<DescribedPictures> train) {
  auto read = [config, labels, train = std::move(train)](Split split) mutable {
    const bool is_read = !train.empty() && (split == Split::train || is_shared(config, split));
    const auto descriptions = is_read ? std::exchange(train, {}) : read_descriptions(config, split);
    AnnotatedImages images(config.images.channels, config.images.transparency);
    for (const auto& [path, coco] : descriptions) images.add_coco(coco, path, labels);
    return images;
  };
  const auto part = [config](const AnnotatedImages& all, Split split) {
    auto images = all;
    images.keep(random_share(config, split, images.size()));
    return images;
  };
  const auto check = [config](const AnnotatedImages& images, Split split) {
    if (images.size() == 0)
      throw DataError(fmt::format("{}: no images for {}", corpus_name(config, split), name_of(split)));
  };
  return {config, {.read = std::move(read), .part = part, .check = check}};
}

}  // namespace zoo
