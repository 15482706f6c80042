#pragma once
// Pictures with the objects that people have marked in them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/images/box.h"
#include "data/images/coco_file.h"
#include "data/images/image.h"
#include "data/rows_by_split.h"
#include "data/splits.h"

namespace zoo {

/// Pictures of a split, each with its objects. Pictures are decoded when they are asked for.
class AnnotatedImages {
 public:
  explicit AnnotatedImages(int64_t n_channels, Transparency transparency = Transparency::white)
      : n_channels_(n_channels), transparency_(transparency) {}

  int64_t size() const { return std::ssize(pictures_); }
  /// Thread-safe. Throws DataError if the file cannot be decoded, or has another size than its description
  /// says; it names all files of the set with which something is wrong.
  Image image(int64_t index) const;
  const std::filesystem::path& file(int64_t index) const { return at(index).file; }
  ImageShape shape(int64_t index) const { return at(index).shape; }
  /// The objects of a picture, within it. `category` is a number among the labels, and `image` is `index`.
  const std::vector<AnnotatedObject>& objects(int64_t index) const { return at(index).objects; }

  /// Adds the pictures that a COCO file, which is read, describes. The files are in the directory of the
  /// description, in its directory `images`, or, for COCO's own annotations/instances_NAME.json, in ../NAME.
  /// Throws DataError, UnknownSymbolError for an object of a category that is not among `labels`.
  void add_coco(const CocoFile& coco, const std::filesystem::path& path,
                const std::vector<std::string>& labels);
  /// Keeps the pictures of these numbers, in this order.
  void keep(const std::vector<int64_t>& indices);

 private:
  struct Picture {
    std::filesystem::path file;
    ImageShape shape;
    std::vector<AnnotatedObject> objects = {};
  };
  const Picture& at(int64_t index) const { return pictures_.at(static_cast<size_t>(index)); }

  Image read(int64_t index) const;

  int64_t n_channels_;
  Transparency transparency_;
  std::vector<Picture> pictures_;
};

/// A description of pictures that has been read.
struct DescribedPictures {
  std::filesystem::path path;
  CocoFile content;
};

/// The COCO files (data/images/coco_file.h) that data.train, data.valid or data.test names. Throws DataError.
std::vector<DescribedPictures> read_descriptions(const DataConfig& config, Split split);

/// The names of the categories, in the order of their ids, file after file.
std::vector<std::string> categories_of(const std::vector<DescribedPictures>& descriptions);

/// The pictures of the splits. Without validation files, a part of the training pictures is for validation,
/// as for other images. `train`: the descriptions of the training data if they have been read. Throws
/// DataError.
RowsBySplit<AnnotatedImages> marked_images(const DataConfig& config, const std::vector<std::string>& labels,
                                           std::vector<DescribedPictures> train = {});

}  // namespace zoo
