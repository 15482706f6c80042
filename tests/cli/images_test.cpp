// zoo train, predict and evaluate on directories of images.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/images/image_file.h"
#include "tests/cli/support.h"

namespace zoo::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// A PNG file of a grey picture that is bright above or below.
std::string picture(bool bright_above, int seed) {
  constexpr int side = 8;
  Image image{.shape = {.channels = 1, .height = side, .width = side}, .pixels = {}};
  for (int i = 0; i < side * side; ++i) {
    const bool bright = (i < side * side / 2) == bright_above;
    image.pixels.push_back(static_cast<uint8_t>((bright ? 200 : 10) + (i * 7 + seed * 13) % 40));
  }
  return encode_png(image);
}

/// A run "run" that tells both kinds apart, and new pictures in "new".
class Images : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    for (int i = 0; i < 24; ++i) {
      dir_->write(fmt::format("pictures/above/{}.png", i), picture(true, i));
      dir_->write(fmt::format("pictures/below/{}.png", i), picture(false, i));
    }
    dir_->write("pictures/below/notes.txt", "not a picture");
    dir_->write("new/a.png", picture(true, 50));
    dir_->write("new/b.png", picture(false, 51));
    dir_->write("config.yaml", R"(
task: image_classification
data: {train: pictures, images: {size: 8, channels: 1, augment: {flip: 0.5}}}
model: {architecture: {type: vit, patch_size: 4}, d_model: 16, n_layers: 1, n_heads: 2, dropout: 0}
training: {steps: 60, batch_size: 8, optimizer: {lr: 0.01}, schedule: {warmup_steps: 5}, evaluate_every: 30, threads: 1}
)");
    const auto outcome = zoo("train config.yaml --device cpu --out run");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static Outcome zoo(const std::string& arguments, std::string_view input = "") {
    return ZooProcess(*dir_, arguments, {.input = input}).finish();
  }
  static std::string problem(const std::string& arguments) {
    const auto outcome = zoo(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    return outcome.err;
  }

  static TempDir* dir_;
};
TempDir* Images::dir_ = nullptr;

TEST_F(Images, FilesDirectoriesAndListsGetTheSameLabels) {
  const auto by_directory = zoo("predict run --device cpu --image new --json");
  ASSERT_EQ(by_directory.code, 0) << by_directory.err;
  const auto results = json::parse(by_directory.out)["results"];
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_EQ(results[0]["input"], "new/a.png");
  EXPECT_EQ(results[0]["labels"][0]["label"], "above");
  EXPECT_EQ(results[1]["labels"][0]["label"], "below");
  EXPECT_EQ(zoo("predict run --device cpu --image new/a.png new/b.png --json").out, by_directory.out);
  EXPECT_EQ(zoo("predict run --device cpu --json", "new/a.png\nnew/b.png\n").out, by_directory.out);
  dir_->write("list.txt", "new/a.png\nnew/b.png\n");
  EXPECT_EQ(zoo("predict run --device cpu --input list.txt --json").out, by_directory.out);
  EXPECT_THAT(zoo("predict run --device cpu --image new/a.png").out, StartsWith("above\t"));
}

TEST_F(Images, AnEvaluationSaysWhatIsTakenForWhat) {
  const auto document = json::parse(zoo("evaluate run --device cpu --json").out);
  EXPECT_EQ(document["images"], 4);
  EXPECT_EQ(document["accuracy"], 1.0);
  EXPECT_EQ(document["confusion"]["labels"], json({"above", "below"}));
  int64_t n = 0;
  for (const auto& row : document["confusion"]["counts"])
    for (const auto& count : row) n += count.get<int64_t>();
  EXPECT_EQ(n, 4);
  EXPECT_THAT(zoo("evaluate run --device cpu").out, HasSubstr("[1] above"));
  const auto other = zoo("evaluate run --device cpu --data pictures --json");
  EXPECT_EQ(json::parse(other.out)["images"], 48) << other.err;
}

TEST_F(Images, AComparisonHasTheMatrixOfTheEvaluation) {
  const auto outcome = zoo("compare run --device cpu --out compared");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto results = json::parse(read_file(*dir_ / "compared/results.json"));
  const auto evaluation = json::parse(zoo("evaluate run --device cpu --json").out);
  EXPECT_EQ(results["runs"][0]["confusion"], evaluation["confusion"]);
  EXPECT_THAT(read_file(*dir_ / "compared/report.html"), HasSubstr("\"confusion\":{\"labels\":[\"above\""));
  // The next page takes the matrix from the run. The matrix is computed again if its file is damaged.
  zoo("compare run --device cpu --out again");
  EXPECT_EQ(json::parse(read_file(*dir_ / "again/results.json"))["runs"][0]["confusion"],
            evaluation["confusion"]);
  dir_->write("run/confusion.json", "{");
  zoo("compare run --device cpu --out repaired");
  EXPECT_EQ(json::parse(read_file(*dir_ / "repaired/results.json"))["runs"][0]["confusion"],
            evaluation["confusion"]);
}

TEST_F(Images, AttentionShowsWhereAModelLooks) {
  dir_->write("wide/a.png", encode_png({.shape = {.channels = 1, .height = 8, .width = 16},
                                        .pixels = std::vector<uint8_t>(8 * 16, 7)}));
  const auto outcome = zoo("attention run --device cpu --image wide/a.png --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto document = json::parse(outcome.out);
  EXPECT_THAT(keys(document), ::testing::UnorderedElementsAre(
                                  "name", "image", "width", "height", "rows", "columns", "special", "part",
                                  "source_tokens", "target_tokens", "labels", "layers", "heads", "rollout"));
  EXPECT_EQ(document["image"], "wide/a.png");
  EXPECT_EQ(document["part"], json({4.0, 0.0, 8.0, 8.0})) << "the square in the middle";
  EXPECT_EQ(document["source_tokens"],
            json({"class", "row 0 column 0", "row 0 column 1", "row 1 column 0", "row 1 column 1"}));
  EXPECT_THAT(document["layers"][0]["heads"], SizeIs(2));
  EXPECT_EQ(
      document["labels"],
      json::parse(zoo("predict run --device cpu --image wide/a.png --json").out)["results"][0]["labels"]);

  const auto page = zoo("attention run --device cpu --image new/a.png --heads");
  EXPECT_THAT(page.out, StartsWith("attention layer"));
  EXPECT_THAT(page.out, HasSubstr("attention maps: run/attention.html\n"));
  EXPECT_THAT(read_file(*dir_ / "run/attention.html"), HasSubstr("data:image/png;base64,"));
}

TEST_F(Images, BadInputGetsOneLine) {
  EXPECT_THAT(problem("predict run --device cpu --text hello"),
              HasSubstr("--text: run reads images: use --image"));
  EXPECT_THAT(problem("predict run --device cpu --image config.yaml"),
              HasSubstr("config.yaml: this is no PNG, JPEG or WebP"));
  EXPECT_THAT(problem("predict run --device cpu --image none.png"), HasSubstr("cannot read 'none.png'"));
  EXPECT_THAT(problem("predict run --device cpu --image ."), HasSubstr(".: no PNG or JPEG images"));
  EXPECT_THAT(problem("predict run --device cpu"), HasSubstr("standard input is empty"));
  EXPECT_THAT(problem("attention run --device cpu --text hello"),
              HasSubstr("--text: run reads images: use --image"));
  EXPECT_THAT(problem("attention run --device cpu --text hello --image new/a.png"),
              HasSubstr("--image contradicts --text"));
  EXPECT_THAT(problem("attention run --device cpu --target hello --image new/a.png"),
              HasSubstr("--target contradicts --image"));
  EXPECT_THAT(problem("attention run --device cpu"), HasSubstr("--text is required, or --image"));
  EXPECT_THAT(problem("attention run --device cpu --image config.yaml"),
              HasSubstr("config.yaml: this is no PNG, JPEG or WebP"));
  for (const std::string option : {"--min-score 0.1", "--out drawn"}) {
    EXPECT_THAT(problem("predict run --device cpu --image new/a.png " + option),
                HasSubstr(option.substr(0, option.find(' ')) +
                          ": run classifies, it finds no objects: leave it out"));
  }
  EXPECT_THAT(problem("train config.yaml --device cpu --out other --set data.train=new"),
              HasSubstr("there must be a directory for each class"));
  dir_->write("bad/above/a.png", picture(true, 1).substr(0, 60));
  EXPECT_THAT(problem("train config.yaml --device cpu --out other --set data.train=bad"),
              HasSubstr("bad/above/a.png"));
}

}  // namespace
}  // namespace zoo::testing
