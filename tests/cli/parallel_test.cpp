// zoo train with several processes: --nproc, and torchrun.

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "checkpoints/checkpoint.h"
#include "io/safetensors.h"
#include "tests/cli/support.h"
#include "tests/support/small_images.h"
#include "tests/support/small_recordings.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Parallel : public ::testing::Test {
 protected:
  Parallel() {
    write_corpora(dir_);
    dir_.write("lm.yaml", R"(
data: {train: text.txt, sequence_length: 16, tokenizer: {type: char}}
model: {architecture: decoder, d_model: 16, n_layers: 2, n_heads: 2, max_positions: 32, dropout: 0.1,
  attention_dropout: 0.1, activation_dropout: 0.1, tie_embeddings: true}
training:
  {steps: 50, batch_size: 8, gradient_accumulation: 2, optimizer: {lr: 0.01}, schedule: {type: constant, warmup_steps: 3}, log_every: 1,
   evaluate_every: 25, checkpoint_every: 10, threads: 1}
)");
    dir_.write("pairs.yaml", R"(
extends: lm.yaml
task: text_to_text
data: {train: pairs}
model: {architecture: encoder_decoder}
training: {batch_tokens: 100, gradient_accumulation: 1, optimizer: {type: muon, muon: {precision: fp32}}, ema_decay: 0.9,
   best_by: bleu}
)");
    dir_.write("classes.yaml", R"(
extends: lm.yaml
task: text_classification
data: {train: table.tsv, valid: table.tsv, sequence_length: 32}
model: {architecture: encoder}
training: {batch_size: 5, optimizer: {type: adafactor}, best_by: accuracy}
)");
    std::string tagged = "sentence\tlabel\n";
    for (int i = 0; i < 40; ++i) tagged += i % 3 ? "that is good\tO - B\n" : "that was not good\tO O B I\n";
    dir_.write("tagged.tsv", tagged);
    dir_.write("tags.yaml", R"(
extends: lm.yaml
task: token_classification
data: {train: tagged.tsv, valid: tagged.tsv, sequence_length: 32}
model: {architecture: encoder}
training: {batch_size: 5, best_by: accuracy}
)");
    // Tokens between two experts go to the one or the other as gradients round: steps are small.
    dir_.write("experts.yaml", R"(
extends: lm.yaml
model: {experts: {count: 4, d_ff: 16, choice_bias: true, bias_rate: 0.001, balance_over: step}}
training: {steps: 40, optimizer: {lr: 0.0002}, ema_decay: 0.9, average_last: 2, parallel: {experts: divided}}
)");
    write_image_classes(dir_, "");
    dir_.write("images.yaml", R"(
extends: lm.yaml
task: image_classification
data: {train: train-images-idx3, images: {size: 8, channels: 1, label_names: [bars, columns, noise],
  augment: {crop_padding: 1, flip: 0.5, erasing: 0.25, mixup: 0.4}}}
model: {architecture: {type: vit, patch_size: 4}, position: learned, init: xavier_uniform}
)");
    write_marked_pictures(dir_, "");
    // Steps of Adam and norms over a few pixels turn rounding into large differences. So does the matching of
    // queries and objects, which changes all at once: steps are so small that a change stays below the bound.
    dir_.write("boxes.yaml", R"(
extends: lm.yaml
task: object_detection
data: {train: pictures.json, images: {size: 16, channels: 1, augment: {min_crop_area: 0.5, min_scale: 0.7, flip: 0.5}}}
model: {architecture: {type: detr, n_queries: 5, backbone: {depth: 18, width: 4, stem_stride: 1, norm: frozen_batch}},
  position: sinusoidal, n_decoder_layers: 2, init: xavier_uniform,
  dropout: 0, attention_dropout: 0, activation_dropout: 0}
training: {steps: 25, optimizer: {type: sgd, lr: 0.0002, momentum: 0.9}, best_by: map}
)");
    write_recordings(dir_, "");
    dir_.write("speech.yaml", R"(
extends: lm.yaml
task: speech_recognition
data:
  {train: recordings.tsv,
   audio: {sample_rate: 8000, n_mels: 12, n_fft: 200, hop: 80, max_seconds: 2, normalization: recording,
           augment: {speed: 0.1, shift: 0.02, gain: 3, spec_augment: {frequency_width: 2, time_width: 4}}}}
model: {architecture: {type: speech_encoder, max_frames: 300}, tie_embeddings: false, position: sinusoidal}
training: {best_by: wer}
)");
  }

  fs::path path(std::string_view name) const { return dir_ / name; }
  Outcome zoo(const std::string& arguments) const { return run_zoo(dir_, arguments); }
  void train(const std::string& arguments) const {
    const auto outcome = zoo("train " + arguments);
    ASSERT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
  }

  /// Losses of a run's steps and evaluations, and other validation metrics.
  std::vector<double> losses(std::string_view run) const {
    std::vector<double> result;
    std::istringstream lines(read_file(path(run) / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto row = json::parse(line);
      for (const char* metric : {"train_loss", "valid_loss", "mean_valid_loss", "valid_accuracy",
                                 "valid_bleu", "valid_map", "valid_wer"}) {
        if (row.contains(metric)) result.push_back(row[metric]);
      }
    }
    return result;
  }
  void expect_same_losses(std::string_view run, std::string_view other) const {
    const auto a = losses(run), b = losses(other);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-4) << run << ", " << other << ", row " << i;
  }

  /// Compares only losses of steps: if a run was trained in parts, the end of each adds an evaluation.
  void expect_same_steps(std::string_view run, std::string_view other) const {
    const auto steps = [&](std::string_view name) {
      std::vector<double> result;
      std::istringstream lines(read_file(path(name) / "metrics.jsonl"));
      for (std::string line; std::getline(lines, line);) {
        const auto row = json::parse(line);
        if (row.contains("train_loss")) result.push_back(row["train_loss"]);
      }
      return result;
    };
    const auto a = steps(run), b = steps(other);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << "step " << i + 1;
  }

  /// Waits until a run has a checkpoint at `step` or later.
  void wait_for_checkpoint(std::string_view run, int64_t step) const {
    for (int i = 0; i < 24'000; ++i) {
      const auto newest = newest_checkpoint(path(run));
      if (newest && *step_of(*newest) >= step) return;
      std::this_thread::sleep_for(10ms);
    }
    FAIL() << run << " has no checkpoint at step " << step;
  }

  /// The process with this rank that trains a run in the directory of this test.
  pid_t process_of(int rank, std::string_view run) const {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::ifstream variables(entry.path() / "environ"), arguments(entry.path() / "cmdline");
      std::error_code error;
      if (fs::read_symlink(entry.path() / "cwd", error) != fs::canonical(dir_.path(), error)) continue;
      std::string environment{std::istreambuf_iterator<char>(variables), {}},
          command{std::istreambuf_iterator<char>(arguments), {}};
      const std::string wanted = fmt::format("RANK={}", rank);
      if (('\0' + environment).find('\0' + wanted + '\0') != std::string::npos &&
          ('\0' + command).find('\0' + std::string(run) + '\0') != std::string::npos)
        return std::stoi(entry.path().filename());
    }
    return -1;
  }

  TempDir dir_;
};

TEST_F(Parallel, TrainsWhatOneProcessTrains) {
  for (const std::string config : {"lm", "pairs", "classes", "tags", "images", "boxes", "speech"}) {
    SCOPED_TRACE(config);
    const auto once = [&](const std::string& run, const std::string& options) {
      train(fmt::format("{}.yaml --out {} {}", config, run, options));
    };
    const std::string shards = " --set training.parallel.shard_optimizer=true";
    once(config + "1", "");
    once(config + "4z", "--nproc 4" + shards);
    expect_same_losses(config + "1", config + "4z");
    if (config != "lm") continue;
    once("lm2", "--nproc 2");
    once("lm4", "--nproc 4");
    once("lm2z", "--nproc 2" + shards);
    for (const std::string run : {"lm2", "lm4", "lm2z"}) expect_same_losses("lm1", run);
    const auto files = [&](const std::string& run) {
      std::vector<std::string> names;
      for (const auto& [name, content] : files_below(path(run))) {
        if (!name.starts_with("events.")) names.push_back(name);
      }
      return names;
    };
    EXPECT_EQ(files("lm1"), files("lm4")) << "one process writes";
    EXPECT_EQ(files("lm1"), files("lm2z"));
  }
}

// The experts' loads are summed over the processes. After more steps, a token between two experts may go to
// the one or the other, because gradients round differently.
TEST_F(Parallel, BalancesExpertsAsOneProcessDoes) {
  for (const std::string experts : {"choice_bias: true, bias_rate: 0.01, balance: 0", "balance_over: step"}) {
    SCOPED_TRACE(experts);
    const auto options = fmt::format(
        "--overwrite --set training.steps=1 --set \"model.experts={{count: 4, d_ff: 16, {}}}\"", experts);
    train("lm.yaml --out experts1 " + options);
    train("lm.yaml --out experts2 --nproc 2 " + options);
    const auto buffer_of = [&](std::string_view run) {
      const SafetensorsFile file(path(run) / "checkpoints/last/model.safetensors");
      const std::string name = experts.starts_with("choice") ? "choice_bias" : "last_share";
      auto buffer = torch::empty({4});
      file.read_into(buffer, "decoder.layers.0.experts." + name);
      return buffer;
    };
    const auto alone = buffer_of("experts1");
    EXPECT_TRUE(torch::equal(alone, buffer_of("experts2")));
    EXPECT_GT(alone.std().item<double>(), 1e-3);
  }
}

TEST_F(Parallel, DividesExpertsAndTrainsWhatOneProcessTrains) {
  train("experts.yaml --out one");
  for (const int n : {2, 4}) {
    SCOPED_TRACE(n);
    const auto run = fmt::format("divided{}", n);
    train(fmt::format("experts.yaml --out {} --nproc {}", run, n));
    expect_same_losses("one", run);
    for (const std::string file : {"model", "optimizer", "average"}) {
      const auto name = "checkpoints/last/" + file + ".safetensors";
      const SafetensorsFile expected(path("one") / name), found(path(run) / name);
      ASSERT_EQ(found.names(), expected.names());
      for (const auto& tensor : expected.names()) {
        ASSERT_EQ(found.shape(tensor), expected.shape(tensor)) << tensor;
        auto a = torch::empty(expected.shape(tensor), expected.dtype(tensor)), b = torch::empty_like(a);
        expected.read_into(a, tensor);
        found.read_into(b, tensor);
        EXPECT_LT((a - b).abs().max().item<double>(), 1e-3) << tensor;
      }
    }
    const auto evaluated = [&](const std::string& which) { return zoo("evaluate " + which).out; };
    const auto loss = [](const std::string& text) { return text.substr(text.find("loss"), 10); };
    EXPECT_EQ(loss(evaluated(run)), loss(evaluated("one")));
  }
}

TEST_F(Parallel, GoesOnWithOtherProcesses) {
  const std::string shards = "--set training.parallel.shard_optimizer=true ";
  train("lm.yaml --out whole");
  // 2, 3, 2 and 1 processes; the optimiser's state is sharded, sharded differently, and gathered.
  train("lm.yaml --out run --nproc 2 --set training.steps=20 " + shards);
  train("lm.yaml --out run --nproc 3 --resume --set training.steps=30 " + shards);
  train("lm.yaml --out run --nproc 2 --resume --set training.steps=40");
  train("lm.yaml --out run --resume");
  expect_same_steps("whole", "run");
}

TEST_F(Parallel, ExpertsGoOnDividedAmongOtherProcesses) {
  train("experts.yaml --out whole");
  train("experts.yaml --out run --nproc 2 --set training.steps=20");
  train("experts.yaml --out run --nproc 4 --resume --set training.steps=25");
  train("experts.yaml --out run --resume --set training.steps=30");
  train("experts.yaml --out run --nproc 2 --resume");
  expect_same_steps("whole", "run");
}

TEST_F(Parallel, DividedExpertsGoOnToTheLastBitWhenOneWasKilled) {
  const std::string command = "train experts.yaml --nproc 2 --set training.steps=200";
  ASSERT_EQ(zoo(command + " --out whole").code, 0);
  ZooProcess training(dir_, command + " --out run");
  wait_for_checkpoint("run", 30);
  const pid_t victim = process_of(1, "run");
  ASSERT_GT(victim, 0);
  ::kill(victim, SIGKILL);
  EXPECT_EQ(training.finish().code, 1);
  ASSERT_EQ(zoo(command + " --resume --out run").code, 0);
  EXPECT_THAT(lasting_differences(path("whole"), path("run")), IsEmpty());
}

// Each process has experts that no other could give it.
TEST_F(Parallel, DividedExpertsBeginWithTheWeightsOfAnotherRun) {
  train("experts.yaml --out first --set training.steps=20");
  for (const auto& [run, processes] : {std::pair("one", ""), std::pair("two", " --nproc 2")}) {
    train(
        fmt::format("experts.yaml --out {} --set init_from=first --set training.seed=7 "
                    "--set training.steps=20{}",
                    run, processes));
  }
  expect_same_losses("one", "two");
}

TEST_F(Parallel, ARankThatIsKilledEndsAllAndTheRunGoesOn) {
  const std::string command =
      "train lm.yaml --nproc 2 --set training.steps=400 --set training.parallel.shard_optimizer=true";
  ASSERT_EQ(zoo(command + " --out whole").code, 0);
  for (const int rank : {1, 0}) {
    SCOPED_TRACE(rank);
    const auto run = fmt::format("run{}", rank);
    ZooProcess training(dir_, command + " --out " + run);
    wait_for_checkpoint(run, 30);
    const pid_t victim = process_of(rank, run);
    ASSERT_GT(victim, 0);
    const auto start = std::chrono::steady_clock::now();
    ::kill(victim, SIGKILL);
    const auto outcome = training.finish();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 120s);
    EXPECT_EQ(outcome.code, 1);
    const auto message = outcome.err.substr(outcome.err.rfind("zoo: "));
    EXPECT_THAT(message, AllOf(HasSubstr(fmt::format("process {} of 2 was killed", rank)),
                               HasSubstr("--resume goes on from " + run + "/checkpoints/step-")));
    EXPECT_EQ(std::ranges::count(message, '\n'), 1) << message;
    EXPECT_EQ(process_of(0, run), -1);
    EXPECT_EQ(process_of(1, run), -1);
    ASSERT_EQ(zoo(command + " --resume --out " + run).code, 0);
    EXPECT_THAT(lasting_differences(path("whole"), path(run)), IsEmpty());
  }
}

TEST_F(Parallel, ARankThatHangsEndsAllInTheStatedTime) {
  ZooProcess training(dir_,
                      "train lm.yaml --nproc 2 --out run --set training.steps=100000 "
                      "--set training.parallel.timeout_seconds=10");
  wait_for_checkpoint("run", 10);
  const pid_t victim = process_of(1, "run");
  ASSERT_GT(victim, 0);
  const auto start = std::chrono::steady_clock::now();
  ::kill(victim, SIGSTOP);
  const auto outcome = training.finish();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s + 120s);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("zoo: process 1 of 2 did not answer"),
                                 HasSubstr("--resume goes on from run/")));
}

TEST_F(Parallel, AStopIsAStopOfAll) {
  const std::string command = "train lm.yaml --nproc 2 --set training.steps=400";
  ASSERT_EQ(zoo(command + " --out whole").code, 0);
  ZooProcess training(dir_, command + " --out run");
  wait_for_checkpoint("run", 20);
  training.kill(SIGINT);
  const auto outcome = training.finish();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("run: stopped and saved after step"));
  ASSERT_EQ(zoo(command + " --out run --resume").code, 0);
  EXPECT_THAT(lasting_differences(path("whole"), path("run")), IsEmpty());
}

// The processes exist, but have not yet set their handlers: loading LibTorch takes them some tenths of a
// second.
TEST_F(Parallel, AStopWhileTheProcessesStartIsAStop) {
  for (const int rank : {0, 1}) {
    SCOPED_TRACE(rank);
    const auto run = fmt::format("run{}", rank);
    ZooProcess training(dir_, "train lm.yaml --nproc 2 --set training.steps=100000 --out " + run);
    while (process_of(rank, run) < 0) std::this_thread::sleep_for(1ms);
    training.kill(SIGINT);
    const auto outcome = training.finish();
    EXPECT_EQ(outcome.code, 128 + SIGINT);
    EXPECT_EQ(outcome.err, run + ": stopped before the first step; there was nothing to save\n");
    EXPECT_EQ(process_of(0, run), -1);
    EXPECT_EQ(process_of(1, run), -1);
  }
}

// One of them may wait for another that will never come.
TEST_F(Parallel, NoProcessOutlivesAKilledLauncher) {
  for (const auto delay : {0ms, 400ms, 1200ms}) {
    SCOPED_TRACE(delay.count());
    ZooProcess training(dir_, "train lm.yaml --nproc 2 --set training.steps=100000 --out run");
    for (int i = 0; i < 3000 && process_of(1, "run") < 0; ++i) std::this_thread::sleep_for(1ms);
    const pid_t first = process_of(0, "run"), second = process_of(1, "run");
    ASSERT_GT(first, 0);
    ASSERT_GT(second, 0);
    ::kill(second, SIGSTOP);
    std::this_thread::sleep_for(delay);
    training.kill(SIGKILL);
    const auto ends = [&](int rank) {
      for (int i = 0; i < 3000 && process_of(rank, "run") > 0; ++i) std::this_thread::sleep_for(10ms);
      return process_of(rank, "run") < 0;
    };
    EXPECT_TRUE(ends(0)) << "the process that waits for the other one";
    ::kill(second, SIGCONT);
    EXPECT_TRUE(ends(1)) << "the process that was held up";
    for (const int rank : {0, 1})
      if (const pid_t process = process_of(rank, "run"); process > 0) ::kill(process, SIGKILL);
  }
}

TEST_F(Parallel, WhatIsWrongIsSaidOnce) {
  const auto expect_one_line = [&](const std::string& arguments, int code, const std::string& message) {
    const auto outcome = zoo("train " + arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  };
  expect_one_line("lm.yaml --nproc 3 --set training.stepz=1", 2, "training.stepz");
  expect_one_line("lm.yaml --nproc 3 --set data.train=missing.txt", 2, "missing.txt");
  expect_one_line("lm.yaml --nproc 0", 2, "--nproc");
  expect_one_line("lm.yaml --nproc 2 --device cuda:0", 2, "--device cuda");
  const std::string divided = "training.parallel.experts cannot be divided ";
  expect_one_line("lm.yaml --set training.parallel.experts=divided", 2, divided + "without experts");
  expect_one_line("experts.yaml --set training.optimizer.type=adafactor", 2,
                  divided + "with training.optimizer adafactor");
  expect_one_line(
      "experts.yaml --set training.batch_size=auto --set training.effective_batch_size=8 "
      "--set training.gradient_accumulation=1",
      2, divided + "with training.batch_size: auto");
  expect_one_line("experts.yaml --set training.lora.rank=2", 2, divided + "with training.lora");
  expect_one_line("experts.yaml --set training.parallel.shard_optimizer=true", 2,
                  divided + "with training.parallel.shard_optimizer");
  expect_one_line("experts.yaml --nproc 3 --out uneven", 2, "4 experts cannot be divided among 3 processes");
  train("lm.yaml --out run --set training.steps=2");
  expect_one_line("lm.yaml --nproc 2 --out run", 2, "run: this run exists");
  // If training cannot go on, the first process says so.
  const auto outcome =
      zoo("train lm.yaml --nproc 2 --out nan --set training.optimizer.lr=1e30 "
          "--set training.schedule.warmup_steps=0");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("a lower training.optimizer.lr"));
  EXPECT_TRUE(fs::exists(path("nan/failed.txt")));
}

TEST_F(Parallel, TorchrunStartsTheProcesses) {
  const fs::path torchrun = fs::current_path() / ".venv/bin/torchrun";
  if (!fs::exists(torchrun)) GTEST_SKIP() << "no torchrun in .venv";
  train("lm.yaml --out one");
  const auto command = fmt::format(
      "cd '{0}' && ZOO_DATA='{0}' ZOO_CACHE='{0}/cache' '{1}' --no-python --standalone --nproc-per-node 2 "
      "'{2}' train "
      "lm.yaml --out two > '{0}/log' 2>&1",
      dir_.path().string(), torchrun.string(), std::getenv("ZOO_PROGRAM"));
  ASSERT_EQ(std::system(command.c_str()), 0) << read_file(path("log"));
  expect_same_losses("one", "two");
}

}  // namespace
}  // namespace zoo::testing
