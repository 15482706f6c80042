// What checkpoints and runs hold is what they give back.

#include "checkpoints/checkpoint.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "checkpoints/base_weights.h"
#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "checkpoints/stored_model.h"
#include "checkpoints/weight_average.h"
#include "io/progress.h"
#include "io/safetensors.h"
#include "tests/support/key_change.h"
#include "tests/support/small_models.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

/// What a training changes, with other numbers for each seed.
struct Parts {
  explicit Parts(uint64_t seed)
      : model(random_model(small_config(Architecture::decoder), purpose_of(Architecture::decoder), seed)),
        average(*model, 0.5) {
    torch::manual_seed(seed);
    optimizer = {{"first/a", torch::randn({3, 2})},
                 {"second/a", torch::rand({3, 2})},
                 {"step", torch::tensor({static_cast<int64_t>(seed)})}};
    for (auto& parameter : model->parameters()) parameter.detach().mul_(1.5);
    average.update();
  }
  TrainedParts trained() { return {.model = *model, .optimizer = optimizer, .average = average.state()}; }
  std::vector<TensorMap> tensors() const { return {named_tensors(*model), optimizer, average.state()}; }

  std::shared_ptr<Model> model;
  TensorMap optimizer;
  MovingAverage average;
};

void expect_equal(const std::vector<TensorMap>& actual, const std::vector<TensorMap>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].size(), expected[i].size());
    for (const auto& [name, tensor] : expected[i])
      EXPECT_TRUE(torch::equal(actual[i].at(name), tensor)) << name;
  }
}

/// No two numbers are equal.
TrainingState some_state() {
  return {.step = 12,
          .next_batch = {.epoch = 3, .index = 45},
          .tokens = 678,
          .flops = 9.1e15,
          .seconds = 23.4,
          .peak_memory_bytes = 5678,
          .peak_resident_bytes = 9123,
          .best_score = -0.456,
          .best_step = 7,
          .loss_since_log = 8.9,
          .steps_since_log = 2,
          .sample_bytes = 345,
          .loss_scale = {.value = 512, .good_steps = 67, .skipped = 8},
          .micro_batch_size = 16,
          .finished = false,
          .data = "0123abcd"};
}

void expect_same(const TrainingState& a, const TrainingState& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.next_batch.epoch, b.next_batch.epoch);
  EXPECT_EQ(a.next_batch.index, b.next_batch.index);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.flops, b.flops);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.peak_memory_bytes, b.peak_memory_bytes);
  EXPECT_EQ(a.peak_resident_bytes, b.peak_resident_bytes);
  EXPECT_EQ(a.best_score, b.best_score);
  EXPECT_EQ(a.best_step, b.best_step);
  EXPECT_EQ(a.loss_since_log, b.loss_since_log);
  EXPECT_EQ(a.steps_since_log, b.steps_since_log);
  EXPECT_EQ(a.sample_bytes, b.sample_bytes);
  EXPECT_EQ(a.loss_scale, b.loss_scale);
  EXPECT_EQ(a.micro_batch_size, b.micro_batch_size);
  EXPECT_EQ(a.finished, b.finished);
  EXPECT_EQ(a.data, b.data);
}

class CheckpointFiles : public ::testing::Test {
 protected:
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& path : checkpoints_of(run_)) result.push_back(path.filename().string());
    return result;
  }

  TempDir dir_;
  fs::path run_ = dir_.path();
};

TEST_F(CheckpointFiles, GiveBackEverythingThatATrainingChanges) {
  Parts saved(1), loaded(2);
  save_checkpoint(run_, saved.trained(), some_state(), {});
  const auto checkpoint = newest_checkpoint(run_).value();
  EXPECT_EQ(checkpoint.filename(), "step-12");
  expect_same(load_checkpoint(checkpoint, loaded.trained()), some_state());
  expect_equal(loaded.tensors(), saved.tensors());
  // The average goes on with its number of updates.
  saved.average.update();
  loaded.average.update();
  expect_equal(loaded.tensors(), saved.tensors());
  // Numbers that have no decimal form, and what is not there.
  auto state = some_state();
  state.step = 13;
  state.seconds = 1.0 / 3;
  state.best_score = std::nullopt;
  state.finished = true;
  save_checkpoint(run_, saved.trained(), state, {});
  expect_same(read_training_state(newest_checkpoint(run_).value()), state);
}

TEST_F(CheckpointFiles, OfOlderProgramsLackSomeNumbers) {
  Parts parts(1);
  save_checkpoint(run_, parts.trained(), some_state(), {});
  const auto file = newest_checkpoint(run_).value() / "state.json";
  auto json = nlohmann::json::parse(read_file(file));
  for (const char* const key : {"loss_scale", "micro_batch_size", "finished", "data"}) json.erase(key);
  write_file_atomically(file, json.dump());
  auto expected = some_state();
  expected.loss_scale = {};
  expected.micro_batch_size = 0;
  expected.finished = true;
  expected.data = "";
  expect_same(read_training_state(file.parent_path()), expected);
  for (const char* const key :
       {"step", "epoch", "batch", "tokens", "best_score", "best_step", "sample_bytes"}) {
    auto fewer = json;
    fewer.erase(key);
    write_file_atomically(file, fewer.dump());
    EXPECT_THAT(message_of<CheckpointError>([&] { read_training_state(file.parent_path()); }),
                HasSubstr(std::string(key) + " is missing"));
  }
}

TEST_F(CheckpointFiles, StayAsTheirRuleSays) {
  Parts parts(1);
  const auto save = [&](int64_t step, const KeptCheckpoints& kept) {
    auto state = some_state();
    state.step = step;
    save_checkpoint(run_, parts.trained(), state, kept);
    EXPECT_EQ(newest_checkpoint(run_), run_ / "checkpoints" / fmt::format("step-{}", step));
  };
  for (const int64_t step : {4, 8, 9, 12}) save(step, {.newest = 10});
  EXPECT_THAT(names(), ElementsAre("step-12", "step-9", "step-8", "step-4"));
  // The new one, and one more at a multiple of 4.
  save(14, {.newest = 2, .every = 4});
  EXPECT_THAT(names(), ElementsAre("step-14", "step-12"));
  save(16, {.newest = 3, .every = 4});
  EXPECT_THAT(names(), ElementsAre("step-16", "step-12"));
  save(20, {.newest = 1});
  EXPECT_THAT(names(), ElementsAre("step-20"));
  save(18, {.newest = 2});  // an earlier step of a training that began anew
  EXPECT_THAT(names(), ElementsAre("step-20", "step-18"));
}

TEST_F(CheckpointFiles, OfOtherPartsAreRefused) {
  Parts saved(1), other(2);
  save_checkpoint(run_, saved.trained(), some_state(), {});
  const auto checkpoint = newest_checkpoint(run_).value();
  const auto problem = [&](const TrainedParts& parts) {
    return message_of<CheckpointError>([&] { load_checkpoint(checkpoint, parts); });
  };
  auto more = other.trained(), fewer = other.trained(), of_another_base = other.trained();
  more.optimizer.emplace("third/a", torch::zeros({1}));
  EXPECT_THAT(problem(more),
              AllOf(HasSubstr("optimizer.safetensors"), HasSubstr("it has no tensor 'third/a'")));
  fewer.optimizer.erase("step");
  EXPECT_THAT(problem(fewer), HasSubstr("its tensor 'step' is not in the model"));
  expect_same(load_checkpoint(checkpoint, fewer, Wanted::some_tensors), some_state());
  of_another_base.base = "of another base";
  EXPECT_THAT(problem(of_another_base), HasSubstr("belongs to another base.safetensors"));
}

// ---- runs

/// Every key that can be changed, in each task: what is written is read.
class KeysOfRuns : public ::testing::TestWithParam<const char*> {};

std::string value_of(const Experiment& experiment, const std::string& key) {
  for (const auto& [name, value] : flatten(experiment))
    if (name == key) return value;
  return "none";
}

TEST_P(KeysOfRuns, AreReadAsTheyWereWritten) {
  const TinyWorld world;
  const auto experiment = world.experiment(GetParam());
  int n_written = 0;
  const auto read_back = [&](const Experiment& written) {
    const auto dir = world.path(fmt::format("run-{}", n_written++));
    write_run(dir, written, {}, [](const fs::path&) {});
    return read_run_experiment(dir);
  };
  KeyChange all;
  auto copy = experiment;
  describe(all, copy);
  size_t n_read = 0;
  for (const auto& key : all.keys()) {
    for (size_t number = 0;; ++number) {
      Experiment changed = experiment;
      KeyChange change(key, number);
      describe(change, changed);
      if (!change.is_done()) break;
      if (dump_config(changed) == dump_config(experiment)) continue;  // not a key of this task
      try {
        const auto found = read_back(changed);
        EXPECT_EQ(dump_config(found), dump_config(changed)) << key;
        EXPECT_EQ(value_of(found, key), value_of(changed, key)) << key;
        ++n_read;
      } catch (const Error&) {
        // The value does not fit the others.
      }
    }
  }
  EXPECT_GT(n_read, 100u);
}

INSTANTIATE_TEST_SUITE_P(OfTasks, KeysOfRuns,
                         ::testing::Values("language_modeling", "text_to_text", "text_classification",
                                           "image_classification", "object_detection", "speech_recognition"));

TEST(WrittenRun, IsReadAsItWasWritten) {
  const TinyWorld world;
  auto experiment = world.experiment("text_classification", {"training.steps=7"});
  experiment.name = "Größe: \"x\" # y";
  experiment.generation.stop = {"\n", "- a", "it's", "null", "é€😀\\"};
  experiment.training.max_seconds = 1.0 / 3;
  experiment.training.optimizer.lr = 1e-300;
  const auto task = task_of_new_run(experiment);
  torch::manual_seed(1);
  const auto model = initialized_model(experiment, *task);
  write_run(world.path("run"), experiment, task->vocabulary(), *model);
  const auto run = Run::open(world.path("run"));
  EXPECT_EQ(dump_config(run.experiment()), dump_config(experiment));
  EXPECT_EQ(run.experiment().generation.stop, experiment.generation.stop);
  EXPECT_EQ(run.experiment().name, experiment.name);
  EXPECT_EQ(run.labels(), task->vocabulary().labels);
  EXPECT_EQ(run.tokenizer().encode("sun moon"), task->tokenizer().encode("sun moon"));
  expect_equal(std::vector{named_tensors(run.model())}, std::vector{named_tensors(*model)});
  EXPECT_FALSE(run.model().is_training());
}

/// A run of a task, and its files, which a test changes.
class StoredRun : public ::testing::Test {
 protected:
  void make(const std::string& task, std::vector<std::string> overrides = {}) {
    overrides.emplace_back("training.steps=1");
    train(world_.experiment(task, overrides), {.run_dir = run_});
  }
  std::string opening() const {
    return message_of<CheckpointError>([this] { Run::open(run_); });
  }

  TinyWorld world_;
  fs::path run_ = world_.path("run");
};

// The numbers of COCO's classes have gaps, whose names are all N/A.
TEST_F(StoredRun, HasEachLabelOnceExceptThoseOfGaps) {
  make("text_classification");
  const auto with = [&](const nlohmann::json& labels) {
    write_file_atomically(run_ / "labels.json", labels.dump());
    return opening();
  };
  EXPECT_EQ(with({"blue", "green", "red"}), "no error");
  EXPECT_EQ(with({"N/A", "green", "N/A"}), "no error");
  EXPECT_THAT(Run::open(run_).labels(), ElementsAre("N/A", "green", "N/A"));
  EXPECT_THAT(with({"blue", "green", "blue"}),
              AllOf(HasSubstr("labels.json: damaged: two classes have the name 'blue'")));
  EXPECT_THAT(with({"n/a", "green", "n/a"}), HasSubstr("two classes have the name 'n/a'"));
  EXPECT_THAT(with({"blue", "green"}), HasSubstr("of another architecture"));
  EXPECT_THAT(with(nlohmann::json::array()), HasSubstr("a classifier cannot be used without its labels"));
  EXPECT_THAT(with({"blue", 3, "red"}), HasSubstr("labels.json: damaged: not a list of names in JSON"));
}

TEST_F(StoredRun, NeedsTheTokensThatStandAroundItsTexts) {
  struct Case {
    std::string task;
    std::vector<std::string> overrides, needed;
  };
  const std::vector<Case> cases = {
      {"text_classification", {}, {"cls", "sep"}},
      {"masked_language_modeling", {}, {"cls", "sep"}},
      {"text_to_text", {}, {"bos", "pad", "eos"}},
      {"text_to_text", {"model.architecture=decoder", "model.max_positions=48"}, {"pad", "eos"}},
      {"language_modeling", {}, {}}};
  for (const auto& [task, overrides, needed] : cases) {
    SCOPED_TRACE(fmt::format("{}, {}", task, overrides.size()));
    make(task, overrides);
    const auto whole = nlohmann::json::parse(read_file(run_ / "tokenizer.json"));
    for (const auto& name : needed) {
      auto without = whole;
      const auto id = whole["special"][name].get<int64_t>();
      for (auto& number : without["special"])
        if (!number.is_null() && number.get<int64_t>() > id) number = number.get<int64_t>() - 1;
      without["special"][name] = nullptr;
      write_file_atomically(run_ / "tokenizer.json", without.dump());
      EXPECT_THAT(opening(),
                  HasSubstr(fmt::format("tokenizer.json: the vocabulary has no <{}>, which the task {} needs",
                                        name, task)));
    }
    write_file_atomically(run_ / "tokenizer.json", whole.dump());
    EXPECT_EQ(opening(), "no error");
    fs::remove_all(run_);
  }
}

TEST_F(StoredRun, WithAdaptersHasTheBytesOfItsBase) {
  make("language_modeling", {"training.lora={rank: 2, targets: ['*.q', '*.v']}"});
  const auto bytes =
      static_cast<int64_t>(fs::file_size(run_ / kBaseFile) + fs::file_size(run_ / "adapter.safetensors"));
  EXPECT_EQ(weights_note(run_, bytes),
            fmt::format("reading {} of weights from {}", bytes_text(bytes), run_.string()));
  EXPECT_EQ(weights_note(run_, bytes + 1), std::nullopt);
  // The base and the weights beside it are all weights of the model, each once.
  const SafetensorsFile base(run_ / kBaseFile), adapter(run_ / "adapter.safetensors");
  std::set<std::string> stored;
  for (const auto* const file : {&base, &adapter})
    for (const auto& name : file->names()) EXPECT_TRUE(stored.insert(name).second) << name;
  const auto run = Run::open(run_);
  std::set<std::string> wanted;
  for (const auto& [name, tensor] : named_tensors(run.model())) {
    wanted.insert(name);
    EXPECT_TRUE(torch::equal(tensor, (base.contains(name) ? base : adapter).tensor(name))) << name;
  }
  EXPECT_EQ(stored, wanted);
  EXPECT_THAT(adapter.names(), ::testing::Each(HasSubstr("lora")));
  // Adapters of another base.
  save_safetensors(run_ / "other", {}, {});
  TensorMap tensors;
  for (const auto& name : adapter.names()) tensors.emplace(name, adapter.tensor(name).clone());
  save_safetensors(run_ / "other", tensors, {{"base", "0000"}});
  fs::rename(run_ / "other", run_ / "adapter.safetensors");
  EXPECT_THAT(opening(), HasSubstr("adapter.safetensors: belongs to another base.safetensors"));
}

TEST_F(StoredRun, HasTheStatisticsOfItsPictures) {
  make("image_classification");
  const auto json = nlohmann::json::parse(read_file(run_ / "pixels.json"));
  const auto run = Run::open(run_);
  const auto& pixels = run.task().vocabulary().pixels;
  ASSERT_TRUE(pixels);
  EXPECT_EQ(nlohmann::json(pixels->mean), json["mean"]);
  EXPECT_EQ(nlohmann::json(pixels->deviation), json["deviation"]);
  for (const char* const wrong :
       {R"({"mean": [0.5], "deviation": [0]})", R"({"mean": [0.5], "deviation": [-1]})",
        R"({"mean": [], "deviation": []})", R"({"mean": [0.5, 0.5], "deviation": [1, 1]})"}) {
    write_file_atomically(run_ / "pixels.json", wrong);
    EXPECT_THAT(opening(), HasSubstr("pixels.json: damaged: not a mean and a positive deviation")) << wrong;
  }
  fs::remove(run_ / "pixels.json");
  EXPECT_THAT(opening(), HasSubstr("pixels.json: missing"));
}

}  // namespace
}  // namespace zoo::testing
