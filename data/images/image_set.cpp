#include "data/images/image_set.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "data/directory.h"
#include "data/epoch_plan.h"
#include "data/images/image_file.h"
#include "data/images/picture_parts.h"
#include "data/tables.h"
#include "data/text_files.h"
#include "data/usual_columns.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The names in a directory that do not begin with a dot, sorted. Throws DataError.
std::vector<fs::path> visible_names_in(const fs::path& directory) {
  auto names = names_in(directory);
  std::erase_if(names, [](const fs::path& name) { return name.string().starts_with('.'); });
  return names;
}

/// A path that a list names. Where no file is called so, backslashes are those of Windows.
fs::path path_in(const fs::path& directory, std::string field) {
  if (field.find('\\') != field.npos && !has_file(directory / field)) std::ranges::replace(field, '\\', '/');
  return field;
}

/// The numbers of the images of a split that is a random share. Some image of each class is for training.
std::vector<int64_t> share_of_split(const DataConfig& config, Split split,
                                    const std::vector<std::string>& labels) {
  const auto n = std::ssize(labels);
  auto train = random_share(config, Split::train, n), valid = random_share(config, Split::valid, n);
  const auto label = [&](int64_t i) -> const std::string& { return labels[static_cast<size_t>(i)]; };
  std::set<std::string_view> trained;
  for (const int64_t i : train) trained.insert(label(i));
  std::erase_if(valid, [&](int64_t i) {
    const bool is_first = trained.insert(label(i)).second;
    if (is_first) train.push_back(i);
    return is_first;
  });
  std::ranges::sort(train);
  return split == Split::valid ? valid : train;
}

std::string picture_column(Table& table) { return find_picture_column(table.columns()).value_or("image"); }

/// The image in all channels.
void repeat_channel(Image& image, int64_t n_channels) {
  const std::vector<uint8_t> plane = image.pixels;
  for (int64_t c = image.shape.channels; c < n_channels; ++c)
    image.pixels.insert(image.pixels.end(), plane.begin(), plane.end());
  image.shape.channels = n_channels;
}

}  // namespace

std::string LabelledImages::name(int64_t index) const {
  const auto& entry = at(index);
  return entry.array ? fmt::format("picture {}", entry.index + 1) : entry.file.string();
}

std::vector<std::string> LabelledImages::labels() const {
  std::vector<std::string> labels;
  for (const auto& entry : entries_) labels.push_back(entry.label);
  return labels;
}

Image LabelledImages::image(int64_t index) const {
  return read_of_set(index, size(), [&](int64_t i) { return read(i); });
}

Image LabelledImages::read(int64_t index) const {
  const auto& entry = at(index);
  if (!entry.array) return read_image(entry.file, Follow::links, n_channels_, transparency_);
  const int64_t height = entry.array->sizes[1], width = entry.array->sizes[2], n = height * width;
  const auto first = entry.array->values.begin() + entry.index * n;
  Image image{.shape = {.channels = 1, .height = height, .width = width}, .pixels = {first, first + n}};
  repeat_channel(image, n_channels_);
  return image;
}

void LabelledImages::add_idx(const fs::path& path, const std::vector<std::string>& label_names) {
  // The labels are few bytes, so they say how many images to expect.
  const auto labels_path = idx_labels_of(path);
  const IdxArray labels = read_idx(labels_path, 1);
  const auto images = std::make_shared<const IdxArray>(read_idx(path, 3, {.entries = labels.sizes[0]}));
  for (int64_t i = 0; i < labels.sizes[0]; ++i) {
    const size_t label = labels.values[static_cast<size_t>(i)];
    if (!label_names.empty() && label >= label_names.size()) {
      throw DataError(fmt::format("{}: label {} of image {} has no name: data.images.label_names has {}",
                                  labels_path.string(), label, i + 1, label_names.size()));
    }
    entries_.push_back({.label = label_names.empty() ? std::to_string(label) : label_names[label],
                        .file = {},
                        .array = images,
                        .index = i});
  }
}

void LabelledImages::add_directory(const fs::path& path) {
  if (find_picture_parts(path)) {
    throw DataError(
        fmt::format("{}: it has parts for training and test: name them as data.train, data.valid "
                    "and data.test",
                    path.string()));
  }
  const int64_t before = size();
  FileListing skipped;
  std::error_code ignored;
  for (const auto& label : visible_names_in(path)) {
    if (!fs::is_directory(path / label, ignored)) continue;
    auto listing = list_files(path / label, is_image_name);
    for (auto& file : listing.files)
      entries_.push_back({.label = label.string(), .file = std::move(file), .array = nullptr});
    skipped.skipped.merge(listing.skipped);
    for (const auto& [kind, n] : listing.skipped) skipped.skipped[kind] += n;  // those that were not merged
  }
  if (const auto text = skipped.skipped_text()) notes_.push_back(fmt::format("{}: {}", path.string(), *text));
  if (size() == before) {
    throw DataError(fmt::format(
        "{}: no PNG, JPEG or WebP images; there must be a directory for each class, with its images",
        path.string()));
  }
}

void LabelledImages::add_row(const fs::path& list, TableRow row) {
  auto& [line, fields] = row;
  const auto file = path_in(list.parent_path(), fields[0]);
  if (fields[0].empty() || !stays_below(file)) {
    throw DataError(fmt::format("{}:{}: '{}' is no path of a file in the directory of this list",
                                list.string(), line, excerpt(fields[0])));
  }
  entries_.push_back({.label = std::move(fields[1]), .file = list.parent_path() / file, .array = nullptr});
}

void LabelledImages::add_list(Table& table, const fs::path& path, const DataConfig& config, Problem problem) {
  const auto add = [&](TableRow row) {
    add_row(path, row);
    try {
      check_labels(entries_.back().label, problem, config.label_separator);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}:{}: {}", path.string(), row.number, error.what()));
    }
  };
  ColumnUses uses;
  if (problem == Problem::multi_label) uses.lists = {1};
  table.read({{picture_column(table)}, {config.label_column}}, add, uses);
}

void LabelledImages::add_captions(Table& table, const fs::path& path, const ColumnNames& names) {
  table.read({{picture_column(table)}, names}, [&](TableRow row) {
    if (is_blank(row.fields[1]))
      throw DataError(fmt::format("{}:{}: the picture has no text", path.string(), row.number));
    add_row(path, std::move(row));
  });
}

void LabelledImages::keep(const std::vector<int64_t>& indices) {
  std::vector<Entry> kept;
  for (const int64_t index : indices) kept.push_back(at(index));
  n_read_ = n_read();
  entries_ = std::move(kept);
}

namespace {

/// What the tables of a corpus say of a picture.
using AddTable = std::function<void(LabelledImages& images, Table& table, const fs::path& path)>;

/// `column`: of a list, for messages.
LabelledImages read_images(const DataConfig& config, Split split, std::string_view column,
                           const AddTable& add_table) {
  LabelledImages images(config.images.channels, config.images.transparency);
  for (const auto& name : files_to_read(config, split)) {
    const auto path = data_file_or_directory(name);
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      images.add_directory(path);
    } else if (is_table(path)) {
      add_table(images, *open_table(path), path);
    } else if (is_idx_name(path)) {
      images.add_idx(path, config.images.label_names);
    } else {
      throw DataError(
          fmt::format("{}: images are read from a directory with a directory for each class, a list "
                      "(NAME.tsv) with the columns "
                      "image and {}, or an IDX file (NAME-images-idx3-ubyte)",
                      path.string(), column));
    }
  }
  return images;
}

/// The numbers of the images of a split among all.
using ChooseShare = std::function<std::vector<int64_t>(const LabelledImages& all, Split split)>;

RowsBySplit<LabelledImages> images_by_split(const DataConfig& config, const std::string& column,
                                            const AddTable& add_table, const ChooseShare& share) {
  const auto read = [=](Split split) { return read_images(config, split, column, add_table); };
  const auto part = [=](const LabelledImages& all, Split split) {
    auto images = all;
    images.keep(share(images, split));
    return images;
  };
  const auto check = [config](const LabelledImages& images, Split split) {
    if (images.size() > 0) return;
    throw DataError(fmt::format("{}: none of {} images are for {}: give more, or name files as data.valid",
                                corpus_name(config, split), images.n_read(), name_of(split)));
  };
  return {config, {.read = read, .part = part, .check = check}};
}

}  // namespace

RowsBySplit<LabelledImages> labelled_images(const DataConfig& config, Problem problem) {
  const auto add_table = [=](LabelledImages& images, Table& table, const fs::path& path) {
    images.add_list(table, path, config, problem);
  };
  return images_by_split(config, config.label_column, add_table, [=](const LabelledImages& all, Split split) {
    return problem == Problem::single_label ? share_of_split(config, split, all.labels())
                                            : random_share(config, split, all.size());
  });
}

RowsBySplit<LabelledImages> captioned_images(const DataConfig& config) {
  auto names = config.text_column;
  names.emplace_back("caption");
  const auto add_table = [=](LabelledImages& images, Table& table, const fs::path& path) {
    images.add_captions(table, path, names);
  };
  return images_by_split(config, names.front(), add_table, [=](const LabelledImages& all, Split split) {
    return random_share(config, split, all.size());
  });
}

}  // namespace zoo
