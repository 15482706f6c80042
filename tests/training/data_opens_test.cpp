// How often the files of the data are opened before the first step of a training.

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/load_experiment.h"
#include "experiments/own_text.h"
#include "io/files.h"
#include "tests/support/file_opens.h"
#include "tests/support/training.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;
using ::testing::Pair;

/// Prepares a training and ends it before its first step.
void prepare(const Experiment& experiment, const std::filesystem::path& run,
             ExistingRun existing = ExistingRun::replace) {
  const auto result =
      train(experiment, {.run_dir = run, .existing = existing, .should_stop = [] { return true; }});
  ASSERT_EQ(result.end, TrainEnd::interrupted);
}

struct DataCase {
  std::string task;
  std::vector<std::string> files, overrides = {};
};

/// Rows of table.tsv as lines of JSON.
std::string as_json_lines(const std::string& table) {
  std::string lines;
  std::istringstream rows(table.substr(table.find('\n') + 1));
  for (std::string row; std::getline(rows, row);) {
    const size_t tab = row.find('\t');
    lines += nlohmann::json{{"sentence", row.substr(0, tab)}, {"label", row.substr(tab + 1)}}.dump() + "\n";
  }
  return lines;
}

TEST(DataOpens, AreAtMostThreeBeforeTheFirstStep) {
  const TinyWorld world;
  world.dir().write("data/table.jsonl", as_json_lines(read_file(world.path("data/table.tsv"))));
  const std::vector<std::string> sentencepiece{"data.tokenizer.type=sentencepiece",
                                               "data.tokenizer.vocab_size=60",
                                               "data.tokenizer.byte_fallback=false"};
  auto rows = sentencepiece;
  rows.insert(rows.end(), {"data.train=table.jsonl", "data.documents=line"});
  for (const auto& [task, files, overrides] : std::vector<DataCase>{
           {"language_modeling", {"text.txt"}},
           {"language_modeling", {"text.txt"}, sentencepiece},
           {"language_modeling", {"text.txt"}, {"data.documents=line", "training.evaluate_at_start=true"}},
           {"language_modeling", {"table.jsonl"}, rows},
           {"masked_language_modeling", {"text.txt"}, {"data.documents=line"}},
           {"marked_tokens", {"text.txt"}, {"model.architecture=decoder", "data.answer_mark=\" \""}},
           {"text_to_text", {"pairs.de", "pairs.en"}},
           {"text_classification", {"table.tsv"}},
           {"text_classification", {"table.jsonl"}, {"data.train=table.jsonl"}},
           {"token_classification", {"tagged.tsv"}},
           {"image_classification", {"train-images-idx3", "train-labels-idx1"}},
           {"object_detection", {"pictures.json"}},
           {"speech_recognition", {"recordings.tsv"}}}) {
    SCOPED_TRACE(fmt::format("{} {}", task, files.front()));
    const auto experiment = world.experiment(task, overrides);
    std::vector<std::filesystem::path> paths;
    for (const auto& file : files) paths.push_back(world.path("data/" + file));
    FileOpens opens(paths);
    prepare(experiment, world.path("run"));
    EXPECT_THAT(opens.counts(), Each(Pair(_, AllOf(Ge(1), Le(3)))));
  }
}

TEST(DataOpens, AreAtMostThreeWhereTheProgramChoosesTheConfiguration) {
  const TinyWorld world;
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("line {} of a text that is long enough\n", i * i);
  const auto table = read_file(world.path("data/table.tsv"));
  std::string rows;
  for (int i = 0; i < 40; ++i)
    rows += nlohmann::json{{"text", fmt::format("row {} of a table", i)}}.dump() + "\n";
  const std::vector<std::filesystem::path> files{
      world.dir().write("own.txt", text), world.dir().write("own.tsv", table),
      world.dir().write("labels.jsonl", as_json_lines(table)), world.dir().write("rows.jsonl", rows)};
  for (const auto& file : files) {
    SCOPED_TRACE(file);
    FileOpens opens({file});
    ASSERT_TRUE(are_own_texts({file}));
    prepare(recipe_for({file}).experiment, world.path("run"));
    EXPECT_THAT(opens.counts(), Each(Pair(_, AllOf(Ge(1), Le(3)))));
  }
}

TEST(DataOpens, FilesOfAnInitialModelAreOpenedOnce) {
  const TinyWorld world;
  train(world.experiment("language_modeling"), {.run_dir = world.path("first")});
  const auto experiment = world.experiment(
      "language_modeling", {"init_from=" + world.path("first").string(), "data.valid_fraction=0.2"});
  FileOpens opens({world.path("first/model.safetensors"), world.path("first/tokenizer.json"),
                   world.path("first/config.yaml")});
  prepare(experiment, world.path("second"));
  EXPECT_THAT(opens.counts(), Each(Pair(_, 1)));
}

}  // namespace
}  // namespace zoo::testing
