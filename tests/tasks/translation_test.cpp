#include "tasks/text/translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "base/text.h"
#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;

/// A run that knows these translations by heart, with an encoder-decoder or a decoder.
class Translator {
 public:
  explicit Translator(const std::string& architecture) {
    std::string sources, targets;
    for (int i = 0; i < 90; ++i) {
      sources += i % 3 == 0 ? "aa\n" : i % 3 == 1 ? "bbbb\n" : "c\n";
      targets += i % 3 == 0 ? "yes it is so\n" : i % 3 == 1 ? "no\n" : "or so\n";
    }
    world_.dir().write("data/pairs.de", sources);
    world_.dir().write("data/pairs.en", targets);
    train(world_.experiment("text_to_text", {"model.architecture=" + architecture, "model.max_positions=48",
                                             "model.dropout=0", "training.steps=120",
                                             "training.batch_size=16", "generation.max_new_tokens=1000"}),
          {.run_dir = world_.path("run")});
  }
  Run open() const { return Run::open(world_.path("run")); }
  const TinyWorld& world() const { return world_; }

 private:
  TinyWorld world_;
};

/// A model with different outputs for all sources, most of them endless.
std::shared_ptr<Model> babbler(const Task& task) {
  torch::manual_seed(1);
  auto model = initialized_model(task.experiment(), task);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.normal_(0.0, 1.0);
  return model;
}

TEST(Translate, BothFamiliesWriteWhatTheyHaveLearnt) {
  for (const char* architecture : {"encoder_decoder", "decoder"}) {
    SCOPED_TRACE(architecture);
    const Translator translator(architecture);
    const auto run = translator.open();
    for (const int64_t beam : {1, 3}) {
      // One batch per source, or one for all; the order of the lines stays the same.
      for (const int64_t batch_size : {1, 64}) {
        std::vector<std::pair<int64_t, int64_t>> seen;
        const TranslateOptions options{
            .generation = {.max_new_tokens = 30, .beam = beam, .temperature = 2, .batch_size = batch_size},
            .on_progress = [&](int64_t done, int64_t all) { seen.emplace_back(done, all); }};
        EXPECT_THAT(translate(run.model(), run.task(), {"bbbb", "aa", "c", "aa"}, options),
                    ElementsAre("no", "yes it is so", "or so", "yes it is so"));
        EXPECT_EQ(seen.back(), std::pair(int64_t{4}, int64_t{4}));
        EXPECT_EQ(seen.size(), batch_size == 1 ? 4U : 1U);
      }
    }
    const auto translations = run.translate(Split::valid);
    EXPECT_EQ(translations.sources.size(), 9U);
    EXPECT_EQ(translations.outputs, translations.references);
    EXPECT_DOUBLE_EQ(translation_metrics(translations).at("bleu"), 100);
    EXPECT_DOUBLE_EQ(translation_metrics(translations).at("chrf"), 100);

    translator.world().dir().write("data/other.de", "c\naa\n");
    translator.world().dir().write("data/other.en", "or so\nyes it is not so\n");
    const auto other = run.translate(Split::valid, {"other"});
    EXPECT_THAT(other.outputs, ElementsAre("or so", "yes it is so"));
    EXPECT_LT(translation_metrics(other).at("bleu"), 100);
    EXPECT_THROW(run.translate(Split::test), DataError);
  }
}

// The options would allow more tokens than the model has positions.
TEST(Translate, StaysWithinTheLengthsOfTraining) {
  const TinyWorld world;
  for (const char* architecture : {"encoder_decoder", "decoder"}) {
    for (const auto& [source_length, target_length] : {std::pair(24, 8), std::pair(8, 24)}) {
      SCOPED_TRACE(fmt::format("{}, {} to {}", architecture, source_length, target_length));
      const auto task = task_of_new_run(world.experiment(
          "text_to_text",
          {std::string("model.architecture=") + architecture, "model.max_positions=32",
           fmt::format("data.sequence_length={}", source_length),
           fmt::format("data.target_length={}", target_length), "generation.max_new_tokens=1000"}));
      const auto model = babbler(*task);
      const auto longest = static_cast<size_t>(target_length);
      for (const int64_t beam : {1, 2}) {
        const auto outputs = translate(*model, *task, {std::string(100, 's'), "sea", ""},
                                       {.generation = {.max_new_tokens = 1000, .beam = beam}});
        for (const auto& output : outputs) EXPECT_LE(decode_utf8(output).size(), longest) << output;
        EXPECT_THAT(outputs, ::testing::Contains(::testing::SizeIs(longest)))
            << "all of them ended before: a weak test";
      }
      EXPECT_EQ(task->samples(*model, {std::string(100, 's')}).size(), 1U);
    }
  }
}

TEST(Translate, MakesLinesOfTextOfAnyBytes) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.experiment(
      "text_to_text", {"data.tokenizer.type=byte", "data.target_length=3", "model.output_bias=true"}));
  const auto model = initialized_model(task->experiment(), *task);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.zero_();
  auto bias = model->named_parameters()["head.output.bias"];
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a", "aaa"}, {"\n", "   "}, {"\r", "   "}, {"\xFF", "\uFFFD\uFFFD\uFFFD"}};
  for (const auto& [byte, line] : cases) {  // the model writes only this byte
    const auto id = task->tokenizer().encode(byte).at(0);
    bias[id] = 1;
    EXPECT_THAT(translate(*model, *task, {"sea"}), ElementsAre(line));
    bias[id] = 0;
  }
}

TEST(Translate, RefusesOptionsOutOfRange) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.experiment("text_to_text"));
  const auto model = initialized_model(task->experiment(), *task);
  EXPECT_EQ(message_of<UsageError>([&] { translate(*model, *task, {"a"}, {.generation = {.beam = 0}}); }),
            "beam is 0, and must be between 1 and 1024");
}

}  // namespace
}  // namespace zoo::testing
