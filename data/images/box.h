#pragma once
// Objects in pictures, by their boxes.

#include <cstdint>
#include <optional>
#include <string>

namespace zoo {

/// In pixels: the upper left corner, and the size.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// An object of a picture, as people have marked it.
struct AnnotatedObject {
  int64_t image = 0, category = 0;
  Box box;
  double area = 0;  // of the object; small, medium and large are told apart by it
  /// Marks a group: any number of detections within it are neither right nor wrong.
  bool is_crowd = false;
};

/// An object that a model has found.
struct DetectedObject {
  int64_t image = 0, category = 0;
  Box box;
  double score = 0;  // from 0 to 1
};

/// An object that a model has found in one picture, for people.
struct LabelledBox {
  std::string label;
  double score = 0;  // from 0 to 1
  Box box;
  std::optional<int64_t> query = {};  // the model's object query that suggests it, from 0, if it has queries
};

}  // namespace zoo
