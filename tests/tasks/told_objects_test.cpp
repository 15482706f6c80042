// Scores and predictions of objects, by a detector that says what the test has told it.

#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "checkpoints/initial_weights.h"
#include "tasks/images/set_criterion.h"
#include "tasks/metrics/detection_metrics.h"
#include "tasks/task.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kPictures = 6, kHeight = 20, kTwice = 2 * kHeight;

/// Says of each picture what it was told: logits (L, N, Q, C+1) and boxes (L, N, Q, 4) of N pictures.
class ToldDetector final : public Model, public DetectingModel {
 public:
  explicit ToldDetector(Detections told) : told_(std::move(told)) {
    register_buffer("nothing", torch::zeros({1}));
  }
  Detections detect(const Batch& batch) override {
    const auto numbers =
        batch.fields.contains("image_numbers") ? batch.field("image_numbers") : torch::arange(batch.n_rows());
    return {.logits = told_.logits.index_select(1, numbers), .boxes = told_.boxes.index_select(1, numbers)};
  }
  int64_t n_queries() const override { return told_.logits.size(2); }
  DetectingModel* detecting() override { return this; }
  torch::Tensor features(const Batch&) override { return {}; }
  torch::Tensor logits(const torch::Tensor&) override { return {}; }
  int64_t n_outputs() const override { return told_.logits.size(3); }
  torch::Tensor hidden_states(const Batch&) override { return {}; }
  void attention_maps(const Batch&, AttentionMaps&) override {}

 private:
  Detections told_;
};

/// Pictures that are twice as wide as high, each with one object "b" of 20 × 10 pixels at (4, 2).
class ToldObjects : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = nlohmann::json::object();
    file["categories"] = {{{"id", 1}, {"name", "a"}}, {{"id", 2}, {"name", "b"}}};
    for (int64_t i = 0; i < kPictures; ++i) {
      const auto name = fmt::format("wide-{}.png", i);
      Image image{.shape = {.channels = 1, .height = kHeight, .width = kTwice}, .pixels = {}};
      image.pixels.assign(static_cast<size_t>(kHeight * kTwice), static_cast<uint8_t>(40 * i));
      world_.dir().write("data/images/" + name, encode_png(image));
      file["images"].push_back({{"id", i}, {"file_name", name}, {"height", kHeight}, {"width", kTwice}});
      file["annotations"].push_back({{"image_id", i}, {"category_id", 2}, {"bbox", {4, 2, 20, 10}}});
    }
    world_.dir().write("data/wide.json", file.dump());
    task_ = task({});
  }

  std::unique_ptr<Task> task(std::vector<std::string> more) const {
    more.insert(more.begin(), {"data.train=wide.json", "data.valid=wide.json", "training.batch_size=2"});
    return task_of_new_run(world_.detection_experiment(more));
  }

  /// The first layer says nothing that is right. In the last one query 0 has the object's box and class;
  /// query 1 has another box, of which it would be surer than query 0 if "no object" were not likelier still.
  static Detections right_in_the_last_layer() {
    auto logits = torch::zeros({2, kPictures, 2, 3});
    auto boxes = torch::full({2, kPictures, 2, 4}, 0.1);
    logits[0].copy_(torch::tensor({9.0F, 0.0F, 0.0F}).expand({kPictures, 2, 3}));
    logits[1].select(1, 0).copy_(torch::tensor({0.0F, 2.0F, -10.0F}).expand({kPictures, 3}));
    logits[1].select(1, 1).copy_(torch::tensor({0.0F, 5.0F, 9.0F}).expand({kPictures, 3}));
    boxes[1].select(1, 0).copy_(torch::tensor({14.0F / 40, 7.0F / 20, 20.0F / 40, 10.0F / 20}));
    boxes[1].select(1, 1).copy_(torch::tensor({0.8F, 0.8F, 0.2F, 0.2F}));
    return {.logits = logits, .boxes = boxes};
  }

  TinyWorld world_;
  std::unique_ptr<Task> task_;
};

// The score of a class is its share of all classes and of "no object", and the last layer is the answer.
TEST_F(ToldObjects, OfTheLastLayerAreScored) {
  ToldDetector detector(right_in_the_last_layer());
  const auto metrics = task_->evaluate(detector, Split::valid);
  for (const char* name : {"map", "map_50", "map_75", "map_small", "recall_1", "recall_10", "recall_100"})
    EXPECT_NEAR(metrics.at(name), 1, 1e-9) << name;
  for (const char* name : {"map_medium", "map_large"})
    EXPECT_FALSE(metrics.contains(name)) << name << ": there are no such objects";
  EXPECT_EQ(metrics.at("images"), kPictures);
}

TEST_F(ToldObjects, OfPicturesThatWereNotSeenDoNotCount) {
  ToldDetector detector(right_in_the_last_layer());
  const auto metrics = task_->evaluate(detector, Split::valid, {.max_batches = 1});
  EXPECT_EQ(metrics.at("images"), 2);
  EXPECT_NEAR(metrics.at("recall_100"), 1, 1e-9);
  EXPECT_NEAR(metrics.at("map"), 1, 1e-9);
}

TEST_F(ToldObjects, OfTheWrongClassAreWrong) {
  auto told = right_in_the_last_layer();
  told.logits[1][0][0].copy_(torch::tensor({2.0F, 0.0F, -10.0F}));  // one of six is called "a"
  ToldDetector detector(told);
  EXPECT_NEAR(task_->evaluate(detector, Split::valid).at("recall_100"), 5.0 / 6, 1e-9);
}

// The loss that is reported is the loss that is trained: per picture, of the layers that the task names.
TEST_F(ToldObjects, HaveTheLossThatIsTrained) {
  const auto told = right_in_the_last_layer();
  ToldDetector detector(told);
  for (const bool auxiliary : {true, false}) {
    const auto other = task({fmt::format(
        "task={{type: object_detection, auxiliary: {}, loss: {{boxes: 3}}, no_object_weight: 0.2}}",
        auxiliary)});
    auto& batches = other->batches(Split::valid);
    double sum = 0;
    for (int64_t i = 0; i < batches.n_batches(0); ++i) {
      const auto batch = batches.batch(0, i);
      const auto found = detector.detect(batch);
      for (int64_t layer = auxiliary ? 0 : 1; layer < 2; ++layer) {
        const SetCriterionConfig config{.loss = {.boxes = 3}, .no_object_weight = 0.2};
        const auto losses = set_losses(found.logits[layer], found.boxes[layer], batch, config);
        sum += static_cast<double>(batch.n_rows()) *
               (losses.classes + 3 * losses.boxes + 2 * losses.overlap).item<double>();
      }
    }
    EXPECT_NEAR(other->evaluate(detector, Split::valid).at("loss"), sum / kPictures, 1e-5) << auxiliary;
  }
}

// Boxes are in pixels of the picture, whose sides differ; scores are probabilities of the likeliest class.
TEST_F(ToldObjects, ArePredictedInPixels) {
  ToldDetector detector(right_in_the_last_layer());
  const auto file = world_.path("data/images/wide-0.png").string();
  const auto predictions = task_->predict(detector, {file, file});
  ASSERT_EQ(predictions.size(), 2U);
  for (const auto& prediction : predictions) {
    const auto& objects = prediction.objects();
    ASSERT_EQ(objects.size(), 2U);
    const auto& [label, score, box, query] = objects[0];
    EXPECT_EQ(label, "b");
    EXPECT_EQ(query, 0);
    EXPECT_NEAR(score, std::exp(2) / (1 + std::exp(2) + std::exp(-10)), 1e-6);
    for (const auto& [value, wanted] :
         {std::pair(box.x, 4.0), {box.y, 2.0}, {box.width, 20.0}, {box.height, 10.0}})
      EXPECT_NEAR(value, wanted, 1e-4);
    EXPECT_EQ(objects[1].query, 1);
    EXPECT_NEAR(objects[1].score, std::exp(5) / (1 + std::exp(5) + std::exp(9)), 1e-6);
    EXPECT_NEAR(objects[1].box.x, 28, 1e-4);
    EXPECT_NEAR(objects[1].box.height, 4, 1e-4);
  }
}

TEST_F(ToldObjects, AreNamedInSamplesIfTheyAreLikely) {
  ToldDetector detector(right_in_the_last_layer());
  const auto samples = task_->samples(detector);
  ASSERT_EQ(samples.size(), 5U);
  EXPECT_EQ(samples[4].input, "validation image 5");
  EXPECT_EQ(samples[4].output, "b") << "query 1 is sure of nothing";
  EXPECT_EQ(samples[4].reference, "b");
}

TEST(SetCriterion, HasTheLossOfEveryLayerOrOfTheLast) {
  const auto logits = torch::randn({3, 2, 4, 3}), boxes = torch::rand({3, 2, 4, 4}) * 0.4 + 0.1;
  Batch batch;
  batch.fields = {{"boxes", torch::rand({2, 1, 4}) * 0.4 + 0.1},
                  {"box_classes", torch::tensor({{0}, {1}}, torch::kInt64)},
                  {"batch_counts", torch::ones({2, 2}, torch::kInt64)}};
  std::vector<double> by_layer;
  for (int64_t layer = 0; layer < 3; ++layer)
    by_layer.push_back(2 * set_losses(logits[layer], boxes[layer], batch, {}).total({}).item<double>());
  const auto loss = [&](bool auxiliary) {
    return SetCriterion({.auxiliary = auxiliary})
        .loss({.logits = logits, .boxes = boxes}, batch)
        .item<double>();
  };
  EXPECT_NEAR(loss(true), by_layer[0] + by_layer[1] + by_layer[2], 1e-4);
  EXPECT_NEAR(loss(false), by_layer[2], 1e-5);
}

// A threshold is met by exactly that overlap, as in pycocotools.
TEST(DetectionMetrics, AnOverlapOfExactlyTheThresholdCounts) {
  const std::vector<AnnotatedObject> marked = {{.image = 0, .category = 0, .box = {0, 0, 8, 8}, .area = 64}};
  const auto of_height = [&](double height) {
    const std::vector<DetectedObject> detected = {
        {.image = 0, .category = 0, .box = {0, 0, 8, height}, .score = 0.9}};
    return detection_metrics(marked, detected);
  };
  EXPECT_DOUBLE_EQ(of_height(4).precision_50, 1);
  EXPECT_DOUBLE_EQ(of_height(4).precision, 0.1) << "the first of ten thresholds";
  EXPECT_DOUBLE_EQ(of_height(6).precision_75, 1);
  EXPECT_DOUBLE_EQ(of_height(6).precision, 0.6);
  EXPECT_DOUBLE_EQ(of_height(3.99).precision_50, 0);
}

// Of category 0 there are two objects. The first and the third of three detections find them: up to a recall
// of 1/2 the precision is 1, and 2/3 beyond it. Category 1 has one object, which is found.
TEST(DetectionMetrics, AreMeansOverRecallsAndCategories) {
  const Box here{0, 0, 10, 10}, there{50, 50, 10, 10}, nowhere{100, 100, 10, 10};
  const std::vector<AnnotatedObject> marked = {{.image = 0, .category = 0, .box = here, .area = 100},
                                               {.image = 1, .category = 0, .box = there, .area = 100},
                                               {.image = 1, .category = 1, .box = here, .area = 100}};
  const std::vector<DetectedObject> detected = {{.image = 1, .category = 0, .box = there, .score = 0.7},
                                                {.image = 0, .category = 0, .box = here, .score = 0.9},
                                                {.image = 1, .category = 0, .box = nowhere, .score = 0.8},
                                                {.image = 1, .category = 1, .box = here, .score = 0.1},
                                                {.image = 0, .category = 5, .box = here, .score = 1.0}};
  const auto m = detection_metrics(marked, detected);
  const double of_first = (51 + 50 * 2.0 / 3) / 101;  // of the recalls 0, 0.01, … 1
  ASSERT_EQ(m.categories.size(), 2U);
  EXPECT_NEAR(m.categories[0].precision, of_first, 1e-9);
  EXPECT_NEAR(m.categories[1].precision, 1, 1e-9);
  EXPECT_NEAR(m.precision, (of_first + 1) / 2, 1e-9);
  EXPECT_NEAR(m.precision_50, m.precision, 1e-12) << "the boxes are exact";
  EXPECT_NEAR(m.precision_small, m.precision, 1e-12);
  EXPECT_EQ(m.precision_large, -1);
  // With one detection of an image, the wrong one of image 1 is in the way.
  EXPECT_NEAR(m.recall_1, (1.0 / 2 + 1) / 2, 1e-9);
  EXPECT_NEAR(m.recall_10, 1, 1e-9);
  EXPECT_NEAR(m.recall_100, 1, 1e-9);
}

// An object is found once: a second detection of it is wrong. A crowd may be found often, and never counts.
TEST(DetectionMetrics, AnObjectIsFoundOnce) {
  const Box here{0, 0, 10, 10}, crowd{50, 50, 40, 40};
  const std::vector<AnnotatedObject> marked = {
      {.image = 0, .category = 0, .box = here, .area = 100},
      {.image = 0, .category = 0, .box = crowd, .area = 1600, .is_crowd = true}};
  std::vector<DetectedObject> detected = {{.image = 0, .category = 0, .box = {55, 55, 10, 10}, .score = 0.95},
                                          {.image = 0, .category = 0, .box = {60, 60, 10, 10}, .score = 0.92},
                                          {.image = 0, .category = 0, .box = here, .score = 0.9},
                                          {.image = 0, .category = 0, .box = here, .score = 0.8}};
  EXPECT_NEAR(detection_metrics(marked, detected).precision, 1, 1e-9);
  detected.back().score = 0.99;  // before the crowd's: still the object is found first
  EXPECT_NEAR(detection_metrics(marked, detected).precision, 1, 1e-9);
  detected.push_back({.image = 0, .category = 0, .box = {10, 10, 10, 10}, .score = 0.999});
  EXPECT_NEAR(detection_metrics(marked, detected).precision, 0.5, 1e-9);
  EXPECT_EQ(detection_metrics({}, detected).precision, -1);
  EXPECT_NEAR(detection_metrics(marked, {}).precision, 0, 1e-12);
}

// Small objects end at 32², medium ones at 96²; both ends belong to both.
TEST(DetectionMetrics, AreasAreToldApartByTheAreaOfTheObject) {
  const auto found = [](double area) {
    const std::vector<AnnotatedObject> marked = {
        {.image = 0, .category = 0, .box = {0, 0, 200, 200}, .area = area}};
    const std::vector<DetectedObject> detected = {
        {.image = 0, .category = 0, .box = {0, 0, 200, 200}, .score = 0.9}};
    const auto m = detection_metrics(marked, detected);
    // A precision of 1 is rounded down.
    return std::vector<int64_t>{std::llround(m.precision_small), std::llround(m.precision_medium),
                                std::llround(m.precision_large)};
  };
  EXPECT_THAT(found(1000), ElementsAre(1, -1, -1));
  EXPECT_THAT(found(1024), ElementsAre(1, 1, -1));
  EXPECT_THAT(found(9216), ElementsAre(-1, 1, 1));
  EXPECT_THAT(found(9217), ElementsAre(-1, -1, 1));
}

}  // namespace
}  // namespace zoo::testing
