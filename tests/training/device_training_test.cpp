// Training on a GPU: tasks, optimisers, precision, graphs.

#include <memory>

#include "base/device_graph.h"
#include "base/error.h"
#include "base/recordable.h"
#include "tests/support/errors.h"
#include "tests/training/on_a_gpu.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TrainingOnAGpu : public OnAGpu {
 protected:
  /// Whether LibTorch has graphs for the device.
  bool has_graphs() const { return make_device_graph(device().type()) != nullptr; }
};
INSTANTIATE_TEST_SUITE_P(Each, TrainingOnAGpu, both_devices(), device_name);

TEST_P(TrainingOnAGpu, EveryTaskLearnsAsOnTheProcessor) {
  for (const std::string task :
       {"language_modeling", "masked_language_modeling", "text_to_text", "text_classification",
        "token_classification", "image_classification", "object_detection", "speech_recognition"}) {
    SCOPED_TRACE(task);
    // The first steps of Adam have nearly the signs of the gradients, and the sign of nearly nothing is
    // anything. Detection shows it: other weights match boxes with other objects, so that the loss jumps.
    const std::vector<std::string> proportional = {"training.optimizer.type=sgd"};
    expect_same_training(task, task == "object_detection" ? proportional : std::vector<std::string>{}, task,
                         2e-3);
  }
}

TEST_P(TrainingOnAGpu, EveryOptimizerTakesTheSameSteps) {
  for (const std::string optimizer : {"adam", "adamw", "sgd", "lion", "muon", "adafactor"}) {
    SCOPED_TRACE(optimizer);
    // lion has the sign of its momentum, and the sign of nearly nothing is anything.
    const auto lr = optimizer == "lion" ? "0.0001" : "0.01";
    const auto overrides =
        exact({"training.optimizer.type=" + optimizer, fmt::format("training.optimizer.lr={}", lr)});
    expect_close(train_on(device(), "language_modeling", optimizer + "-device", overrides),
                 train_on(torch::kCPU, "language_modeling", optimizer, overrides), 2e-3);
  }
}

TEST_P(TrainingOnAGpu, OtherWaysToTrainAreTheSame) {
  const std::vector<std::vector<std::string>> ways = {
      {"training.gradient_accumulation=3", "training.ema_decay=0.5"},
      {"training.lora={rank: 2, targets: ['decoder.*']}"},
      {"training.activation_checkpointing=every_layer"},
      {"training.label_smoothing=0.1", "training.clip_grad_norm=0.5"},
      {"training.freeze=['token_embedding.*']"},
      {"training.average_last=2", "training.checkpoint_every=2"},
      {"training.batch_size=auto", "training.effective_batch_size=4", "training.gradient_accumulation=1"}};
  for (size_t i = 0; i < ways.size(); ++i) {
    SCOPED_TRACE(ways[i].front());
    if (i == 6 && is_strict()) continue;  // the strict device does not count its memory
    expect_same_training("language_modeling", ways[i], fmt::format("way-{}", i), 2e-3);
  }
}

TEST_P(TrainingOnAGpu, ActivationCheckpointingDropsTheSame) {
  const std::vector<std::string> dropout = {"training.precision=fp32", "training.steps=4",
                                            "training.log_every=1", "model.dropout=0.2"};
  auto checkpointing = dropout;
  checkpointing.emplace_back("training.activation_checkpointing=every_layer");
  expect_close(train_on(device(), "language_modeling", "recomputed", checkpointing),
               train_on(device(), "language_modeling", "kept", dropout), 1e-3);
}

TEST_P(TrainingOnAGpu, ATrainingGoesOnWhereItStopped) {
  const std::vector<std::string> overrides = {"training.precision=fp32", "model.dropout=0.2",
                                              "training.log_every=1", "training.threads=1"};
  const auto whole = train_on(device(), "language_modeling", "whole", overrides);
  const auto experiment = world().experiment("language_modeling", overrides);
  TrainOptions options{.run_dir = world().path("parts"), .existing = ExistingRun::resume, .device = device()};
  int64_t steps = 0;
  options.should_stop = [&steps] { return steps++ == 9; };
  ASSERT_EQ(train(experiment, options).end, TrainEnd::interrupted);
  options.should_stop = nullptr;
  ASSERT_EQ(train(experiment, options).end, TrainEnd::all_steps);
  expect_close(losses_of(world().path("parts")), whole, 1e-3);
}

TEST_P(TrainingOnAGpu, TheResidualStreamMayHave16Bits) {
  for (const std::string norm : {"layer_norm", "rms_norm"}) {
    auto overrides = exact({"model.norm=" + norm, "training.steps=8"});
    const auto wanted = train_on(torch::kCPU, "language_modeling", norm, overrides);
    overrides.emplace_back("training.precision=bf16");
    overrides.emplace_back("training.residual=bf16");
    expect_close(train_on(device(), "language_modeling", norm + "-bf16", overrides), wanted, 0.05);
  }
}

// ---- numbers that are read late

TEST_P(TrainingOnAGpu, ALossThatIsNoNumberIsReportedAtItsStep) {
  const auto message = [&](torch::Device where, const std::string& name) {
    // The first step makes weights with which the second loss is no number.
    const auto experiment = world().experiment(
        "language_modeling",
        exact({"training.optimizer.type=sgd", "training.optimizer.lr=1e38", "training.clip_grad_norm=0",
               "training.schedule.warmup_steps=0", "training.log_every=100", "training.checkpoint_every=1",
               "training.steps=6"}));
    return message_of<TrainingError>(
        [&] { train(experiment, {.run_dir = world().path(name), .device = where}); });
  };
  EXPECT_THAT(message(torch::kCPU, "nan"), HasSubstr("step 2, epoch 0, batch"));
  EXPECT_THAT(message(device(), "nan-device"), HasSubstr("step 2, epoch 0, batch"));
  EXPECT_TRUE(std::filesystem::exists(world().path("nan-device/checkpoints/step-1")));
  EXPECT_FALSE(std::filesystem::exists(world().path("nan-device/checkpoints/step-2")))
      << "its weights are ruined";
}

// A row of metrics has the mean of its steps, the last one included.
TEST_P(TrainingOnAGpu, RowsOfMetricsAreThoseOfTheProcessor) {
  const auto overrides = exact({"training.log_every=3", "training.steps=8", "training.evaluate_every=4"});
  const auto rows = [&](torch::Device where, const std::string& name) {
    return timeless_metrics(train(world().experiment("language_modeling", overrides),
                                  {.run_dir = world().path(name), .device = where})
                                .run_dir);
  };
  const auto wanted = rows(torch::kCPU, "rows"), found = rows(device(), "rows-device");
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i].at("step"), wanted[i].at("step"));
    for (const char* const key : {"train_loss", "grad_norm", "lr", "valid_loss"}) {
      ASSERT_EQ(found[i].contains(key), wanted[i].contains(key)) << key;
      if (!wanted[i].contains(key)) continue;
      EXPECT_NEAR(found[i][key].get<double>(), wanted[i][key].get<double>(), 2e-3) << key << ", row " << i;
    }
  }
}

// ---- recorded steps

TEST_P(TrainingOnAGpu, RecordedStepsAreThoseThatAreNot) {
  if (!has_graphs()) GTEST_SKIP() << "this LibTorch has no graphs here";
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    const std::vector<std::string> plain = {"training.precision=" + precision, "training.steps=8",
                                            "training.log_every=1", "model.dropout=0.2"};
    auto recorded = plain;
    recorded.emplace_back("training.cuda_graphs=true");
    expect_close(train_on(device(), "language_modeling", "recorded-" + precision, recorded),
                 train_on(device(), "language_modeling", "plain-" + precision, plain),
                 precision == "fp32" ? 1e-3 : 0.02);
  }
}

// auto is the default. What cannot be recorded runs as it is, with a line that says why.
TEST_P(TrainingOnAGpu, StepsAreRecordedWhereThatIsPossible) {
  if (!has_graphs()) GTEST_SKIP() << "this LibTorch has no graphs here";
  const auto messages_of = [&](const std::string& task, const std::string& name,
                               std::vector<std::string> changes) {
    changes.emplace_back("training.steps=7");
    const auto plain = [&] {
      auto overrides = exact(changes);
      overrides.emplace_back("training.cuda_graphs=false");
      return train_on(device(), task, name + "-plain", overrides);
    }();
    std::string messages;
    TrainOptions options{.run_dir = world().path(name), .device = device()};
    options.on_progress = [&](const TrainProgress& progress) { messages += progress.message + "\n"; };
    train(world().experiment(task, exact(changes)), options);
    expect_close(losses_of(world().path(name)), plain, 2e-3);
    return messages;
  };
  EXPECT_THAT(messages_of("language_modeling", "auto", {}), Not(HasSubstr("cuda_graphs")));
  EXPECT_THAT(messages_of("text_to_text", "auto-buckets", {"training.gradient_accumulation=2"}),
              Not(HasSubstr("cuda_graphs")));
  EXPECT_THAT(messages_of("language_modeling", "auto-window", {"model.attention={type: strided, stride: 4}"}),
              HasSubstr("training.cuda_graphs: auto: steps are not recorded (aten::"));
  EXPECT_THAT(messages_of("object_detection", "auto-detection", {}), Not(HasSubstr("cuda_graphs")))
      << "not known to repeat";
}

TEST_P(TrainingOnAGpu, OperationsThatWaitForTheDeviceAreSeen) {
  const auto x = torch::tensor({1.0, 0.0, 2.0}).to(device());
  const auto here = torch::zeros({3});
  const auto obstacle = [&](const auto& work) {
    const RecordableWatch watch(device());
    work();
    return watch.obstacle().value_or("");
  };
  EXPECT_EQ(obstacle([&] { x.add(1).sum(); }), "");
  EXPECT_EQ(obstacle([&] { x.index({torch::arange(2, device())}); }), "");
  EXPECT_EQ(obstacle([&] { here.nonzero(); }), "") << "another device";
  EXPECT_EQ(obstacle([&] { x.nonzero(); }), "aten::nonzero waits for the device");
  EXPECT_EQ(obstacle([&] { x[0].item<float>(); }), "aten::_local_scalar_dense waits for the device");
  EXPECT_EQ(obstacle([&] { x.masked_select(x > 0); }), "aten::masked_select waits for the device");
  EXPECT_THAT(obstacle([&] { x.index({x > 0}); }), HasSubstr("waits for the device"));
  EXPECT_EQ(obstacle([&] { x.copy_(here); }), "aten::copy_ between devices");
  EXPECT_EQ(obstacle([&] { here.copy_(x); }), "aten::copy_ between devices");
}

// The running statistics of batch norm count each step once.
TEST_P(TrainingOnAGpu, RecordingAStepChangesNothingTwice) {
  if (!has_graphs()) GTEST_SKIP() << "this LibTorch has no graphs here";
  const auto losses = [&](const std::string& name, const std::string& graphs) {
    const auto experiment = parse_experiment(R"(
name: tiny
task: image_classification
data: {train: train-images-idx3, images: {size: 8, channels: 1, label_names: [bars, columns, noise]}}
model: {architecture: {type: resnet, depth: 18, width: 4, stem_stride: 1}}
training:
  {steps: 8, batch_size: 8, optimizer: {lr: 0.01}, log_every: 1, evaluate_every: 4, threads: 1, precision: fp32}
)",
                                             "tiny.yaml", {"training.cuda_graphs=" + graphs});
    return losses_of(train(experiment, {.run_dir = world().path(name), .device = device()}).run_dir);
  };
  expect_close(losses("recorded", "true"), losses("plain", "false"), 1e-3);
}

// Bodies that wait for the device, or copy to it, are recorded well or refused in a line; a refused training
// leaves a device that works.
TEST_P(TrainingOnAGpu, WhatCannotBeRecordedIsRefusedAndHarmsNothing) {
  if (!has_graphs()) GTEST_SKIP() << "this LibTorch has no graphs here";
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"speech_recognition", {"data.bucket_by_length=false"}},
      {"object_detection", {}},
      {"language_modeling", {"model.attention={type: window, size: 5}"}},
      {"language_modeling", {"model.attention={type: strided, stride: 4}"}},
      {"language_modeling", {"model.position=t5"}},
      {"language_modeling", {"model.position=sinusoidal"}},
      {"image_classification", {"model.position=sinusoidal"}},
      {"masked_language_modeling",
       {"model.attention={type: window, size: 5, global: ids, global_ids: [2, 3]}"}}};
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& [task, changes] = cases[i];
    SCOPED_TRACE(task + (changes.empty() ? "" : " " + changes.front()));
    auto plain = exact(changes);
    plain.emplace_back("training.steps=6");
    auto recorded = plain;
    recorded.emplace_back("training.cuda_graphs=true");
    const auto name = fmt::format("recorded-{}", i);
    try {
      const auto losses = train_on(device(), task, name, recorded);
      expect_close(losses, train_on(device(), task, fmt::format("plain-{}", i), plain), 2e-3);
    } catch (const TrainingError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("training.cuda_graphs: true"), HasSubstr("leave it out")));
    }
    train_on(device(), "language_modeling", fmt::format("after-{}", i), exact());
  }
}

// ---- what is refused

TEST_P(TrainingOnAGpu, ProductsAreExactUnlessTheConfigurationSaysOtherwise) {
  const auto precision = [] {
    return at::globalContext().float32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV);
  };
  train_on(device(), "language_modeling", "exact", exact());
  EXPECT_EQ(precision(), at::Float32Precision::IEEE);
  train_on(device(), "language_modeling", "tf32", exact({"training.matmul=tf32"}));
  EXPECT_EQ(precision(), at::Float32Precision::TF32);
  train_on(device(), "language_modeling", "again", exact());
  EXPECT_EQ(precision(), at::Float32Precision::IEEE);
}

TEST_P(TrainingOnAGpu, WithoutEnoughMemoryItEndsWithALineAndKeepsItsCheckpoint) {
  if (!is_strict()) GTEST_SKIP() << "only the memory of the strict device can be limited";
  TrainOptions options{.run_dir = world().path("run"), .device = device()};
  int64_t steps = 0;
  options.should_stop = [&steps] {
    if (++steps == 6) limit_strict_memory(64);
    return false;
  };
  const auto message = message_of<TrainingError>(
      [&] { train(world().experiment("language_modeling", {"training.checkpoint_every=2"}), options); });
  limit_strict_memory({});
  EXPECT_THAT(message,
              AllOf(HasSubstr("mtia:0 has too little memory ("), HasSubstr("bytes more were asked for)"),
                    HasSubstr("training.batch_size"), HasSubstr("step-4 stays")));
  options.existing = ExistingRun::resume;
  EXPECT_EQ(train(world().experiment("language_modeling", {"training.checkpoint_every=2"}), options).end,
            TrainEnd::all_steps);
}

TEST(TrainingOnAProcessor, RefusesWhatOnlyAGpuHas) {
  const TinyWorld world;
  const auto message = [&](const std::string& key) {
    return message_of<ConfigError>([&] {
      train(world.experiment("language_modeling", {key}),
            {.run_dir = world.path("run"), .device = torch::kCPU});
    });
  };
  EXPECT_THAT(message("training.matmul=tf32"), HasSubstr("training.matmul: tf32 needs a GPU"));
  EXPECT_THAT(message("training.residual=bf16"),
              HasSubstr("training.residual: bf16 needs training.precision: bf16"));
  EXPECT_THAT(message("training.cuda_graphs=true"), HasSubstr("training.cuda_graphs: true needs a GPU"));
}

}  // namespace
}  // namespace zoo::testing
