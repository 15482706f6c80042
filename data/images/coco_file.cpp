#include "data/images/coco_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"

namespace zoo {
namespace {

/// A number or a text of an entry, as it stands in the file.
struct Field {
  enum class Kind { absent, number, text, other } kind = Kind::absent;
  double number = 0;
  std::optional<int64_t> whole = {};  // the number, if it is written as an integer
  std::string text = {};
};

/// The members of one picture, category or annotation that are used.
struct Entry {
  Field id, image_id, category_id, width, height, area, iscrowd, file_name, name;
  std::vector<double> bbox;
  bool has_bbox = false;

  /// Null for other members.
  Field* find(std::string_view key) {
    if (key == "id") return &id;
    if (key == "image_id") return &image_id;
    if (key == "category_id") return &category_id;
    if (key == "width") return &width;
    if (key == "height") return &height;
    if (key == "area") return &area;
    if (key == "iscrowd") return &iscrowd;
    if (key == "file_name") return &file_name;
    if (key == "name") return &name;
    return nullptr;
  }
};

enum class Section { other, images, categories, annotations };

Section section_of(std::string_view key) {
  if (key == "images") return Section::images;
  if (key == "categories") return Section::categories;
  if (key == "annotations") return Section::annotations;
  return Section::other;
}

std::string_view entry_name(Section section) {
  return section == Section::images ? "image" : section == Section::categories ? "category" : "annotation";
}

/// An annotation whose picture and category are still ids.
struct RawAnnotation {
  int64_t number, image_id, category_id;
  Box box;
  std::optional<double> area;
  bool is_crowd;
};

/// Receives the parts of the JSON text one after the other, and keeps the fields that are used. The text is
/// never in memory as a tree, which for COCO would take gigabytes.
class Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  /// What the whole text says. Throws DataError.
  CocoFile finish();

  bool null() override {
    check_place(Value::other);
    return other();
  }
  bool boolean(bool value) override { return number(value, static_cast<int64_t>(value)); }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value), value); }
  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return number(static_cast<double>(value),
                  fits ? std::optional(static_cast<int64_t>(value)) : std::nullopt);
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value, std::nullopt); }
  bool string(string_t& value) override {
    check_place(Value::other);
    if (auto* const field = current()) *field = {.kind = Field::Kind::text, .text = std::move(value)};
    if (in_box()) fail("bbox must be four numbers");
    return true;
  }
  bool binary(binary_t&) override { return other(); }
  bool start_object(size_t) override {
    check_place(Value::object);
    if (in_box()) fail("bbox must be four numbers");
    other();
    ++depth_;
    if (depth_ == kEntryDepth) entry_ = {};
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) section_key_ = value;
    if (depth_ == kEntryDepth) key_ = std::move(value);
    return true;
  }
  bool end_object() override {
    if (depth_ == kEntryDepth && section_ != Section::other) take_entry();
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    check_place(Value::list);
    if (in_box()) fail("bbox must be four numbers");
    const bool is_box = depth_ == kEntryDepth && section_ == Section::annotations && key_ == "bbox";
    if (is_box) {
      entry_.has_bbox = true;
      entry_.bbox.clear();
    } else {
      other();
    }
    if (depth_ == 0) fail_file("is a list, not an object");
    ++depth_;
    if (depth_ == 2) section_ = section_of(section_key_);
    in_box_ = is_box;
    return true;
  }
  bool end_array() override {
    in_box_ = false;
    if (depth_ == 2) section_ = Section::other;
    --depth_;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail_file(fmt::format("no JSON at byte {}", position));
  }

 private:
  static constexpr int64_t kEntryDepth = 3;
  enum class Value { list, object, other };

  bool in_box() const { return in_box_; }
  /// Called before each value. The three sections are lists of objects.
  void check_place(Value value) {
    if (depth_ == 1 && value != Value::list && section_of(section_key_) != Section::other)
      fail_file(fmt::format("\"{}\" must be a list", section_key_));
    if (depth_ == 2 && value != Value::object && section_ != Section::other) fail("must be an object, {...}");
  }
  /// The field that the next value is for, or null.
  Field* current() {
    return depth_ == kEntryDepth && section_ != Section::other ? entry_.find(key_) : nullptr;
  }
  bool other() {
    if (auto* const field = current()) *field = {.kind = Field::Kind::other};
    if (in_box()) fail("bbox must be four numbers");
    return true;
  }
  bool number(double value, std::optional<int64_t> whole) {
    check_place(Value::other);
    if (auto* const field = current())
      *field = {.kind = Field::Kind::number, .number = value, .whole = whole};
    if (in_box()) {
      if (entry_.bbox.size() == 4) fail("bbox must be four numbers");
      entry_.bbox.push_back(value);
    }
    return true;
  }

  [[noreturn]] void fail_file(std::string_view problem) const {
    throw DataError(fmt::format("{}: {}", name_, problem));
  }
  /// For the entry that is being read.
  [[noreturn]] void fail(std::string_view problem) const {
    throw DataError(fmt::format("{}: {} {}: {}", name_, entry_name(section_), n_read() + 1, problem));
  }
  size_t n_read() const {
    return section_ == Section::images       ? file_.pictures.size()
           : section_ == Section::categories ? file_.categories.size()
                                             : n_annotations_;
  }
  int64_t whole(const Field& field, std::string_view key) const {
    if (field.kind != Field::Kind::number || !field.whole)
      fail(fmt::format("{} must be a whole number", key));
    return *field.whole;
  }
  const std::string& text(const Field& field, std::string_view key) const {
    if (field.kind != Field::Kind::text || field.text.empty()) fail(fmt::format("{} must be a text", key));
    return field.text;
  }

  void take_entry() {
    if (section_ == Section::images) return take_picture();
    if (section_ == Section::categories) return take_category();
    take_annotation();
  }
  void take_picture() {
    constexpr int64_t longest = int64_t{1} << 20;
    constexpr size_t longest_name = 4095;  // PATH_MAX without its end
    CocoFile::Picture picture{.id = whole(entry_.id, "id"),
                              .file_name = text(entry_.file_name, "file_name"),
                              .height = whole(entry_.height, "height"),
                              .width = whole(entry_.width, "width")};
    if (std::min(picture.height, picture.width) < 1 || std::max(picture.height, picture.width) > longest)
      fail(fmt::format("{} x {} pixels are no picture", picture.width, picture.height));
    if (picture.file_name.size() > longest_name || picture.file_name.find('\0') != std::string::npos)
      fail(fmt::format("file_name '{}' cannot be the name of a file", excerpt(picture.file_name)));
    if (!stays_below(picture.file_name))
      fail(fmt::format("file_name '{}' leaves its directory", excerpt(picture.file_name)));
    if (!picture_of_.emplace(picture.id, file_.pictures.size()).second)
      fail(fmt::format("there is another image with the id {}", picture.id));
    file_.pictures.push_back(std::move(picture));
  }
  void take_category() {
    file_.categories.push_back({.id = whole(entry_.id, "id"), .name = text(entry_.name, "name")});
  }
  void take_annotation() {
    if (!entry_.has_bbox || entry_.bbox.size() != 4) fail("bbox must be four numbers");
    if (!std::ranges::all_of(entry_.bbox, [](double x) { return std::isfinite(x); }))
      fail("bbox has a number that is not finite");
    std::optional<double> area;
    if (entry_.area.kind == Field::Kind::number) {
      area = entry_.area.number;
      if (!std::isfinite(*area) || *area < 0) fail("area must be a number from 0 on");
    } else if (entry_.area.kind != Field::Kind::absent) {
      fail("area must be a number from 0 on");
    }
    const bool says_crowd = entry_.iscrowd.kind != Field::Kind::absent;
    const int64_t crowd = says_crowd ? whole(entry_.iscrowd, "iscrowd") : 0;
    if (crowd != 0 && crowd != 1) fail("iscrowd must be 0 or 1");
    annotations_.push_back({.number = static_cast<int64_t>(++n_annotations_),
                            .image_id = whole_of_annotation(entry_.image_id, "image_id"),
                            .category_id = whole_of_annotation(entry_.category_id, "category_id"),
                            .box = {entry_.bbox[0], entry_.bbox[1], entry_.bbox[2], entry_.bbox[3]},
                            .area = area,
                            .is_crowd = crowd == 1});
  }
  int64_t whole_of_annotation(const Field& field, std::string_view key) {
    if (field.kind != Field::Kind::number || !field.whole) {
      --n_annotations_;  // fail() names the next one
      fail(fmt::format("{} must be a whole number", key));
    }
    return *field.whole;
  }

  void sort_categories();
  void resolve(const RawAnnotation& raw);

  std::string_view name_;
  CocoFile file_;
  std::vector<RawAnnotation> annotations_;
  size_t n_annotations_ = 0;
  std::unordered_map<int64_t, size_t> picture_of_, category_of_;  // by id

  int64_t depth_ = 0;
  std::string section_key_, key_;
  Section section_ = Section::other;
  Entry entry_;
  bool in_box_ = false;
};

void Reader::sort_categories() {
  std::ranges::sort(file_.categories, {}, &CocoFile::Category::id);
  std::set<std::string_view> names;
  for (size_t i = 0; i < file_.categories.size(); ++i) {
    const auto& category = file_.categories[i];
    if (!category_of_.emplace(category.id, i).second)
      fail_file(fmt::format("two categories have the id {}", category.id));
    if (!names.insert(category.name).second)
      fail_file(fmt::format("two categories have the name '{}'", excerpt(category.name)));
  }
}

/// The part of a box within a picture.
Box clipped(const Box& box, const CocoFile::Picture& picture) {
  const double left = std::clamp(box.x, 0.0, static_cast<double>(picture.width)),
               top = std::clamp(box.y, 0.0, static_cast<double>(picture.height)),
               right = std::clamp(box.x + box.width, 0.0, static_cast<double>(picture.width)),
               bottom = std::clamp(box.y + box.height, 0.0, static_cast<double>(picture.height));
  return {.x = left, .y = top, .width = right - left, .height = bottom - top};
}

void Reader::resolve(const RawAnnotation& raw) {
  const auto picture = picture_of_.find(raw.image_id);
  if (picture == picture_of_.end())
    fail_file(fmt::format("annotation {}: there is no image with the id {}", raw.number, raw.image_id));
  const auto category = category_of_.find(raw.category_id);
  if (category == category_of_.end()) {
    fail_file(fmt::format("annotation {}: there is no category with the id {}", raw.number, raw.category_id));
  }
  const Box box = clipped(raw.box, file_.pictures[picture->second]);
  if (box.width <= 0 || box.height <= 0) {
    ++file_.n_without_area;
    return;
  }
  file_.annotations.push_back({.picture = static_cast<int64_t>(picture->second),
                               .category = static_cast<int64_t>(category->second),
                               .box = box,
                               .area = raw.area.value_or(box.width * box.height),
                               .is_crowd = raw.is_crowd});
}

CocoFile Reader::finish() {
  if (file_.pictures.empty()) fail_file("no images: a COCO file has a list \"images\"");
  if (file_.categories.empty()) fail_file("no categories: a COCO file has a list \"categories\"");
  sort_categories();
  for (const auto& raw : annotations_) resolve(raw);
  return std::move(file_);
}

}  // namespace

CocoFile parse_coco(std::string_view text, std::string_view name) {
  Reader reader(name);
  nlohmann::json::sax_parse(text, &reader);
  return reader.finish();
}

CocoFile read_coco(const std::filesystem::path& path) {
  return parse_coco(read_file(path, Follow::links, kMostCocoBytes), path.string());
}

}  // namespace zoo
