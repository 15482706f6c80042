// The files that a training writes, and the errors that it reports.

#include "training/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "checkpoints/checkpoint.h"
#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "checkpoints/weight_average.h"
#include "io/safetensors.h"
#include "tests/support/training.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

TensorMap weights_of(const fs::path& file) {
  const SafetensorsFile stored(file);
  TensorMap tensors;
  for (const auto& name : stored.names()) tensors.emplace(name, stored.tensor(name).clone());
  return tensors;
}

TEST(Trainer, LeavesEverythingThatARunHas) {
  const TinyWorld world;
  std::vector<std::string> messages;
  int64_t last_step = 0;
  const auto result = train(world.experiment("language_modeling"),
                            {.run_dir = world.path("run"), .on_progress = [&](const TrainProgress& progress) {
                               last_step = progress.step;
                               if (!progress.message.empty()) messages.push_back(progress.message);
                             }});
  EXPECT_EQ(result.end, TrainEnd::all_steps);
  EXPECT_EQ(result.step, 20);
  EXPECT_EQ(last_step, 20);
  EXPECT_EQ(messages.size(), 3u);  // after steps 7, 14 and 20
  const auto run = result.run_dir;
  for (const char* file :
       {"config.yaml", "model.safetensors", "tokenizer.json", "metrics.jsonl", "samples.txt"}) {
    EXPECT_TRUE(fs::is_regular_file(run / file)) << file;
  }
  // The two newest checkpoints, and a link to the newest.
  EXPECT_EQ(fs::read_symlink(run / "checkpoints/last"), "step-20");
  EXPECT_TRUE(fs::exists(run / "checkpoints/step-16/optimizer.safetensors"));
  EXPECT_FALSE(fs::exists(run / "checkpoints/step-12"));

  std::vector<int64_t> train_steps, valid_steps;
  double best = 1e9;
  for (const auto& row : timeless_metrics(run)) {
    const auto step = row.at("step").get<int64_t>();
    if (row.contains("train_loss")) {
      train_steps.push_back(step);
      EXPECT_EQ(row.at("tokens"), step * 2 * 4 * 24);
      EXPECT_GT(row.at("grad_norm"), 0.0);
    } else {
      valid_steps.push_back(step);
      best = std::min(best, row.at("valid_loss").get<double>());
      // The text is ASCII: a character is a byte.
      EXPECT_NEAR(row.at("valid_bits_per_byte"), row.at("valid_loss").get<double>() / std::log(2.0), 1e-9);
    }
  }
  EXPECT_EQ(train_steps, (std::vector<int64_t>{3, 6, 9, 12, 15, 18, 20}));
  EXPECT_EQ(valid_steps, (std::vector<int64_t>{7, 14, 20}));
  EXPECT_EQ(result.best_score, best);
  EXPECT_THAT(read_file(run / "samples.txt"), AllOf(HasSubstr("=== step 7,"), HasSubstr("=== step 20,")));

  // The opened run has the weights with the best loss.
  const auto opened = Run::open(run);
  EXPECT_EQ(opened.evaluate(Split::valid).at("loss"), best);
  EXPECT_FALSE(opened.model().is_training());
}

TEST(Trainer, LearnsEachTask) {
  for (const char* task : {"language_modeling", "masked_language_modeling", "text_to_text"}) {
    SCOPED_TRACE(task);
    const TinyWorld world;
    const auto experiment = world.experiment(
        task, {"training.steps=60", "training.evaluate_every=30", "training.log_every=1", "model.dropout=0"});
    const auto result = train(experiment, {.run_dir = world.path("run")});
    const auto rows = timeless_metrics(result.run_dir);
    const auto loss = [&](size_t i) { return rows[i].at("train_loss").get<double>(); };
    double first = 0, last = 0;
    for (size_t i = 0; i < 5; ++i) first += loss(i);
    for (size_t i = rows.size() - 6; i + 1 < rows.size(); ++i) last += loss(i);
    EXPECT_LT(last, 0.97 * first);
  }
}

// Only a row of metrics is added.
TEST(Trainer, EvaluatesBeforeTheFirstStepWhereAsked) {
  const TinyWorld world;
  for (const char* value : {"true", "false"}) {
    train(world.experiment("language_modeling", {std::string("training.evaluate_at_start=") + value}),
          {.run_dir = world.path(value)});
  }
  auto rows = timeless_metrics(world.path("true"));
  EXPECT_EQ(rows[0].at("step"), 0);
  EXPECT_EQ(rows[0].at("tokens"), 0);
  EXPECT_NEAR(rows[0].at("valid_loss").get<double>(), std::log(30), 1) << "about the loss of a guess";
  rows.erase(rows.begin());
  EXPECT_EQ(rows, timeless_metrics(world.path("false")));
  for (const char* file : {"model.safetensors", "samples.txt"})
    EXPECT_TRUE(read_file(world.path("true") / file) == read_file(world.path("false") / file)) << file;
}

// All formats reduce the loss by the same half nat.
TEST(Trainer, SixteenBitsTrainAsWell) {
  const auto trained = [](const std::string& precision) {
    const TinyWorld world;
    const auto result =
        train(world.experiment("language_modeling", {"training.steps=60", "training.optimizer.lr=0.01",
                                                     "training.precision=" + precision}),
              {.run_dir = world.path("run")});
    return Run::open(result.run_dir).evaluate(Split::valid).at("loss");
  };
  const double exact = trained("fp32");
  EXPECT_LT(exact, 2.6);
  EXPECT_NEAR(trained("bf16"), exact, 0.02);
  EXPECT_NEAR(trained("fp16"), exact, 0.02);
}

// With few targets per step the gradient of the loss times 65536 is too large for fp16.
TEST(Trainer, StepsThatOverflowAreLeftOutAndCounted) {
  const TinyWorld world;
  const std::vector<std::string> few = {
      "training.precision=fp16", "training.batch_size=1", "training.gradient_accumulation=1",
      "data.sequence_length=3",  "training.log_every=1",  "model.dropout=0"};
  const auto whole = train(world.experiment("language_modeling", few), {.run_dir = world.path("whole")});
  const auto rows = timeless_metrics(whole.run_dir);
  const auto last =
      std::find_if(rows.rbegin(), rows.rend(), [](const auto& row) { return row.contains("loss_scale"); });
  ASSERT_NE(last, rows.rend());
  EXPECT_GT(last->at("skipped_steps"), 0);
  EXPECT_LT(last->at("skipped_steps"), 20);
  EXPECT_LT(last->at("loss_scale"), 65536);
  // The scale is part of the checkpoint.
  const auto stopped = world.path("stopped");
  auto options = few;
  int calls = 0;
  train(world.experiment("language_modeling", options),
        {.run_dir = stopped, .should_stop = [&] { return ++calls == 7; }});
  train(world.experiment("language_modeling", options),
        {.run_dir = stopped, .existing = ExistingRun::resume});
  EXPECT_EQ(timeless_metrics(stopped), rows);
}

TEST(Trainer, AccumulatedBatchesAreOneLargeBatch) {
  for (const char* task : {"language_modeling", "text_to_text", "masked_language_modeling"}) {
    SCOPED_TRACE(task);
    const TinyWorld world;
    const std::vector<std::string> common = {"training.steps=3",
                                             "model.dropout=0",
                                             "data.bucket_by_length=false",
                                             "data.sequence_length=12",
                                             "training.optimizer.type=sgd",
                                             "training.optimizer.lr=0.5",
                                             "training.log_every=1",
                                             "training.clip_grad_norm=0.25"};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), common.begin(), common.end());
      return world.experiment(task, more);
    };
    const auto parts = train(with({"training.batch_size=8", "training.gradient_accumulation=4"}),
                             {.run_dir = world.path("parts")});
    const auto whole = train(with({"training.batch_size=32", "training.gradient_accumulation=1"}),
                             {.run_dir = world.path("whole")});
    const auto expected = weights_of(whole.run_dir / "checkpoints/last/model.safetensors");
    for (const auto& [name, tensor] : weights_of(parts.run_dir / "checkpoints/last/model.safetensors")) {
      EXPECT_TRUE(torch::allclose(tensor, expected.at(name), 0, 1e-6)) << name;
    }
    const auto a = timeless_metrics(parts.run_dir), b = timeless_metrics(whole.run_dir);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i + 1 < a.size(); ++i) {
      EXPECT_EQ(a[i].at("tokens"), b[i].at("tokens"));
      EXPECT_NEAR(a[i].at("train_loss").get<double>(), b[i].at("train_loss").get<double>(), 1e-6);
    }
  }
}

TEST(Trainer, SameSeedSameRunOtherSeedOther) {
  const TinyWorld world;
  const auto loss = [&](const char* name, const char* seed) {
    const auto experiment = world.experiment("language_modeling", {"training.steps=4", seed});
    return *train(experiment, {.run_dir = world.path(name)}).best_score;
  };
  const double first = loss("a", "training.seed=1");
  EXPECT_EQ(loss("b", "training.seed=1"), first);
  EXPECT_NE(loss("c", "training.seed=2"), first);
}

TEST(Trainer, EvaluatesAndKeepsTheMovingAverage) {
  const TinyWorld world;
  const auto experiment = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"training.steps=6", "training.evaluate_every=3", "training.checkpoint_every=1",
                             "training.keep_checkpoints=9"});
    return world.experiment("language_modeling", more);
  };
  const auto plain = train(experiment({}), {.run_dir = world.path("plain")});
  const auto averaged = train(experiment({"training.ema_decay=0.5"}), {.run_dir = world.path("averaged")});
  // The average by hand, from the weights after each step, which are the same as without the average.
  TensorMap expected;
  for (int64_t step = 1; step <= 6; ++step) {
    const auto file = fmt::format("checkpoints/step-{}/model.safetensors", step);
    EXPECT_TRUE(read_file(plain.run_dir / file) == read_file(averaged.run_dir / file)) << file;
    const auto state =
        weights_of(averaged.run_dir / fmt::format("checkpoints/step-{}/average.safetensors", step));
    EXPECT_EQ(state.at("n_updates").item<int64_t>(), step);
    for (const auto& [name, tensor] : weights_of(plain.run_dir / file)) {
      if (step > 1) {
        const double decay = std::min(0.5, static_cast<double>(step) / static_cast<double>(9 + step));
        expected[name] = decay * expected[name] + (1 - decay) * tensor;
        EXPECT_TRUE(torch::allclose(state.at(name), expected[name], 1e-5, 1e-6)) << name << " at " << step;
      }
      expected[name] = state.at(name);
    }
  }
  // The average is evaluated and kept.
  for (const auto& [name, tensor] : weights_of(averaged.run_dir / "model.safetensors")) {
    const auto at_best = weights_of(
        averaged.run_dir / fmt::format("checkpoints/step-{}/average.safetensors", averaged.best_step));
    EXPECT_TRUE(torch::equal(tensor, at_best.at(name))) << name;
  }
  EXPECT_EQ(Run::open(averaged.run_dir).evaluate(Split::valid).at("loss"), averaged.best_score);
  EXPECT_NE(averaged.best_score, plain.best_score);
}

TEST(Trainer, KeepsTheMeanOfTheLastCheckpointsIfItIsBetter) {
  // With a learning rate that is far too high, the weights jump around their mean; with a low one the last
  // weights are the best.
  for (const bool jumps : {true, false}) {
    SCOPED_TRACE(jumps);
    const TinyWorld world;
    std::string message;
    TrainOptions options{.run_dir = world.path("run")};
    options.on_progress = [&](const TrainProgress& progress) {
      if (progress.message.starts_with("mean")) message = progress.message;
    };
    const auto result = train(
        world.experiment("language_modeling",
                         {"training.steps=200", "training.evaluate_every=200", "training.checkpoint_every=10",
                          "training.average_last=4", "model.dropout=0",
                          "training.schedule={type: constant, warmup_steps: 0}",
                          fmt::format("training.optimizer={{type: lion, lr: {}}}", jumps ? 0.02 : 0.0002)}),
        options);
    const auto rows = timeless_metrics(result.run_dir);
    double own = 0, mean = 0;
    for (const auto& row : rows) {
      own = row.value("valid_loss", own);
      mean = row.value("mean_valid_loss", mean);
    }
    EXPECT_EQ(mean < own, jumps) << mean << " " << own;
    EXPECT_EQ(result.best_score, std::min(mean, own));
    EXPECT_EQ(Run::open(result.run_dir).evaluate(Split::valid).at("loss"), std::min(mean, own));
    EXPECT_THAT(message, AllOf(HasSubstr("at steps 200, 190, 180, 170: validation"), HasSubstr("  loss "),
                               HasSubstr(jumps ? "(best)" : "no better")));
    // The checkpoint has the trained weights, not the mean.
    EXPECT_EQ(weights_of(result.run_dir / "checkpoints/last/model.safetensors").size(),
              weights_of(result.run_dir / "model.safetensors").size());
    const auto name = std::string("token_embedding.weight");
    EXPECT_EQ(torch::equal(weights_of(result.run_dir / "checkpoints/last/model.safetensors").at(name),
                           weights_of(result.run_dir / "model.safetensors").at(name)),
              !jumps);
    EXPECT_TRUE(fs::exists(result.run_dir / "checkpoints/step-170"));
    EXPECT_FALSE(fs::exists(result.run_dir / "checkpoints/step-160"));
  }
}

TEST(Trainer, StopsInTimeAsAtTheEnd) {
  const TinyWorld world;
  const auto experiment =
      world.experiment("language_modeling", {"training.steps=1000000", "training.max_seconds=0.2"});
  const auto result = train(experiment, {.run_dir = world.path("run")});
  EXPECT_EQ(result.end, TrainEnd::out_of_time);
  EXPECT_LT(result.step, 1000000);
  EXPECT_TRUE(result.best_score);
  EXPECT_EQ(fs::read_symlink(result.run_dir / "checkpoints/last"), fmt::format("step-{}", result.step));
  EXPECT_EQ(timeless_metrics(result.run_dir).back().at("step"), result.step);
  EXPECT_TRUE(timeless_metrics(result.run_dir).back().contains("valid_loss"));
}

TEST(Trainer, EpochsBecomeSteps) {
  const TinyWorld world;
  const auto experiment =
      world.experiment("text_classification", {"training.epochs=3", "training.gradient_accumulation=2"});
  const auto task = task_of_new_run(experiment);
  auto& batches = task->batches(Split::train);
  const int64_t n = batches.n_batches(0) + batches.n_batches(1) + batches.n_batches(2);
  const auto result = train(experiment, {.run_dir = world.path("run")});
  EXPECT_EQ(result.end, TrainEnd::all_steps);
  EXPECT_EQ(result.step, n / 2);
  const auto kept = read_run_experiment(world.path("run")).training;
  EXPECT_EQ(kept.steps, n / 2);
  EXPECT_EQ(kept.epochs, std::nullopt);
  EXPECT_TRUE(is_finished(world.path("run"), kept));
  // More epochs are more steps of the same run.
  auto longer = experiment;
  longer.training.epochs = 4;
  EXPECT_GT(train(longer, {.run_dir = world.path("run"), .existing = ExistingRun::resume}).step, n / 2);
  EXPECT_THAT(message_of<ConfigError>([&] {
                train(world.experiment(
                          "text_classification",
                          {"training.epochs=1", "training.checkpoint_every=1000", "training.average_last=2"}),
                      {.run_dir = world.path("other")});
              }),
              HasSubstr("training.average_last 2 is more than the 1 checkpoints of"));
}

// Weights that do not change are never better than before.
TEST(Trainer, EndsWhenPatienceDoes) {
  const TinyWorld world;
  const auto patient = [&](int64_t patience) {
    return world.experiment("language_modeling",
                            {fmt::format("training.patience={}", patience), "training.evaluate_every=3",
                             "training.optimizer={type: sgd, lr: 1.0e-30, weight_decay: 0}"});
  };
  const auto result = train(patient(2), {.run_dir = world.path("whole")});
  EXPECT_EQ(result.end, TrainEnd::out_of_patience);
  EXPECT_EQ(result.best_step, 3);
  EXPECT_EQ(result.step, 9);
  EXPECT_TRUE(is_finished(world.path("whole"), patient(2).training));
  EXPECT_FALSE(is_finished(world.path("whole"), patient(3).training));

  // Stopped anywhere, it ends at the same step.
  for (const int64_t at : {4, 6, 8}) {
    int64_t asked = 0;
    const auto run = world.path(fmt::format("run{}", at));
    TrainOptions options{.run_dir = run, .existing = ExistingRun::resume};
    options.should_stop = [&] { return asked++ == at; };
    EXPECT_EQ(train(patient(2), options).end, TrainEnd::interrupted);
    options.should_stop = nullptr;
    EXPECT_EQ(train(patient(2), options).step, 9);
    EXPECT_EQ(timeless_metrics(run), timeless_metrics(world.path("whole")));
    EXPECT_EQ(train(patient(2), options).end, TrainEnd::out_of_patience) << "there is nothing left to do";
    EXPECT_EQ(train(patient(3), options).step, 12);
  }
}

TEST(Trainer, NamesStepAndBatchOfALossThatIsNoNumber) {
  for (const char* task : {"language_modeling", "text_to_text"}) {
    SCOPED_TRACE(task);
    const TinyWorld world;
    const auto experiment = world.experiment(
        task, {"training.optimizer.type=sgd", "training.optimizer.lr=1e30", "training.clip_grad_norm=0",
               "training.schedule={type: constant, warmup_steps: 0}", "training.checkpoint_every=1"});
    const auto message =
        message_of<TrainingError>([&] { train(experiment, {.run_dir = world.path("run")}); });
    // From the checkpoint of step 1 the same happens again.
    EXPECT_THAT(message,
                AllOf(HasSubstr("step 2, epoch 0, batch 2: the loss is"), HasSubstr("the only checkpoint"),
                      HasSubstr("checkpoints/step-1"), HasSubstr("a lower training.optimizer.lr")));
    EXPECT_EQ(fs::read_symlink(world.path("run/checkpoints/last")), "step-1");
  }
}

// An evaluation right after the step that ruins the weights finds them before any other loss does.
TEST(Trainer, AValidationLossThatIsNoNumberEndsItToo) {
  const TinyWorld world;
  const auto experiment = world.experiment(
      "language_modeling",
      {"training.optimizer.type=sgd", "training.optimizer.lr=1e30", "training.clip_grad_norm=0",
       "training.schedule={type: constant, warmup_steps: 0}", "training.evaluate_every=1"});
  const auto message = message_of<TrainingError>([&] { train(experiment, {.run_dir = world.path("run")}); });
  EXPECT_THAT(message, AllOf(HasSubstr("step 1: the validation loss is"), HasSubstr("no checkpoint yet")));
  EXPECT_EQ(read_file(world.path("run/failed.txt")), message + "\n");
}

TEST(Trainer, DoesNotTouchARunUnlessTold) {
  const TinyWorld world;
  const auto experiment = world.experiment("language_modeling", {"training.steps=2"});
  const TrainOptions options{.run_dir = world.path("run")};
  train(experiment, options);
  const auto before = read_file(world.path("run/metrics.jsonl"));
  EXPECT_THAT(message_of<UsageError>([&] { train(experiment, options); }),
              AllOf(HasSubstr("run: this run exists"), HasSubstr("ExistingRun::resume"),
                    HasSubstr("ExistingRun::replace")));
  EXPECT_EQ(read_file(world.path("run/metrics.jsonl")), before);

  auto replace = options;
  replace.existing = ExistingRun::replace;
  // Bad configurations and missing data are found before anything is lost.
  auto broken = experiment;
  broken.data.train = {"missing.txt"};
  EXPECT_THROW(train(broken, replace), DataError);
  broken = experiment;
  broken.model.vocab_size = 3;
  EXPECT_THAT(message_of<ConfigError>([&] { train(broken, replace); }), HasSubstr("model.vocab_size"));
  EXPECT_EQ(read_file(world.path("run/metrics.jsonl")), before);

  std::ofstream(world.path("run/checkpoints/step-99.txt")) << "left over";
  EXPECT_EQ(train(experiment, replace).step, 2);
  EXPECT_FALSE(fs::exists(world.path("run/checkpoints/step-99.txt")));
}

TEST(Trainer, DoesNotReplaceWhatIsNoRun) {
  const TinyWorld world;
  world.dir().write("mine/thesis.txt", "years of work");
  const TrainOptions options{.run_dir = world.path("mine"), .existing = ExistingRun::replace};
  EXPECT_THAT(message_of<UsageError>([&] { train(world.experiment("language_modeling"), options); }),
              HasSubstr("is not a run"));
  EXPECT_EQ(read_file(world.path("mine/thesis.txt")), "years of work");
}

TEST(Trainer, ResumesWithTheSameModelDataAndSeedOnly) {
  const TinyWorld world;
  const TrainOptions options{.run_dir = world.path("run"), .existing = ExistingRun::resume};
  EXPECT_EQ(train(world.experiment("language_modeling", {"training.steps=4"}), options).step,
            4);  // starts it
  const auto refused = [&](const std::string& override_text) {
    return message_of<ConfigError>(
        [&] { train(world.experiment("language_modeling", {"training.steps=6", override_text}), options); });
  };
  EXPECT_THAT(refused("model.d_ff=40"),
              AllOf(HasSubstr("config.yaml"), HasSubstr("model.d_ff=null, not 40")));
  EXPECT_THAT(refused("training.seed=9"), HasSubstr("training.seed=1, not 9"));
  EXPECT_THAT(refused("training.batch_size=2"), HasSubstr("training.batch_size=4, not 2"));
  EXPECT_THAT(refused("data.sequence_length=20"), HasSubstr("data.sequence_length=24, not 20"));
  EXPECT_THAT(refused("training.ema_decay=0.9"), HasSubstr("training.ema_decay=null, not 0.9"));
  EXPECT_THAT(refused("training.optimizer.type=adam"), HasSubstr("training.optimizer.type=adamw, not adam"));

  const auto more = world.experiment(
      "language_modeling", {"training.steps=6", "training.evaluate_every=2", "training.optimizer.lr=0.001"});
  EXPECT_EQ(train(more, options).step, 6);
  EXPECT_EQ(read_run_experiment(world.path("run")).training.steps, 6);
  // The same files with another text.
  const auto text = read_file(world.path("data/text.txt"));
  world.dir().write("data/text.txt", text + "a star more.\n");
  EXPECT_THAT(message_of<ConfigError>([&] { train(more, options); }), HasSubstr("data have changed since"));
  world.dir().write("data/text.txt", text);
  // Once more: nothing is left to do.
  const auto before = read_file(world.path("run/metrics.jsonl"));
  EXPECT_EQ(train(more, options).step, 6);
  EXPECT_EQ(read_file(world.path("run/metrics.jsonl")), before);
}

// Characters that the vocabulary lacks are never masked, so a batch can be without targets. It changes
// nothing.
TEST(Trainer, ABatchWithoutTargetsChangesNothing) {
  const TinyWorld world;
  const auto experiment = world.experiment("masked_language_modeling");
  const auto task = task_of_new_run(experiment);
  const auto model = initialized_model(experiment, *task);
  Batch empty;
  empty.input.ids = torch::ones({1, 8}, torch::kLong);
  empty.positions = torch::empty({0}, torch::kLong);
  empty.targets = torch::empty({0}, torch::kLong);
  GradientAccumulator gradients(model, task->objective());
  EXPECT_EQ(gradients.differentiate({empty}).item<double>(), 0);
  for (const auto& parameter : model->parameters())
    EXPECT_TRUE(!parameter.grad().defined() || parameter.grad().eq(0).all().item<bool>());
}

// The run is stopped at a step that then becomes the last one.
TEST(Trainer, WhatIsLeftToDoAfterTheLastStepIsDone) {
  const TinyWorld world;
  TrainOptions options{.run_dir = world.path("run"), .existing = ExistingRun::resume};
  int64_t asked = 0;
  options.should_stop = [&] { return ++asked > 5; };
  const auto stopped = train(world.experiment("language_modeling", {"training.average_last=2"}), options);
  EXPECT_EQ(stopped.end, TrainEnd::interrupted);
  EXPECT_FALSE(stopped.best_score);

  options.should_stop = nullptr;
  const auto fewer = world.experiment(
      "language_modeling", {"training.average_last=2", fmt::format("training.steps={}", stopped.step)});
  const auto result = train(fewer, options);
  EXPECT_EQ(result.step, stopped.step);
  EXPECT_TRUE(result.best_score);
  const auto rows = timeless_metrics(world.path("run"));
  EXPECT_TRUE(rows.at(rows.size() - 2).contains("valid_loss"));
  EXPECT_TRUE(rows.back().contains("mean_valid_loss"));
  EXPECT_TRUE(fs::exists(world.path("run/model.safetensors")));
  train(fewer, options);
  EXPECT_EQ(timeless_metrics(world.path("run")), rows);
}

TEST(Trainer, DoesNotGoOnFromWeightsAlone) {
  const TinyWorld world;
  const auto experiment = world.experiment("language_modeling", {"training.steps=4"});
  train(experiment, {.run_dir = world.path("run")});
  fs::remove_all(world.path("run/checkpoints"));
  fs::remove(world.path("run/metrics.jsonl"));
  const auto weights = read_file(world.path("run/model.safetensors"));
  EXPECT_THAT(message_of<UsageError>([&] {
                train(experiment, {.run_dir = world.path("run"), .existing = ExistingRun::resume});
              }),
              HasSubstr("init_from"));
  EXPECT_TRUE(read_file(world.path("run/model.safetensors")) == weights);
}

// The loss scale 1 of other formats is not kept for fp16.
TEST(Trainer, AnotherPrecisionHasItsOwnLossScale) {
  const TinyWorld world;
  TrainOptions options{.run_dir = world.path("run"), .existing = ExistingRun::resume};
  train(world.experiment("language_modeling", {"training.steps=4"}), options);
  train(world.experiment("language_modeling", {"training.steps=6", "training.precision=fp16"}), options);
  EXPECT_EQ(read_training_state(world.path("run/checkpoints/last")).loss_scale.value, LossScale::initial);
  train(world.experiment("language_modeling", {"training.steps=8"}), options);
  EXPECT_EQ(read_training_state(world.path("run/checkpoints/last")).loss_scale.value, 1);
}

TEST(Checkpoint, IsRemovedAsAWhole) {
  const TinyWorld world;
  const auto checkpoints = world.path("run/checkpoints");
  const TrainOptions options{.run_dir = world.path("run"), .existing = ExistingRun::resume};
  train(world.experiment("language_modeling", {"training.steps=4"}), options);
  world.dir().write("run/checkpoints/.removed-step-2/optimizer.safetensors",
                    "left by a process that was killed");
  EXPECT_EQ(checkpoints_of(world.path("run")).size(), 1);
  train(world.experiment("language_modeling", {"training.steps=20"}), options);
  EXPECT_FALSE(fs::exists(checkpoints / ".removed-step-2"));
  EXPECT_EQ(checkpoints_of(world.path("run")).size(), 2);
  // The same if the run has nothing left to do.
  world.dir().write("run/checkpoints/.removed-step-12/optimizer.safetensors", "left by another one");
  train(world.experiment("language_modeling", {"training.steps=20"}), options);
  EXPECT_FALSE(fs::exists(checkpoints / ".removed-step-12"));
}

}  // namespace
}  // namespace zoo::testing
