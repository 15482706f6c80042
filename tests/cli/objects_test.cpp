// zoo predict for a task that finds objects. The task is made by hand, and runs in this process: what is
// tested is the command.

#include <array>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/images/image_file.h"
#include "tasks/task.h"
#include "tests/cli/support.h"
#include "tests/support/program_copy.h"

namespace zoo::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Batches of another task.
class Borrowed final : public BatchSource {
 public:
  explicit Borrowed(BatchSource& source) : source_(source) {}
  int64_t n_batches(int64_t epoch) override { return source_.n_batches(epoch); }
  Batch batch(int64_t epoch, int64_t index) override { return source_.batch(epoch, index); }

 private:
  BatchSource& source_;
};

/// Trains like image_classification. Finds in every picture a sure object in its left half and a doubtful one
/// below it.
class TwoObjects final : public Task {
 public:
  TwoObjects(const Experiment& experiment, std::unique_ptr<Task> inner)
      : Task(experiment, inner->vocabulary()), inner_(std::move(inner)) {}

  ModelPurpose purpose() const override { return inner_->purpose(); }
  std::vector<Prediction> predict(Model&, const std::vector<std::string>& inputs,
                                  const PredictOptions&) override {
    std::vector<Prediction> predictions;
    for (const auto& input : inputs) {
      const auto shape = read_image(input, Follow::everything, 1).shape;
      const auto height = static_cast<double>(shape.height), width = static_cast<double>(shape.width);
      predictions.push_back({.input = input,
                             .answer = PredictedObjects{{{"above", 0.875, {0, 0, width / 3, height / 2}},
                                                         {"below", 0.625, {0, height / 2, width, height / 2}},
                                                         {"below", 0.25, {1, 1, 2, 2}}}}});
    }
    return predictions;
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    return std::make_unique<Borrowed>(inner_->batches(split));
  }
  std::unique_ptr<Task> inner_;
};

void register_two_objects() {
  if (task_types().find("two_objects")) return;
  TaskType type = task_types().at("image_classification");
  type.name = "two_objects";
  type.predicts = PredictionKind::objects;
  type.make = [make = type.make](const Experiment& experiment, Vocabulary vocabulary) {
    return std::make_unique<TwoObjects>(experiment, make(experiment, std::move(vocabulary)));
  };
  task_types().add(std::move(type));
}

/// Pictures that are bright above or below, and a run "run".
class Objects : public ::testing::Test {
 protected:
  void SetUp() override {
    register_two_objects();
    for (int i = 0; i < 12; ++i) {
      dir_.write(fmt::format("pictures/above/{}.png", i), picture(8, 8, i));
      dir_.write(fmt::format("pictures/below/{}.png", i), picture(8, 8, 100 - i));
    }
    dir_.write("new/a.png", picture(9, 12, 1));
    dir_.write("other/a.png", picture(400, 500, 2));
    dir_.write("config.yaml", R"(
task: two_objects
data: {train: pictures, images: {size: 8, channels: 1}}
model: {architecture: {type: vit, patch_size: 4}, d_model: 8, n_layers: 1, n_heads: 1, dropout: 0}
training: {steps: 1, batch_size: 4, evaluate_every: 1, threads: 1}
)");
    std::filesystem::current_path(dir_.path());
    ASSERT_EQ(zoo({"train", "config.yaml", "--device", "cpu", "--out", "run"}).code, 0);
  }

  static std::string picture(int64_t height, int64_t width, int seed) {
    Image image{.shape = {.channels = 1, .height = height, .width = width}, .pixels = {}};
    for (int64_t i = 0; i < height * width; ++i)
      image.pixels.push_back(static_cast<uint8_t>((i * 7 + seed * 13) % 200));
    return encode_png(image);
  }

  static Outcome zoo(std::vector<std::string> words) {
    std::ostringstream out, err;
    auto* const before_out = std::cout.rdbuf(out.rdbuf());
    auto* const before_err = std::cerr.rdbuf(err.rdbuf());
    Outcome outcome;
    outcome.code = run_program(std::move(words));
    std::cout.rdbuf(before_out), std::cerr.rdbuf(before_err);
    outcome.out = out.str(), outcome.err = err.str();
    return outcome;
  }
  static Outcome predict(std::vector<std::string> more) {
    more.insert(more.begin(), {"predict", "run", "--device", "cpu"});
    return zoo(std::move(more));
  }

  TempDir dir_;
};

// One test, because a process runs the command line with its own types.
TEST_F(Objects, ArePrintedAndDrawn) {
  const auto text = predict({"--image", "new/a.png"});
  EXPECT_EQ(
      text.err,
      "note: 1 object with scores below 0.5 left out (--min-score); the best: below 0.25 in new/a.png\n");
  EXPECT_EQ(text.out,
            "new/a.png\tabove\t0.8750\t0.00\t0.00\t4.00\t4.50\n"
            "new/a.png\tbelow\t0.6250\t0.00\t4.50\t12.00\t4.50\n");
  EXPECT_EQ(std::ranges::count(predict({"--image", "new/a.png", "--min-score", "0"}).out, '\n'), 3);
  EXPECT_EQ(predict({"--image", "new/a.png", "--min-score", "0.9"}).out, "");
  EXPECT_EQ(std::ranges::count(predict({"--image", "new/a.png", "--top", "1"}).out, '\n'), 1);

  const auto document = json::parse(predict({"--image", "new/a.png", "other", "--json"}).out);
  ASSERT_THAT(document["results"], SizeIs(2));
  EXPECT_THAT(keys(document["results"][0]), ElementsAre("input", "objects"));
  ASSERT_THAT(document["results"][0]["objects"], SizeIs(2));
  EXPECT_EQ(document["results"][0]["objects"][1],
            json({{"label", "below"}, {"score", 0.625}, {"box", {0.0, 4.5, 12.0, 4.5}}}));
  EXPECT_EQ(document["results"][1]["objects"][0]["box"], json({0.0, 0.0, 166.67, 200.0}));
  const auto all = json::parse(predict({"--image", "new/a.png", "--json", "--min-score", "0"}).out);
  EXPECT_THAT(all["results"][0]["objects"], SizeIs(3));

  // Both pictures are called a.png; an older file of that name, here a link, is replaced and not followed.
  dir_.write("kept.txt", "kept");
  std::filesystem::create_directory("drawn");
  std::filesystem::create_symlink("../kept.txt", "drawn/a.png");
  const auto drawn = predict({"--image", "new/a.png", "other/a.png", "--out", "drawn"});
  EXPECT_EQ(std::ranges::count(drawn.out, '\n'), 4) << drawn.err;
  EXPECT_THAT(drawn.err, HasSubstr("\n2 drawings in drawn\n"));
  EXPECT_THAT(files_below("drawn"), SizeIs(2));
  EXPECT_EQ(read_file("kept.txt"), "kept");
  const Image small = read_image("drawn/a.png", Follow::nothing, 3);
  EXPECT_EQ(small.shape.height, 9 * 25);
  EXPECT_EQ(small.shape.width, 12 * 25);
  const Image large = read_image("drawn/a-2.png", Follow::nothing, 3);
  EXPECT_EQ(large.shape.width, 500);
  const auto red = [](const Image& image, int64_t y, int64_t x) {
    return image.pixels[static_cast<size_t>(y * image.shape.width + x)];
  };
  EXPECT_EQ(red(large, 199, 80), 255) << "the lower edge of “above”, whose colour is red";
  EXPECT_EQ(predict({"--image", "new/a.png", "--out", "made/for/it"}).code, 0);
  EXPECT_THAT(files_below("made"), SizeIs(3));

  // A name of 255 bytes, which is the longest, and the number that tells two of them apart.
  const std::string longest = std::string(251, 'x') + ".png";
  for (const auto* folder : {"long/", "longer/"}) dir_.write(folder + longest, picture(9, 12, 1));
  const auto long_names = predict({"--image", "long", "longer", "--out", "long_drawn"});
  EXPECT_EQ(long_names.code, 0) << long_names.err;
  EXPECT_THAT(files_below("long_drawn"), SizeIs(2));

  for (const auto& [more, problem] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--out", "config.yaml"}, "--out: config.yaml is not a directory"},
           {{"--out", ""}, "--out: the name is empty: give a directory"},
           {{"--out", "new"}, "--out: new/a.png would be replaced, which is an input"},
           {{"--out", "other/../new/."}, "would be replaced"},
           {{"--min-score", "1.5"}, "'1.5' is not a number from 0 to 1"},
           {{"--text", "hello"}, "--text: run reads images: use --image"}}) {
    auto arguments = more;
    arguments.insert(arguments.begin(), {"--image", "new/a.png"});
    const auto outcome = predict(arguments);
    EXPECT_EQ(outcome.code, 2) << problem;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(problem));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
}

}  // namespace
}  // namespace zoo::testing
