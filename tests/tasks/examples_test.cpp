// The configurations of docs/data.md, which set as little as possible, learn: each family's own defaults do.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "checkpoints/run.h"
#include "experiments/load_experiment.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;

/// Data for every example, simple enough to be learnt in seconds.
class Examples : public ::testing::Test {
 protected:
  Examples() : root_("ZOO_DATA", world_.path("own").string()) {
    std::string text, letters, table = "review\trating\n", german, english, names = "sentence\tlabels\n";
    CounterRandom random({3});
    const std::vector<std::string> good = {"splendid", "fine", "lovely"}, bad = {"dull", "poor", "weak"},
                                   de = {"rot", "blau", "alt", "neu"}, en = {"red", "blue", "old", "new"};
    for (int i = 0; i < 200; ++i) {
      const size_t word = random.below(3), first = random.below(4), second = random.below(4);
      text += "the quick brown fox jumps over the lazy dog\n";
      letters += std::string(20, static_cast<char>('a' + random.below(8))) + "\n";
      const auto& words = i % 2 ? good : bad;
      table += fmt::format("a {} and {} film\t{}\n", words[word], words[first % 3], i % 2 ? "up" : "down");
      names += fmt::format("{} und {} {}\tO O B-PER I-PER\n", de[first], good[word], bad[word]);
      german += fmt::format("{} und {}\n", de[first], de[second]);
      english += fmt::format("{} and {}\n", en[first], en[second]);
    }
    const auto& dir = world_.dir();
    dir.write("own/mytext.txt", text);
    dir.write("own/letters.txt", letters);
    dir.write("own/reviews.tsv", table);
    dir.write("own/names.tsv", names);
    dir.write("own/lines.de", german);
    dir.write("own/lines.en", english);
    write_pictures();
    write_objects();
  }

  /// 60 pictures with bright rows or bright columns.
  void write_pictures() const {
    for (int i = 0; i < 60; ++i) {
      Image image{.shape = {.channels = 1, .height = 16, .width = 16}, .pixels = std::vector<uint8_t>(256)};
      for (size_t at = 0; at < 256; ++at)
        image.pixels[at] = static_cast<uint8_t>((i % 2 ? at / 16 : at % 16) % 4 < 2 ? 200 + i % 7 : 30);
      world_.dir().write(fmt::format("own/pictures/{}/{}.png", i % 2 ? "rows" : "columns", i),
                         encode_png(image));
    }
  }

  /// 60 pictures, each with a bright square on the left and one on the right.
  void write_objects() const {
    auto file = nlohmann::json::object();
    file["categories"] = {{{"id", 1}, {"name", "square"}}};
    CounterRandom random({4});
    for (int i = 0; i < 60; ++i) {
      constexpr int64_t side = 32, object = 12;
      Image image{.shape = {.channels = 1, .height = side, .width = side},
                  .pixels = std::vector<uint8_t>(side * side)};
      const auto name = fmt::format("{}.png", i);
      file["images"].push_back({{"id", i}, {"file_name", name}, {"height", side}, {"width", side}});
      for (const int64_t x : {2, 18}) {
        const int64_t y = random.below(side - object);
        for (int64_t row = y; row < y + object; ++row)
          std::fill_n(image.pixels.begin() + row * side + x, object, 255);
        file["annotations"].push_back(
            {{"image_id", i}, {"category_id", 1}, {"bbox", {x, y, object, object}}});
      }
      world_.dir().write("own/images/" + name, encode_png(image));
    }
    world_.dir().write("own/objects.json", file.dump());
  }

  /// docs/examples/NAME.yaml, small and short.
  Experiment example(const std::string& name, std::vector<std::string> overrides) const {
    overrides.insert(overrides.begin(),
                     {"model.d_model=32", "model.n_layers=2", "training.threads=1", "training.epochs=null",
                      "training.batch_size=8", "training.batch_tokens=null", "training.patience=null",
                      "training.evaluate_every=100000", "training.checkpoint_every=100000"});
    const auto folder = fs::path(__FILE__).parent_path().parent_path().parent_path() / "docs/examples";
    return load_experiment(folder / (name + ".yaml"), overrides);
  }
  /// Trains, and returns the loss on the validation data.
  double learn(const Experiment& experiment) const {
    const auto dir = world_.path("run");
    fs::remove_all(dir);
    train(experiment, {.run_dir = dir});
    return Run::open(dir).evaluate(Split::valid).at("loss");
  }

  TinyWorld world_;
  ScopedEnvironment root_;
};

// Every bound is far from both the measured loss and that of a guess.
TEST_F(Examples, OfTextsLearn) {
  const std::vector<std::string> small = {"model.d_model=64", "data.sequence_length=24",
                                          "data.tokenizer={type: char}", "training.steps=200"};
  const auto with = [&](const std::vector<std::string>& more) {
    auto overrides = small;
    overrides.insert(overrides.end(), more.begin(), more.end());
    return overrides;
  };
  EXPECT_LT(learn(example("text", small)), 1) << "27 characters: a guess has 3.3";
  EXPECT_LT(learn(example("masked-text", with({"data.train=letters.txt", "training.steps=400"}))), 0.7)
      << "a guess has 2.1";
  EXPECT_LT(learn(example("table", small)), 0.2) << "two classes: a guess has 0.69";
  EXPECT_LT(learn(example("names", with({"data.sequence_length=48"}))), 0.2)
      << "three classes: a guess has 0.87";
  EXPECT_LT(learn(example("parallel-text", with({"training.steps=300"}))), 0.6) << "a guess has 3";
}

TEST_F(Examples, OfPicturesLearn) {
  const std::vector<std::string> small = {"data.images.size=16", "data.images.channels=1",
                                          "training.steps=60"};
  auto vit = small;
  vit.emplace_back("model.architecture={type: vit, patch_size: 4, stem: convolutions}");
  EXPECT_LT(learn(example("pictures", vit)), 0.2);
  vit.emplace_back("model.architecture={type: vit, patch_size: 4, stem: patches}");
  EXPECT_LT(learn(example("pictures", vit)), 0.2);
  auto resnet = small;
  resnet.insert(resnet.end(),
                {"model.architecture={type: resnet, depth: 18, width: 8}", "training.steps=150"});
  EXPECT_LT(learn(example("pictures-resnet", resnet)), 0.2);
}

// With queries that begin alike, all boxes are the same.
TEST_F(Examples, OfObjectsLearnBoxesThatDiffer) {
  const auto experiment =
      example("objects", {"data.images.size=32", "data.images.channels=1", "training.steps=500",
                          "model.architecture={type: detr, n_queries: 8, backbone: {depth: 18, width: 8, "
                          "stem_stride: 2}}"});
  EXPECT_LT(learn(experiment), 3);
  const auto run = Run::open(world_.path("run"));
  const auto found = run.task().predict(run.model(), {world_.path("own/images/0.png").string()});
  const auto& objects = found.front().objects();
  std::vector<double> centres;
  for (const auto& object : objects) centres.push_back(object.box.x + object.box.width / 2);
  const auto [left, right] = std::ranges::minmax(centres);
  EXPECT_GT(right - left, 8) << "the centres of the squares are 16 pixels apart";
}

}  // namespace
}  // namespace zoo::testing
