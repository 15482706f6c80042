// zoo train, predict and evaluate on directories of images.

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/images/image_file.h"
#include "tests/cli/suite_directory.h"

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
class Images : public SuiteDirectory<Images> {
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
};

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

TEST_F(Images, SeveralPicturesAreNamedAndDamagedOnesSkipped) {
  dir_->write("mixed/a.png", picture(true, 50));
  dir_->write("mixed/deep/b.png", picture(false, 51));
  dir_->write("mixed/notes.txt", "not a picture");
  ASSERT_EQ(::mkfifo((*dir_ / "mixed/pipe.png").c_str(), 0600), 0);  // reading it would never end
  const auto good = zoo("predict run --device cpu --image mixed --top 1");
  EXPECT_EQ(good.code, 0);
  EXPECT_THAT(good.out, ::testing::ContainsRegex("^mixed/a.png\tabove\t0[.0-9]*\nmixed/deep/b.png\tbelow\t"));
  EXPECT_EQ(good.err, "note: mixed: 2 other files left out: 1 .txt, 1 no file\n");
  EXPECT_EQ(zoo("predict run --device cpu --image mixed/a.png mixed/deep/b.png --top 1").out, good.out);

  dir_->write("mixed/aa.png", picture(true, 1).substr(0, 60));
  const auto damaged = zoo("predict run --device cpu --image mixed --top 1");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_EQ(damaged.out, good.out);
  EXPECT_THAT(damaged.err, HasSubstr("skipped: mixed/aa.png: the image is damaged or truncated"));
  EXPECT_THAT(damaged.err, HasSubstr("note: 1 of 3 images skipped\n"));
  const auto strict = zoo("predict run --device cpu --image mixed --strict");
  EXPECT_EQ(strict.code, 2);
  EXPECT_EQ(strict.out, "");
  EXPECT_THAT(strict.err, HasSubstr("zoo: mixed/aa.png: the image is damaged"));
  EXPECT_EQ(zoo("predict run --device cpu --image mixed/aa.png mixed/aa.png").code, 2) << "nothing is left";
  for (const auto* name : {"mixed/aa.png", "mixed/pipe.png"}) std::filesystem::remove(*dir_ / name);
}

TEST_F(Images, HaveVectors) {
  const auto outcome = zoo("embed run --device cpu --image new --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto vectors = json::parse(outcome.out)["embeddings"];
  ASSERT_THAT(vectors, SizeIs(2));
  EXPECT_THAT(vectors[0], SizeIs(16));
  EXPECT_NE(vectors[0], vectors[1]);
  EXPECT_EQ(json::parse(zoo("embed run --device cpu --json", "new/b.png\n").out)["embeddings"][0],
            vectors[1]);
  EXPECT_THAT(problem("embed run --device cpu --image new --pooling mean"),
              HasSubstr("--pooling is for texts"));
  EXPECT_THAT(problem("embed run --device cpu --text hello"),
              HasSubstr("--text: run reads images: use --image"));
}

// What a model cannot read, or reads in part only, is told before anything is read.
TEST_F(Images, ThatDoNotFitTheModelAreTold) {
  for (const std::string command : {"inspect", "train"}) {
    EXPECT_THAT(problem(command + " config.yaml --set model.architecture.n_channels=3 --set 'task={type: "
                                  "image_classification, n_classes: 2}'"),
                HasSubstr("model.architecture reads 3 channels, but data.images.channels is 1"));
    EXPECT_THAT(
        problem(
            command +
            " config.yaml --set data.images.size=3 --set 'task={type: image_classification, n_classes: 2}'"),
        HasSubstr("model.architecture has patches of 4, larger than images of 3"));
  }
  const auto outcome =
      zoo("train config.yaml --device cpu --out seven --set data.images.size=7 --set training.steps=1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("note: patches of 4 leave the last 3 of 7 rows and columns of each image "
                        "unseen: data.images.size 8 would not"));
  EXPECT_THAT(outcome.err, HasSubstr("/pictures: 1 other file left out: 1 .txt\n"));
}

TEST_F(Images, LabelsOfARunAreDistinct) {
  std::filesystem::copy(*dir_ / "run", *dir_ / "twins", std::filesystem::copy_options::recursive);
  dir_->write("twins/labels.json", R"(["above", "above"])");
  EXPECT_THAT(problem("predict twins --device cpu --image new/a.png"),
              HasSubstr("twins/labels.json: damaged: two classes have the name 'above'"));
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

// A row is a right class, a column what was predicted: three pictures that are bright above are called below.
TEST_F(Images, RowsOfTheMatrixAreTheRightClasses) {
  for (int i = 0; i < 5; ++i) dir_->write(fmt::format("turned/above/{}.png", i), picture(true, i));
  for (int i = 0; i < 3; ++i) dir_->write(fmt::format("turned/below/{}.png", i), picture(true, i));
  dir_->write("turned/below/3.png", picture(false, 3));
  const auto document = json::parse(zoo("evaluate run --device cpu --data turned --json").out);
  ASSERT_EQ(document["confusion"]["labels"], json({"above", "below"}));
  EXPECT_EQ(document["confusion"]["counts"], json({{5, 0}, {3, 1}}));
  EXPECT_NEAR(document["accuracy"].get<double>(), 6.0 / 9, 1e-9);
  // F1 of "above" is 10/13, of "below" 2/5.
  EXPECT_NEAR(document["f1"].get<double>(), (10.0 / 13 + 2.0 / 5) / 2, 1e-9);
  const auto text = zoo("evaluate run --device cpu --data turned").out;
  EXPECT_THAT(text, HasSubstr("[1] above                 5      0\n[2] below                 3      1\n"));
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
  dir_->write("texts/a.txt", "not a picture");
  EXPECT_THAT(problem("predict run --device cpu --image texts"),
              HasSubstr("texts: no PNG, JPEG or WebP images (1 other file left out: 1 .txt)"));
  EXPECT_THAT(problem("predict run --device cpu"), HasSubstr("standard input is empty"));
  EXPECT_THAT(problem("attention run --device cpu --text hello"),
              HasSubstr("--text: run reads images: use --image"));
  EXPECT_THAT(problem("attention run --device cpu --text hello --image new/a.png"),
              HasSubstr("--image contradicts --text"));
  EXPECT_THAT(problem("attention run --device cpu --target hello --image new/a.png"),
              HasSubstr("--target contradicts --image"));
  EXPECT_THAT(problem("attention run --device cpu --image new/a.png --out ''"),
              HasSubstr("--out: the name is empty: give a file"));
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
  for (const auto* name : {"bad/above/a.png", "bad/below/b.png"})
    dir_->write(name, picture(true, 1).substr(0, 60));
  dir_->write("bad/below/c.png", picture(true, 1));
  EXPECT_THAT(problem("train config.yaml --device cpu --out other --set data.train=bad"),
              ::testing::AllOf(HasSubstr("2 of 3 images cannot be read: "), HasSubstr("bad/above/a.png"),
                               HasSubstr("bad/below/b.png")));
}

}  // namespace
}  // namespace zoo::testing
