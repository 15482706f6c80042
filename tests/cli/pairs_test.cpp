// Models of pictures and texts in the program: trained on captions, used, fine-tuned, exported.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint.h"
#include "data/images/image_file.h"
#include "tests/cli/suite_directory.h"

namespace zoo::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct Colour {
  const char* name;
  int red, green, blue;
};
const std::vector<Colour> kColours = {{"red", 220, 20, 30},     {"green", 20, 200, 40},
                                      {"blue", 20, 40, 220},    {"black", 10, 10, 10},
                                      {"white", 245, 245, 245}, {"yellow", 230, 220, 20}};

/// A PNG file of one colour with some noise.
std::string picture(const Colour& colour, int seed) {
  constexpr int side = 8;
  Image image{.shape = {.channels = 3, .height = side, .width = side}, .pixels = {}};
  for (const int level : {colour.red, colour.green, colour.blue}) {
    for (int i = 0; i < side * side; ++i)
      image.pixels.push_back(static_cast<uint8_t>(std::clamp(level + (i * 7 + seed * 13) % 21 - 10, 0, 255)));
  }
  return encode_png(image);
}

/// A model that knows six colours.
class Pairs : public SuiteDirectory<Pairs> {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    std::string list;
    for (int i = 0; i < 48; ++i) {
      const auto& colour = kColours[static_cast<size_t>(i) % kColours.size()];
      dir_->write(fmt::format("pictures/{}.png", i), picture(colour, i));
      list += fmt::format("{{\"image\": \"{}.png\", \"caption\": \"a {} square\"}}\n", i, colour.name);
      dir_->write(fmt::format("classes/{}/{}.png", colour.name, i), picture(colour, i));
    }
    dir_->write("pictures/captions.jsonl", list);
    for (size_t i = 0; i < kColours.size(); ++i)
      dir_->write(fmt::format("new/{}.png", kColours[i].name),
                  picture(kColours[i], 100 + static_cast<int>(i)));
    dir_->write("pairs.yaml", kConfig);
    for (const std::string kind : {"softmax", "sigmoid"}) {
      const auto outcome =
          zoo("train pairs.yaml --device cpu --out " + kind + " --set model.architecture.scores=" + kind);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
    }
  }

  // Seeds 1 to 3 tell all colours apart with both kinds of scores; with 150 steps at 0.01 some did not.
  static constexpr const char* kConfig = R"(
task: image_text_similarity
data: {train: pictures/captions.jsonl, valid: pictures/captions.jsonl, sequence_length: 24,
       images: {size: 8}, tokenizer: {type: char}}
model:
  architecture: {type: dual_encoder, width: 12, image: {d_model: 16, n_layers: 1, n_heads: 2, patch_size: 4}}
  d_model: 16
  n_layers: 1
  n_heads: 2
  max_positions: 24
training: {steps: 400, batch_size: 12, optimizer: {lr: 0.005}, schedule: {warmup_steps: 5}, evaluate_every: 200,
           checkpoint_every: 100, threads: 1}
)";
};

TEST_F(Pairs, ChooseAmongAnyTexts) {
  for (const std::string kind : {"softmax", "sigmoid"}) {
    SCOPED_TRACE(kind);
    const auto outcome = zoo("predict " + kind +
                             " --device cpu --image new --labels red green blue black white "
                             "yellow --template 'a {} square' --json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto results = json::parse(outcome.out)["results"];
    ASSERT_THAT(results, SizeIs(6));
    for (const auto& result : results) {
      double sum = 0;
      for (const auto& label : result["labels"]) sum += label["probability"].get<double>();
      if (kind == "softmax") {
        EXPECT_NEAR(sum, 1, 1e-6);
      }
      const auto best = result["labels"][0]["label"].get<std::string>();
      EXPECT_EQ("new/" + best + ".png", result["input"]);
    }
  }
  EXPECT_THAT(
      zoo("predict softmax --device cpu --image new/red.png --labels 'a red square' 'a blue square'").out,
      StartsWith("a red square\t"));
  // What SigLIP says of a text does not depend on the others, so it may be one text.
  const auto of_red = [&](const std::string& labels) {
    const auto said = zoo("predict sigmoid --device cpu --image new/red.png --json --labels " + labels).out;
    for (const auto& label : json::parse(said)["results"][0]["labels"])
      if (label["label"] == "a red square") return label["probability"].get<double>();
    return -1.0;
  };
  EXPECT_NEAR(of_red("'a red square'"), of_red("'a red square' 'a blue square'"), 1e-6);
}

TEST_F(Pairs, HaveVectorsOfBothInOneSpace) {
  const auto vectors = [&](const std::string& arguments) {
    const auto outcome = zoo("embed softmax --device cpu --normalize --json " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out)["embeddings"].get<std::vector<std::vector<double>>>();
  };
  const auto both = vectors("--text 'a red square' --text 'a blue square' --image new/red.png");
  ASSERT_THAT(both, SizeIs(3));
  EXPECT_THAT(both[0], SizeIs(12));
  const auto cosine = [&](size_t a, size_t b) {
    double sum = 0;
    for (size_t i = 0; i < both[a].size(); ++i) sum += both[a][i] * both[b][i];
    return sum;
  };
  EXPECT_GT(cosine(0, 2), cosine(1, 2));
  EXPECT_EQ(vectors("--image new/red.png")[0], both[2]);
  EXPECT_EQ(vectors("--text 'a red square'")[0], both[0]);
  dir_->write("texts.txt", "a red square\na blue square\n");
  EXPECT_EQ(vectors("--input texts.txt --image new/red.png"), both);
  EXPECT_THAT(vectors("--text 'a red square' --pooling mean")[0], SizeIs(16)) << "hidden states of the text";
}

TEST_F(Pairs, AreEvaluatedOnFilesOfTheUser) {
  const auto metrics =
      json::parse(zoo("evaluate softmax --device cpu --data pictures/captions.jsonl --json").out);
  EXPECT_EQ(metrics.at("images"), 48);
  EXPECT_EQ(metrics.at("text_recall_at_1"), 1.0);
  EXPECT_EQ(metrics.at("image_recall_at_5"), 1.0);
  EXPECT_LT(metrics.at("loss"), 1.5);
}

TEST_F(Pairs, NamesOfClassesAreTextsInATemplate) {
  dir_->write("classes.yaml", R"(
init_from: softmax
task: {type: image_text_similarity, template: 'a {} square'}
data: {train: classes, valid: classes}
training: {steps: 1, batch_size: 12, optimizer: {lr: 1.0e-9}, evaluate_every: 1, threads: 1}
)");
  const auto outcome = zoo("train classes.yaml --device cpu --out classes-run");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto metrics = json::parse(zoo("evaluate classes-run --device cpu --json").out);
  EXPECT_EQ(metrics.at("text_recall_at_1"), 1.0);
  EXPECT_THAT(zoo("predict classes-run --device cpu --image new/blue.png --labels red blue").out,
              StartsWith("blue\t"))
      << "the template of the training";
}

TEST_F(Pairs, GoOnWithTheSameBits) {
  const std::string set =
      " --set model.dropout=0.1 --set data.images.augment.flip=0.5 --set training.steps=40 "
      "--set training.evaluate_every=20 --set training.checkpoint_every=1";
  ASSERT_EQ(zoo("train pairs.yaml --device cpu --out whole" + set).code, 0);
  for (const int64_t step : {0, 7, 22}) {
    ZooProcess process(*dir_, "train pairs.yaml --device cpu --out parts --resume" + set);
    const auto reached = [&] {
      const auto checkpoint = newest_checkpoint(*dir_ / "parts");
      return checkpoint && *step_of(*checkpoint) >= step;
    };
    for (int i = 0; i < 60000 && step > 0 && !reached(); ++i) ::usleep(1000);
    process.kill(SIGKILL);
    process.finish();
  }
  ASSERT_EQ(zoo("train pairs.yaml --device cpu --out parts --resume" + set).code, 0);
  EXPECT_THAT(lasting_differences(*dir_ / "parts", *dir_ / "whole"), IsEmpty());
}

TEST_F(Pairs, MistakesAreOneLine) {
  EXPECT_THAT(problem("predict softmax --device cpu --image new"),
              HasSubstr("softmax compares pictures with texts: name some"));
  EXPECT_THAT(problem("predict softmax --device cpu --image new --labels a --template photo"),
              HasSubstr("--template: it has no {} for the label"));
  EXPECT_THAT(problem("predict softmax --device cpu --text hello --labels a"),
              HasSubstr("--text: softmax reads images: use --image"));
  const auto refused = [&](const std::string& set) {
    return problem("train pairs.yaml --device cpu --out refused --set " + set);
  };
  EXPECT_THAT(refused("training.label_smoothing=0.1"), HasSubstr("label_smoothing"));
  EXPECT_THAT(refused("data.images.augment.mixup=0.2"), HasSubstr("cannot be mixed"));
  EXPECT_THAT(refused("training.batch_size=auto --set training.effective_batch_size=12"),
              HasSubstr("learns from all pairs of a batch: give a number"));
  std::string config = kConfig;
  const std::string task = "task: image_text_similarity";
  config.replace(config.find(task), task.size(), "task: {type: image_text_similarity, template: photo}");
  dir_->write("photo.yaml", config);
  EXPECT_THAT(problem("train photo.yaml --device cpu --out refused"), HasSubstr("has no {} for the text"));
  EXPECT_THAT(problem("train pairs.yaml --device cpu --nproc 2 --out refused"),
              HasSubstr("cannot be split into processes"));
  dir_->write("pictures/empty.jsonl", "{\"image\": \"0.png\", \"caption\": \" \"}\n");
  EXPECT_THAT(refused("data.train=pictures/empty.jsonl"),
              HasSubstr("empty.jsonl:1: the picture has no text"));
}

}  // namespace
}  // namespace zoo::testing
