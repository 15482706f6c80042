// Runs that start with the weights of another run.

#include "checkpoints/initial_weights.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "checkpoints/run.h"
#include "experiments/load_experiment.h"
#include "io/safetensors.h"
#include "tests/support/training.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A step so small that it changes no weight except zeros.
constexpr const char* kNoStep = "training.optimizer={type: sgd, lr: 1.0e-30, weight_decay: 0}";

class InitialWeights : public ::testing::Test {
 protected:
  /// The experiment of a task, with `overrides`.
  Experiment experiment(const std::string& task, std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.begin(), {"training.steps=2", "training.checkpoint_every=2",
                                         "training.evaluate_every=2", "model.max_positions=64"});
    return world.experiment(task, overrides);
  }
  /// An experiment that starts with the run `source`.
  Experiment beginning(const std::string& task, std::vector<std::string> overrides = {}) const {
    overrides.push_back("init_from=" + source.string());
    return experiment(task, overrides);
  }
  /// Trains, and returns the messages before the first step.
  std::string train_and_listen(const Experiment& trained, TrainOptions options) const {
    std::string said;
    options.on_progress = [&](const TrainProgress& progress) {
      if (progress.step == 0) said += progress.message;
    };
    train(trained, options);
    return said;
  }
  /// The error of a training with these overrides, which leaves no run.
  std::string error_of(const std::string& task, const std::vector<std::string>& overrides) const {
    const auto message =
        message_of<Error>([&] { train(beginning(task, overrides), {.run_dir = world.path("refused")}); });
    EXPECT_FALSE(fs::exists(world.path("refused")));
    return message;
  }

  TinyWorld world;
  fs::path source = world.path("source");
};

/// The names of the run's parameters that differ from its source.
std::set<std::string> other_tensors(const fs::path& run, const fs::path& source) {
  const SafetensorsFile tensors(run / "model.safetensors"), before(source / "model.safetensors");
  std::set<std::string> names;
  for (const auto& name : tensors.names()) {
    if (!before.contains(name) || !torch::allclose(tensors.tensor(name), before.tensor(name), 0, 1e-20)) {
      names.insert(name);
    }
  }
  return names;
}

/// The part of a message from the end of `words` up to the next semicolon.
std::string part_of(const std::string& message, const std::string& words) {
  const size_t at = message.find(words);
  if (at == message.npos) return "";
  const size_t begin = at + words.size();
  return message.substr(begin, std::min(message.find(';', begin), message.find("note: ", begin)) - begin);
}

struct Pair {
  std::string from, to;
  std::vector<std::string> from_overrides, to_overrides;
  std::string fresh, left;  // as in the message
};

TEST_F(InitialWeights, ComeFromAnotherTask) {
  const std::vector<std::string> documents = {"data.documents=line"},
                                 decoder = {"model.architecture=decoder"},
                                 both = {"model.architecture=encoder_decoder"};
  for (const auto& [from, to, from_overrides, to_overrides, fresh, left] : std::vector<Pair>{
           {"masked_language_modeling",
            "text_classification",
            {},
            {},
            "head.pooler, head.classifier",
            "head.norm, head.transform"},
           {"language_modeling", "text_classification", documents, decoder, "head.classifier", ""},
           {"language_modeling", "text_to_text", documents, decoder, "", ""},
           {"text_to_text", "text_classification", {}, both, "", ""},
           {"language_modeling", "language_modeling", {}, {"data.train=pairs.de"}, "", ""},
           {"text_classification", "text_classification", {}, {"data.valid_fraction=0.3"}, "", ""},
       }) {
    SCOPED_TRACE(from + " to " + to);
    train(experiment(from, from_overrides), {.run_dir = source});
    auto overrides = to_overrides;
    overrides.emplace_back(kNoStep);
    const auto run = world.path("run");
    const auto message = train_and_listen(beginning(to, overrides), {.run_dir = run});
    EXPECT_THAT(message, StartsWith(fmt::format("starts from {}/model.safetensors: ", source.string())));
    EXPECT_EQ(part_of(message, "; new: "), fresh);
    EXPECT_EQ(part_of(message, "; left behind: "), left);
    for (const auto& name : other_tensors(run, source)) {
      EXPECT_THAT(fresh, HasSubstr(name.substr(0, name.rfind('.'))));
    }
    EXPECT_EQ(read_file(run / "tokenizer.json"), read_file(source / "tokenizer.json"));
    EXPECT_EQ(Run::open(run).labels(), task_of_new_run(experiment(to, to_overrides))->vocabulary().labels);
    fs::remove_all(source);
    EXPECT_GT(Run::open(run).evaluate(Split::valid).at("loss"), 0);  // a run of its own from here on
    fs::remove_all(run);
  }
}

TEST_F(InitialWeights, NewLayersStartAsWithoutASource) {
  train(experiment("masked_language_modeling"), {.run_dir = source});
  const std::vector<std::string> deeper = {"model.n_layers=2", "model.dropout=0.3", "model.d_ff=64", kNoStep};
  const auto message =
      train_and_listen(beginning("masked_language_modeling", deeper), {.run_dir = world.path("run")});
  EXPECT_THAT(message,
              AllOf(HasSubstr("; new: encoder.layers.1."), HasSubstr(" more"), Not(HasSubstr("left"))));
  train(experiment("masked_language_modeling", deeper), {.run_dir = world.path("without")});
  const auto fresh = other_tensors(world.path("run"), source);
  EXPECT_FALSE(fresh.empty());
  const SafetensorsFile run(world.path("run/model.safetensors")),
      without(world.path("without/model.safetensors"));
  for (const auto& name : fresh) {
    EXPECT_THAT(name, StartsWith("encoder.layers.1."));
    EXPECT_TRUE(torch::allclose(run.tensor(name), without.tensor(name), 0, 1e-20)) << name;
  }
  // A model with fewer layers does not use the last ones.
  fs::remove_all(source);
  fs::rename(world.path("run"), source);
  EXPECT_THAT(train_and_listen(beginning("masked_language_modeling"), {.run_dir = world.path("run")}),
              HasSubstr("; left behind: encoder.layers.1."));
}

TEST_F(InitialWeights, AClassifierOfOtherClassesHasAHeadOfItsOwn) {
  train(experiment("text_classification"), {.run_dir = source});
  std::string table = "sentence\tlabel\n";
  for (int i = 0; i < 30; ++i)
    table += fmt::format("sun moon\t{}\nsea wind\t{}\nrain\tc\n", "ab"[i % 2], "ba"[i % 2]);
  world.dir().write("data/other.tsv", table);
  const auto message = train_and_listen(beginning("text_classification", {"data.train=other.tsv", kNoStep}),
                                        {.run_dir = world.path("run")});
  EXPECT_THAT(message, AllOf(HasSubstr("; new: head.classifier (class 1 is 'blue' there, 'a' here)"),
                             HasSubstr("; left behind: head.classifier")));
  EXPECT_THAT(other_tensors(world.path("run"), source),
              ElementsAre("head.classifier.bias", "head.classifier.weight"));
  EXPECT_THAT(Run::open(world.path("run")).labels(), ElementsAre("a", "b", "c"));
}

TEST_F(InitialWeights, AreNotAskedForAgain) {
  train(experiment("masked_language_modeling"), {.run_dir = source});
  const auto tuned = beginning("text_classification", {"training.steps=8"});
  train(tuned, {.run_dir = world.path("whole")});

  // A run that dies before its first checkpoint starts again with the source's weights.
  const auto run = world.path("run");
  TrainOptions options{.run_dir = run, .existing = ExistingRun::resume};
  options.on_progress = [](const TrainProgress& progress) {
    if (progress.step == 1) throw std::runtime_error("death");
  };
  EXPECT_THROW(train(tuned, options), std::runtime_error);
  const auto resume = [&](const Experiment& resumed) {
    return message_of<ConfigError>(
        [&] { train(resumed, {.run_dir = run, .existing = ExistingRun::resume}); });
  };
  fs::rename(source, world.path("away"));
  EXPECT_THAT(resume(tuned), AllOf(StartsWith("init_from: "), HasSubstr("no such run")));
  train(experiment("text_classification"), {.run_dir = source});  // the same name, but not the same run
  EXPECT_THAT(resume(tuned), HasSubstr("another vocabulary than when this run was started"));
  fs::remove_all(source);
  fs::rename(world.path("away"), source);
  options.on_progress = nullptr;
  options.should_stop = [steps = 0]() mutable { return ++steps > 4; };
  EXPECT_EQ(train(tuned, options).step, 4);

  // After a checkpoint the source is no longer needed, but init_from must not change.
  fs::remove_all(source);
  EXPECT_THAT(resume(experiment("text_classification", {"training.steps=8"})),
              HasSubstr(fmt::format("started with init_from={}, not null", source.string())));
  EXPECT_EQ(resume(tuned), "no error");
  for (const char* file : {"model.safetensors", "checkpoints/last/model.safetensors",
                           "checkpoints/last/optimizer.safetensors", "samples.txt"}) {
    EXPECT_TRUE(read_file(run / file) == read_file(world.path("whole") / file)) << file;
  }
  EXPECT_EQ(timeless_metrics(run), timeless_metrics(world.path("whole")));
}

TEST_F(InitialWeights, AnotherModelIsRefusedByItsKey) {
  train(experiment("masked_language_modeling"), {.run_dir = source});
  const auto told = [&](const std::string& key, const std::string& here, const std::string& there) {
    return AllOf(StartsWith("init_from: "), HasSubstr(fmt::format("{} is {}, but {} in {}, whose weights",
                                                                  key, here, there, source.string())));
  };
  const std::string task = "text_classification";
  EXPECT_THAT(error_of(task, {"model.d_model=24"}), told("model.d_model", "24", "16"));
  EXPECT_THAT(error_of(task, {"model.architecture=decoder"}),
              told("model.architecture", "decoder", "encoder"));
  EXPECT_THAT(error_of(task, {"model.activation=relu"}), told("model.activation", "relu", "gelu"));
  EXPECT_THAT(error_of(task, {"model.d_ff=32"}), told("model.d_ff", "32", "64"));
  EXPECT_THAT(error_of(task, {"model.n_heads=4"}), told("model.n_heads", "4", "2"));
  EXPECT_THAT(error_of(task, {"data.tokenizer.type=byte"}), told("data.tokenizer.type", "byte", "char"));
  EXPECT_THAT(error_of(task, {"data.tokenizer.lowercase=true"}), HasSubstr("data.tokenizer.lowercase"));
  // This key may differ, but not if it changes the shape of a tensor.
  EXPECT_THAT(error_of(task, {"model.max_positions=40"}),
              AllOf(StartsWith("init_from: "), HasSubstr("(64, 16), this model as (40, 16)")));
}

// Model, tokenizer and task of a configuration that names a run are the run's, where it says nothing else.
TEST_F(InitialWeights, BringTheKeysOfTheirRun) {
  const auto whole = experiment("masked_language_modeling",
                                {"model.norm=rms_norm", "model.d_ff=48", "data.tokenizer.lowercase=true"});
  train(whole, {.run_dir = source});
  const auto from = [&](const std::string& yaml, const std::vector<std::string>& overrides = {}) {
    return parse_experiment(fmt::format("init_from: {}\n{}", source.string(), yaml), "x.yaml", overrides);
  };
  const auto same = from("data: {train: text.txt}");
  EXPECT_EQ(same.task.type, "masked_language_modeling");
  EXPECT_EQ(dump_config(same.model), dump_config(whole.model));
  EXPECT_EQ(dump_config(same.data.tokenizer), dump_config(whole.data.tokenizer));
  EXPECT_EQ(same.data.sequence_length, 24);
  EXPECT_EQ(same.training.steps, TrainingConfig().steps) << "the training is new";
  EXPECT_EQ(same.data.train.size(), 1U);

  const auto other = from("task: text_classification\ndata: {train: table.tsv}\nmodel: {dropout: 0.3}",
                          {"training.steps=2", "training.batch_size=4"});
  EXPECT_EQ(other.model.dropout, 0.3);
  EXPECT_EQ(other.model.norm, NormKind::rms_norm);
  EXPECT_THAT(train_and_listen(other, {.run_dir = world.path("run")}), HasSubstr("starts from "));
  EXPECT_THAT(message_of<ConfigError>([&] {
                train(from("data: {train: text.txt}\nmodel: {norm: layer_norm}"),
                      {.run_dir = world.path("refused")});
              }),
              HasSubstr("model.norm is layer_norm, but rms_norm in "));
  // A run's own configuration has all keys, and is read without its source.
  const auto before = dump_config(load_complete_experiment(world.path("run/config.yaml")));
  fs::remove_all(source);
  EXPECT_EQ(dump_config(load_complete_experiment(world.path("run/config.yaml"))), before);
  EXPECT_THAT(message_of<ConfigError>([&] { from("task: masked_language_modeling"); }),
              AllOf(HasSubstr("x.yaml:1:"), HasSubstr("source: no such run")));
}

TEST_F(InitialWeights, OfImagesBringSizesAndStatistics) {
  const auto whole = world.image_experiment({"training.steps=2", "data.images.augment={}"});
  train(whole, {.run_dir = source});
  const auto yaml =
      fmt::format("init_from: {}\ndata: {{train: train-images-idx3, images: {{label_names: [a, b, c]}}}}\n",
                  source.string());
  const auto experiment = parse_experiment(yaml, "x.yaml", {"training.steps=2", "training.batch_size=4"});
  EXPECT_EQ(experiment.task.type, "image_classification");
  EXPECT_EQ(experiment.data.images.size, 8);
  EXPECT_EQ(experiment.data.images.channels, 1);
  EXPECT_THAT(train_and_listen(experiment, {.run_dir = world.path("run")}),
              HasSubstr("; new: head.classifier (class 1 is 'bars' there, 'a' here)"));
  EXPECT_EQ(read_file(world.path("run/pixels.json")), read_file(source / "pixels.json"));
}

TEST_F(InitialWeights, ASourceThatIsNoneIsToldInALine) {
  const std::string task = "text_classification";
  EXPECT_THAT(error_of(task, {}), AllOf(StartsWith("init_from: "), HasSubstr("source: no such run")));
  fs::create_directory(source);
  EXPECT_THAT(error_of(task, {}), AllOf(StartsWith("init_from: "), HasSubstr("not a run")));
  fs::remove(source);

  // The vocabulary of one stream has no <cls>.
  train(experiment("language_modeling"), {.run_dir = source});
  EXPECT_THAT(error_of(task, {"model.architecture=decoder"}),
              AllOf(HasSubstr("init_from: "), HasSubstr("special tokens that text_classification needs")));
  EXPECT_THAT(error_of("language_modeling", {"data.documents=line"}), HasSubstr("special tokens"));
  fs::remove_all(source);

  train(experiment("masked_language_modeling"), {.run_dir = source});
  save_safetensors(source / "model.safetensors", {{"other.weight", torch::zeros({2})}});
  EXPECT_THAT(error_of(task, {}), HasSubstr("has no weights of this model"));
  fs::resize_file(source / "model.safetensors", 9);
  EXPECT_THAT(error_of(task, {}), HasSubstr("model.safetensors"));
  fs::remove(source / "model.safetensors");
  fs::remove_all(source / "checkpoints");
  EXPECT_THAT(error_of(task, {}), HasSubstr("no weights yet"));
}

}  // namespace
}  // namespace zoo::testing
