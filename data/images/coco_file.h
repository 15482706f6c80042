#pragma once
// Descriptions of pictures and their objects in COCO's JSON (Lin et al. 2014; https://cocodataset.org,
// "Object Detection"). The file may come from a stranger.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/images/box.h"

namespace zoo {

/// The parts of such a file that are read. Outlines, licences and all other parts are ignored.
struct CocoFile {
  struct Picture {
    int64_t id = 0;
    std::string file_name;          // stays below the directory that it is relative to
    int64_t height = 0, width = 0;  // at least 1
  };
  struct Category {
    int64_t id = 0;
    std::string name;
  };
  struct Annotation {
    int64_t picture = 0, category = 0;  // numbers in the lists below, not ids
    Box box;                            // within its picture, with an area
    double area = 0;                    // of the object; the box's if the file does not say
    bool is_crowd = false;
  };

  std::vector<Picture> pictures;        // in the order of the file
  std::vector<Category> categories;     // in the order of their ids
  std::vector<Annotation> annotations;  // in the order of the file
  /// Annotations that are not in the list, because no part of their box has an area within the picture.
  int64_t n_without_area = 0;
};

/// The most that reading a file may take. COCO's own largest one has 0.45 GB. Outlines are not kept in
/// memory.
inline constexpr int64_t kMostCocoBytes = int64_t{1} << 30;

/// Reads a file. Throws DataError, in one line, for anything but a right description: a text that is not
/// JSON, a section that is no list of objects, a missing or wrong field, an id that is not unique or not
/// known, two categories of one name, no categories, no pictures, a file name that leaves its directory or
/// that no file can have, numbers that are not finite.
CocoFile read_coco(const std::filesystem::path& path);
/// The same for a text, which errors call `name`.
CocoFile parse_coco(std::string_view text, std::string_view name);

}  // namespace zoo
