// Pictures with marked objects: COCO files, what is done to pictures and boxes, batches.

#include <array>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "data/images/annotated_image.h"
#include "data/images/annotated_images.h"
#include "data/images/coco_file.h"
#include "data/images/detection_batches.h"
#include "data/images/image_file.h"
#include "data/prefetch.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void expect_box(const Box& box, double x, double y, double width, double height) {
  EXPECT_NEAR(box.x, x, 1e-9);
  EXPECT_NEAR(box.y, y, 1e-9);
  EXPECT_NEAR(box.width, width, 1e-9);
  EXPECT_NEAR(box.height, height, 1e-9);
}

/// A COCO file of one picture of 20 × 10 pixels with the id 7, and the categories cat (9) and dog (4).
std::string coco(const std::string& annotations, const std::string& more = "") {
  return R"({"images": [{"id": 7, "file_name": "a.png", "width": 20, "height": 10}], )"
         R"("categories": [{"id": 9, "name": "cat"}, {"id": 4, "name": "dog", "supercategory": "animal"}], )"
         R"("annotations": [)" +
         annotations + "]" + more + "}";
}

std::string annotation(const std::string& bbox, const std::string& more = "", int64_t category = 9) {
  return fmt::format(R"({{"id": 1, "image_id": 7, "category_id": {}, "bbox": {}{}}})", category, bbox, more);
}

TEST(CocoFile, SaysWhatIsWhere) {
  const auto file = parse_coco(
      coco(annotation("[1, 2, 3.5, 4]") + ", " +
               annotation("[0, 0, 5, 5]",
                          R"(, "area": 12.5, "iscrowd": 1, "segmentation": {"counts": [1, 2], "size": [3]})",
                          4) +
               ", " + annotation("[0, 0, 1, 1]", R"(, "segmentation": [[1, 2, 3, 4]])"),
           R"(, "info": {"year": 2026, "bbox": [1]}, "licenses": [{"id": 7}])"),
      "a.json");
  ASSERT_EQ(file.pictures.size(), 1U);
  EXPECT_EQ(file.pictures.front().file_name, "a.png");
  ASSERT_EQ(file.categories.size(), 2U);
  EXPECT_EQ(file.categories[0].name, "dog");  // in the order of their ids
  ASSERT_EQ(file.annotations.size(), 3U);
  expect_box(file.annotations[0].box, 1, 2, 3.5, 4);
  EXPECT_EQ(file.annotations[0].category, 1);
  EXPECT_EQ(file.annotations[0].area, 14);
  EXPECT_FALSE(file.annotations[0].is_crowd);
  EXPECT_EQ(file.annotations[1].category, 0);
  EXPECT_EQ(file.annotations[1].area, 12.5);
  EXPECT_TRUE(file.annotations[1].is_crowd);
}

TEST(CocoFile, BoxesAreCutAtTheEdgeOfThePicture) {
  const auto file = parse_coco(coco(annotation("[-5, -5, 10, 10]") + ", " + annotation("[15, 5, 100, 100]") +
                                    ", " + annotation("[30, 0, 5, 5]") + ", " + annotation("[1, 1, 0, 5]") +
                                    ", " + annotation("[5, 5, -3, 2]")),
                               "a.json");
  ASSERT_EQ(file.annotations.size(), 2U);
  expect_box(file.annotations[0].box, 0, 0, 5, 5);
  expect_box(file.annotations[1].box, 15, 5, 5, 5);
  EXPECT_EQ(file.n_without_area, 3);
}

TEST(CocoFile, APictureMayHaveNoObjects) { EXPECT_TRUE(parse_coco(coco(""), "a.json").annotations.empty()); }

TEST(CocoFile, BadFilesGetOneLine) {
  const auto problem = [](const std::string& text) {
    return message_of<DataError>([&] { parse_coco(text, "a.json"); });
  };
  const auto with_picture = [](const std::string& picture) {
    return R"({"categories": [{"id": 1, "name": "cat"}], "images": [)" + picture + "]}";
  };
  EXPECT_THAT(problem(""), HasSubstr("a.json: no JSON at byte"));
  EXPECT_THAT(problem(coco(annotation("[1, 2")).substr(0, 150)), HasSubstr("no JSON at byte"));
  EXPECT_THAT(problem("[]"), HasSubstr("a.json: is a list, not an object"));
  EXPECT_THAT(problem("7"), HasSubstr("a.json: no images"));
  EXPECT_THAT(problem("{}"), HasSubstr("a.json: no images: a COCO file has a list \"images\""));
  EXPECT_THAT(problem(R"({"images": [{"id": 1, "file_name": "a", "width": 1, "height": 1}]})"),
              HasSubstr("no categories"));
  EXPECT_THAT(problem(with_picture(R"({"id": "x", "file_name": "a", "width": 1, "height": 1})")),
              HasSubstr("a.json: image 1: id must be a whole number"));
  EXPECT_THAT(problem(with_picture(R"({"id": 1.5, "file_name": "a", "width": 1, "height": 1})")),
              HasSubstr("id must be a whole number"));
  EXPECT_THAT(problem(with_picture(R"({"id": 1, "file_name": "a", "width": 0, "height": 1})")),
              HasSubstr("0 x 1 pixels are no picture"));
  EXPECT_THAT(problem(with_picture(R"({"id": 1, "file_name": "../a", "width": 1, "height": 1})")),
              HasSubstr("file_name '../a' leaves its directory"));
  EXPECT_THAT(problem(with_picture(R"({"id": 1, "file_name": "/a", "width": 1, "height": 1})")),
              HasSubstr("leaves its directory"));
  EXPECT_THAT(problem(with_picture(R"({"id": 1, "file_name": "a\u0000.png", "width": 1, "height": 1})")),
              HasSubstr("image 1: file_name 'a\\x00.png' cannot be the name of a file"));
  EXPECT_THAT(problem(with_picture(fmt::format(R"({{"id": 1, "file_name": "{}", "width": 1, "height": 1}})",
                                               std::string(100'000, 'a')))),
              HasSubstr("cannot be the name of a file"));
  for (const auto* section : {"images", "categories", "annotations"}) {
    EXPECT_THAT(problem(fmt::format(R"({{"{}": {{"id": 1}}}})", section)),
                HasSubstr(fmt::format("a.json: \"{}\" must be a list", section)));
    EXPECT_THAT(problem(fmt::format(R"({{"{}": 7}})", section)), HasSubstr("must be a list"));
    for (const auto* entry : {"7", "\"x\"", "null", "[]"})
      EXPECT_THAT(problem(fmt::format(R"({{"{}": [{}]}})", section, entry)),
                  HasSubstr("1: must be an object"));
  }
  const std::string good = R"({"id": 1, "file_name": "a", "width": 1, "height": 1})";
  EXPECT_THAT(problem(with_picture(good + ", " + good)),
              HasSubstr("image 2: there is another image with the id 1"));
  for (const auto* bbox :
       {"[1, 2, 3]", "[1, 2, 3, 4, 5]", "\"x\"", "[1, 2, 3, \"4\"]", "[[1], 2, 3, 4]", "{}", "7"})
    EXPECT_THAT(problem(coco(annotation(bbox))), HasSubstr("annotation 1: bbox must be four numbers"))
        << bbox;
  EXPECT_THAT(problem(coco(annotation("[1, 2, 3, 1e999]"))), HasSubstr("a.json: "));
  EXPECT_THAT(problem(coco(annotation("[1, 2, 3, 4]", R"(, "area": -1)"))), HasSubstr("area must be"));
  EXPECT_THAT(problem(coco(annotation("[1, 2, 3, 4]", R"(, "iscrowd": 2)"))),
              HasSubstr("iscrowd must be 0 or 1"));
  EXPECT_THAT(problem(coco(annotation("[1, 2, 3, 4]", "", 5))),
              HasSubstr("annotation 1: there is no category with the id 5"));
  EXPECT_THAT(problem(coco(R"({"image_id": 8, "category_id": 9, "bbox": [1, 2, 3, 4]})")),
              HasSubstr("annotation 1: there is no image with the id 8"));
  EXPECT_THAT(problem(coco(R"({"category_id": 9, "bbox": [1, 2, 3, 4]})")),
              HasSubstr("annotation 1: image_id must be a whole number"));
  EXPECT_THAT(problem(R"({"images": [)" + good +
                      R"(], "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}]})"),
              HasSubstr("two categories have the name 'a'"));
  EXPECT_THAT(problem(R"({"images": [)" + good +
                      R"(], "categories": [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]})"),
              HasSubstr("two categories have the id 1"));
  EXPECT_THAT(problem(std::string(1'000'000, '[')), HasSubstr("a.json: "));
}

Image numbered_picture(int64_t height, int64_t width, uint64_t seed) {
  CounterRandom random({seed});
  Image image{.shape = {.channels = 1, .height = height, .width = width}, .pixels = {}};
  for (int64_t i = 0; i < height * width; ++i)
    image.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  return image;
}

AnnotatedObject object_at(double x, double y, double width, double height) {
  return {.category = 1, .box = {.x = x, .y = y, .width = width, .height = height}, .area = width * height};
}

TEST(AnnotatedImage, SizesAreThoseOfDetr) {
  const auto size = [](int64_t height, int64_t width) {
    const auto shape = size_to_fit({.channels = 3, .height = height, .width = width}, 800, 1333);
    return std::array{shape.height, shape.width};
  };
  EXPECT_THAT(size(480, 640), ElementsAre(800, 1066));
  EXPECT_THAT(size(640, 480), ElementsAre(1066, 800));
  EXPECT_THAT(size(100, 1000), ElementsAre(133, 1333));
  EXPECT_THAT(size(800, 800), ElementsAre(800, 800));
  EXPECT_THAT(size(1, 5000), ElementsAre(1, static_cast<int64_t>(1333.0 / 5000 * 5000)));
}

TEST(AnnotatedImage, BoxesFollowTheirPixels) {
  const AnnotatedImage picture{.image = numbered_picture(10, 20, 1),
                               .objects = {object_at(2, 3, 6, 4), object_at(15, 0, 5, 10)}};
  const auto part = cut_out(picture, {.top = 4, .left = 3, .height = 6, .width = 13});
  ASSERT_EQ(part.objects.size(), 1U);  // of the second object, too little is left
  expect_box(part.objects[0].box, 0, 0, 5, 3);
  EXPECT_EQ(part.image.pixels.front(), picture.image.pixels.at(4 * 20 + 3));

  const auto mirrored = flipped(picture);
  expect_box(mirrored.objects[0].box, 12, 3, 6, 4);
  EXPECT_EQ(mirrored.image.pixels.front(), picture.image.pixels.at(19));

  ImageConfig config;
  config.size = 30;
  config.max_size = 50;
  const auto larger = fitted(picture, config);
  EXPECT_EQ(larger.image.shape.height, 25);
  EXPECT_EQ(larger.image.shape.width, 50);
  expect_box(larger.objects[0].box, 5, 7.5, 15, 10);
}

TEST(AnnotatedImage, ChangedPicturesKeepTheirBoxesInside) {
  ImageConfig config;
  config.size = 24;
  config.augment = {.min_crop_area = 0.3, .min_scale = 0.5, .flip = 0.5};
  std::set<int64_t> heights;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CounterRandom random({seed});
    const auto changed = augmented({.image = numbered_picture(10, 20, seed),
                                    .objects = {object_at(2, 3, 6, 4), object_at(15, 0, 5, 10)}},
                                   config, random);
    const auto& shape = changed.image.shape;
    EXPECT_LE(std::max(shape.height, shape.width), config.longest_side());
    heights.insert(shape.height);
    for (const auto& object : changed.objects) {
      EXPECT_GE(std::min(object.box.x, object.box.y), 0);
      EXPECT_LE(object.box.x + object.box.width, static_cast<double>(shape.width) + 1e-9);
      EXPECT_LE(object.box.y + object.box.height, static_cast<double>(shape.height) + 1e-9);
      EXPECT_GT(std::min(object.box.width, object.box.height), 0);
    }
  }
  EXPECT_GT(heights.size(), 5U);
}

/// A set of twelve pictures of several sizes; picture i has i % 4 objects, the last of three in a crowd.
class AnnotatedSets : public ::testing::Test {
 protected:
  AnnotatedSets() {
    std::string pictures, annotations;
    for (int64_t i = 0; i < 12; ++i) {
      const int64_t height = 8 + i, width = 20 - i;
      dir_.write(fmt::format("images/{}.png", i), encode_png(numbered_picture(height, width, 1)));
      pictures += fmt::format(R"({}{{"id": {}, "file_name": "{}.png", "width": {}, "height": {}}})",
                              i == 0 ? "" : ", ", 10 * i, i, width, height);
      for (int64_t object = 0; object < i % 4; ++object) {
        annotations += fmt::format(
            R"({}{{"image_id": {}, "category_id": {}, "bbox": [{}, 1, 4, 6], "iscrowd": {}}})",
            annotations.empty() ? "" : ", ", 10 * i, object == 1 ? 30 : 5, object, object == 2 ? 1 : 0);
      }
    }
    dir_.write("set.json", fmt::format(R"({{"images": [{}], "annotations": [{}], "categories": [)"
                                       R"({{"id": 30, "name": "dog"}}, {{"id": 5, "name": "cat"}}]}})",
                                       pictures, annotations));
  }

  DataConfig config(const std::string& name = "set.json") const {
    DataConfig config;
    config.train = {ConfigPath((dir_ / name).string())};
    config.valid_fraction = 0.25;
    config.images.size = 8;
    config.images.max_size = 24;
    config.images.channels = 1;
    return config;
  }
  std::unique_ptr<BatchSource> batches(const DataConfig& config, int64_t batch_size,
                                       BatchOptions::Order order) const {
    auto images =
        std::make_shared<const AnnotatedImages>(marked_images(config, {"cat", "dog"}).take(Split::train));
    BatchOptions options;
    options.batch_size = batch_size;
    options.seed = 3;
    options.order = order;
    options.bucketing = BatchOptions::Bucketing::none;
    return detection_batches(images, config.images, {.mean = {0.5}, .deviation = {0.25}}, options);
  }

  TempDir dir_;
};

TEST_F(AnnotatedSets, HavePicturesAndObjects) {
  auto all = config();
  all.valid = all.train;
  EXPECT_THAT(categories_of(read_descriptions(all, Split::train)), ElementsAre("cat", "dog"));
  const auto set = marked_images(all, {"cat", "dog"}).take(Split::train);
  ASSERT_EQ(set.size(), 12);
  EXPECT_EQ(set.objects(3).size(), 3U);
  EXPECT_EQ(set.objects(3)[1].category, 1);
  EXPECT_TRUE(set.objects(3)[2].is_crowd);
  EXPECT_EQ(set.objects(3)[0].image, 3);
  EXPECT_EQ(set.image(3).shape.height, 11);
}

// Each category is looked up by its name, twice; comparing it with all others would take minutes.
TEST_F(AnnotatedSets, MayHaveManyCategories) {
  std::string categories;
  for (int i = 0; i < 200'000; ++i)
    categories += fmt::format(R"({}{{"id": {}, "name": "a category, the number of which is {}"}})",
                              i == 0 ? "" : ", ", i, i);
  dir_.write("many.json",
             fmt::format(R"({{"images": [{{"id": 1, "file_name": "0.png", "width": 20, "height": 8}}],
      "annotations": [{{"image_id": 1, "category_id": 199999, "bbox": [1, 1, 4, 6]}}], "categories": [{}]}})",
                         categories));
  auto many = config("many.json");
  many.valid = many.train;
  const auto labels = categories_of(read_descriptions(many, Split::train));
  ASSERT_EQ(labels.size(), 200'000U);
  EXPECT_EQ(marked_images(many, labels).take(Split::train).objects(0).front().category, 199'999);
}

TEST_F(AnnotatedSets, APartIsForValidation) {
  const auto train = marked_images(config(), {"cat", "dog"}).take(Split::train),
             valid = marked_images(config(), {"cat", "dog"}).take(Split::valid);
  EXPECT_EQ(train.size(), 9);
  EXPECT_EQ(valid.size(), 3);
  std::set<std::string> files;
  for (const auto* set : {&train, &valid}) {
    for (int64_t i = 0; i < set->size(); ++i) {
      files.insert(set->file(i).string());
      for (const auto& object : set->objects(i)) EXPECT_EQ(object.image, i);
    }
  }
  EXPECT_EQ(files.size(), 12U);
}

TEST_F(AnnotatedSets, AreFoundInTheLayoutOfCoco) {
  std::filesystem::create_directories(dir_ / "annotations");
  std::filesystem::rename(dir_ / "set.json", dir_ / "annotations/instances_val.json");
  const auto named = config("annotations/instances_val.json");
  EXPECT_THAT(message_of<DataError>([&] { marked_images(named, {"cat", "dog"}).take(Split::train); }),
              HasSubstr("instances_val.json: no '0.png' in '"));
  std::filesystem::rename(dir_ / "images", dir_ / "val");
  EXPECT_EQ(marked_images(named, {"cat", "dog"}).take(Split::train).size(), 9);
}

TEST_F(AnnotatedSets, BadSetsGetOneLine) {
  const auto problem = [&](const DataConfig& config, const std::vector<std::string>& labels) {
    return message_of<Error>([&] {
      const auto set = marked_images(config, labels).take(Split::train);
      for (int64_t i = 0; i < set.size(); ++i) set.image(i);
    });
  };
  EXPECT_THAT(problem(config(), {"cat"}),
              HasSubstr("the category 'dog' does not occur in the training data"));
  EXPECT_THAT(problem(config("images"), {"cat"}), HasSubstr("read from a COCO file (NAME.json)"));
  EXPECT_THAT(problem(config("other.json"), {"cat"}), HasSubstr("does not exist"));
  dir_.write("images/5.png", encode_png(numbered_picture(3, 3, 1)));
  EXPECT_THAT(problem(config(), {"cat", "dog"}),
              ::testing::AnyOf(HasSubstr("5.png: has 3 x 3 pixels, but is described as 15 x 13"),
                               HasSubstr("no error")));  // it may be in the part for validation
}

TEST_F(AnnotatedSets, BatchesArePadded) {
  auto all = config();
  all.valid = all.train;
  all.images.augment = {.min_crop_area = 0.3, .min_scale = 0.5, .flip = 1};  // of training only
  const auto batch = batches(all, 12, BatchOptions::Order::sequential)->batch(0, 0);
  EXPECT_EQ(batch.tokens, 12);
  const auto &images = batch.field("images"), &sizes = batch.field("image_sizes"),
             &boxes = batch.field("boxes"), &classes = batch.field("box_classes");
  EXPECT_EQ(boxes.size(1), 2);  // the third object of a picture is a crowd
  for (int64_t i = 0; i < 12; ++i) {
    const int64_t height = sizes[i][0].item<int64_t>(), width = sizes[i][1].item<int64_t>();
    EXPECT_EQ(std::min(height, width), 8);
    const auto outside = images[i].abs().sum() - images[i].slice(1, 0, height).slice(2, 0, width).abs().sum();
    EXPECT_NEAR(outside.item<double>(), 0, 1e-3);
    const int64_t n = std::min<int64_t>(i % 4, 2);
    EXPECT_EQ(classes[i].ge(0).sum().item<int64_t>(), n);
    EXPECT_EQ(batch.field("batch_counts")[0][i].item<int64_t>(), n);
    EXPECT_EQ(batch.field("image_numbers")[i].item<int64_t>(), i);
  }
  // Picture 1 has 19 × 9 pixels, and one object at (0, 1) with 4 × 6.
  const auto expected = torch::tensor({2.0 / 19, 4.0 / 9, 4.0 / 19, 6.0 / 9}, torch::kFloat);
  EXPECT_TRUE(torch::allclose(boxes[1][0], expected));
  EXPECT_EQ(classes[1][0].item<int64_t>(), 0);
}

// What is read of a picture does not depend on the others.
TEST_F(AnnotatedSets, SquaresHaveOneSize) {
  auto all = config();
  all.valid = all.train;
  all.images.padding = PicturePadding::square;
  const auto together = batches(all, 12, BatchOptions::Order::sequential)->batch(0, 0);
  EXPECT_EQ(together.field("images").sizes(), (std::vector<int64_t>{12, 1, 24, 24}));
  const auto alone = batches(all, 1, BatchOptions::Order::sequential);
  for (int64_t i = 0; i < 12; ++i) {
    const auto batch = alone->batch(0, i);
    for (const auto* field : {"images", "image_sizes"})
      EXPECT_TRUE(torch::equal(batch.field(field)[0], together.field(field)[i])) << field << " " << i;
  }
}

// A process decodes only its pictures. They, and all objects, are what they are in the whole batch.
TEST_F(AnnotatedSets, AProcessMakesItsShareOfABatch) {
  auto all = config();
  all.valid = all.train;
  all.images.augment = {.min_crop_area = 0.3, .min_scale = 0.5, .flip = 0.5};
  const auto whole = batches(all, 12, BatchOptions::Order::shuffled)->batch(1, 0);
  for (const int64_t index : {0, 1, 2}) {
    const auto source = prefetched(batches(all, 12, BatchOptions::Order::shuffled));
    source->use_share(index, 3);
    const auto batch = source->batch(1, 0);
    for (const auto& [name, tensor] : whole.fields) {
      if (name != "images") {
        EXPECT_TRUE(torch::equal(batch.field(name), tensor)) << name;
      }
    }
    const auto &images = batch.field("images"), &expected = whole.field("images");
    const auto own = images.narrow(0, 4 * index, 4);
    EXPECT_TRUE(torch::equal(own, expected.narrow(0, 4 * index, 4)));
    EXPECT_EQ(images.count_nonzero().item<int64_t>(), own.count_nonzero().item<int64_t>());
  }
}

// Two batches of 6 hold the pictures of one of 12, with the same changes; another epoch changes them
// otherwise.
TEST_F(AnnotatedSets, ChangesDependOnSeedEpochAndPictureOnly) {
  auto all = config();
  all.valid = all.train;
  all.images.augment = {.min_crop_area = 0.3, .min_scale = 0.5, .flip = 0.5};
  const auto source = batches(all, 12, BatchOptions::Order::shuffled),
             halves = prefetched(batches(all, 6, BatchOptions::Order::shuffled));
  for (const int64_t epoch : {0, 1}) {
    const auto whole = source->batch(epoch, 0), second = halves->batch(epoch, 1),
               first = halves->batch(epoch, 0);
    for (const auto* name : {"image_sizes", "image_numbers"})
      EXPECT_TRUE(torch::equal(whole.field(name), torch::cat({first.field(name), second.field(name)})))
          << name;
    for (int64_t i = 0; i < 12; ++i) {
      const auto& half = i < 6 ? first : second;
      const auto objects = half.field("box_classes")[i % 6].ge(0).sum().item<int64_t>();
      EXPECT_TRUE(torch::equal(whole.field("boxes")[i].slice(0, 0, objects),
                               half.field("boxes")[i % 6].slice(0, 0, objects)));
      EXPECT_NEAR(whole.field("images")[i].sum().item<double>(),
                  half.field("images")[i % 6].sum().item<double>(), 1e-2);
    }
  }
  EXPECT_FALSE(torch::equal(source->batch(0, 0).field("image_sizes").sum(0),
                            source->batch(1, 0).field("image_sizes").sum(0)));
}

}  // namespace
}  // namespace zoo::testing
