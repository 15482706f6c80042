#pragma once
// Images with their labels: IDX files, directories with a subdirectory for each class, lists of files.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/images/idx_file.h"
#include "data/images/image.h"
#include "data/labels.h"
#include "data/rows_by_split.h"
#include "data/splits.h"
#include "data/tables.h"

namespace zoo {

/// Images of a split, each with its label, or its labels as they are written in a list. Those of IDX files
/// are in memory, others are decoded when they are asked for.
class LabelledImages {
 public:
  explicit LabelledImages(int64_t n_channels, Transparency transparency = Transparency::white)
      : n_channels_(n_channels), transparency_(transparency) {}

  int64_t size() const { return std::ssize(entries_); }
  const std::string& label(int64_t index) const { return at(index).label; }
  /// For people: its file, or its number among the images of an IDX file, from 1 on.
  std::string name(int64_t index) const;
  /// Those of all images.
  std::vector<std::string> labels() const;
  /// Thread-safe. Throws DataError if its file cannot be decoded; it names all files of the set that cannot.
  Image image(int64_t index) const;
  /// Remarks for people: how many files are no images.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Adds the images of an IDX file and the labels of the file that belongs to it. `label_names` as in
  /// ImageConfig. Throws DataError.
  void add_idx(const std::filesystem::path& path, const std::vector<std::string>& label_names);
  /// Adds the images of directory/LABEL/ and of the directories in it, in the order of labels and paths.
  /// Other files are left out, and so are names that begin with a dot. Throws DataError if there are no
  /// images, or parts for training and test (data/images/picture_parts.h) in place of classes.
  void add_directory(const std::filesystem::path& path);
  /// Adds the images of `table`, a list whose file is `path`. Its column of pictures (data/usual_columns.h)
  /// has paths of files in the directory of the list or below it. The labels are as the problem needs them.
  /// Throws DataError.
  void add_list(Table& table, const std::filesystem::path& path, const DataConfig& config, Problem problem);
  /// The same with the texts of a column, the first of `names` that the table has, as labels. Throws
  /// DataError also for a blank text.
  void add_captions(Table& table, const std::filesystem::path& path, const ColumnNames& names);
  /// Keeps the images of these numbers, in this order.
  void keep(const std::vector<int64_t>& indices);
  /// How many there were before some were kept.
  int64_t n_read() const { return std::max(n_read_, size()); }

 private:
  struct Entry {
    std::string label;
    std::filesystem::path file;             // of an image that is decoded
    std::shared_ptr<const IdxArray> array;  // of an image in memory
    int64_t index = 0;                      // in the array
  };
  const Entry& at(int64_t index) const { return entries_.at(static_cast<size_t>(index)); }

  Image read(int64_t index) const;
  /// Adds the picture and the label that are the fields of a row of `list`.
  void add_row(const std::filesystem::path& list, TableRow row);

  int64_t n_channels_;
  Transparency transparency_;
  int64_t n_read_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::string> notes_;
};

/// The images of the splits. If the configuration names no validation files, the share valid_fraction of the
/// training images, drawn at random once and for all, is for validation instead; of each class some image is
/// for training. Throws DataError.
RowsBySplit<LabelledImages> labelled_images(const DataConfig& config,
                                            Problem problem = Problem::single_label);

/// Images with texts, which are their labels: lists with the columns of pictures and of texts
/// (data.text_column, or caption), and what labelled_images() reads, of which the names of classes are the
/// texts. A random share is for validation, likewise. Throws DataError.
RowsBySplit<LabelledImages> captioned_images(const DataConfig& config);

}  // namespace zoo
