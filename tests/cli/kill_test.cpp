// zoo train under kill -9: twenty times during one run, at random moments.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "checkpoints/checkpoint.h"
#include "tests/cli/support.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

constexpr int64_t kSteps = 100;
constexpr int kDeaths = 20;

/// The step of the newest checkpoint; 0 without one.
int64_t newest_step(const fs::path& run) {
  const auto checkpoint = newest_checkpoint(run);
  return checkpoint ? *step_of(*checkpoint) : 0;
}

/// A checkpoint that is being written, or whose writer died.
std::optional<fs::path> unfinished_checkpoint(const fs::path& run) {
  std::error_code error;
  for (fs::directory_iterator at(run / "checkpoints", error), end; !error && at != end; at.increment(error)) {
    const auto name = at->path().filename().string();
    if (name.starts_with(".step-") && name.find(".tmp-") != name.npos) return at->path();
  }
  return std::nullopt;
}

/// Waits until `condition` holds; false if that takes too long.
template <class Condition>
bool comes_true(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

/// Without values that depend on the clock or on the memory of a process.
json timeless(json row) {
  for (const char* key : {"seconds", "tokens_per_second", "peak_resident_bytes"}) row.erase(key);
  return row;
}

std::vector<json> metrics_of(const fs::path& run) {
  std::vector<json> rows;
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) rows.push_back(timeless(json::parse(line)));
  return rows;
}

/// The names of the files in which two checkpoints differ.
std::vector<std::string> differences_of_checkpoints(const fs::path& one, const fs::path& other) {
  auto files = files_below(one), others = files_below(other);
  for (auto* checkpoint : {&files, &others}) {
    checkpoint->at("state.json") = timeless(json::parse(checkpoint->at("state.json"))).dump();
  }
  auto names = differences(files, others);
  for (const auto& name : differences(others, files)) names.push_back(name);
  return names;
}

TEST(Killed, TwentyTimesIsAsNeverKilled) {
  const TempDir dir;
  write_corpora(dir);
  // Dropout, moving average and evaluations: a resumed run must continue all of them.
  dir.write("writer.yaml", fmt::format(R"(
task: language_modeling
data: {{train: text.txt, sequence_length: 24, tokenizer: {{type: char}}}}
model: {{architecture: decoder, d_model: 32, n_layers: 2, n_heads: 2, max_positions: 32, dropout: 0.2}}
training: {{steps: {}, batch_size: 4, gradient_accumulation: 2, ema_decay: 0.9, log_every: 3, evaluate_every: 5,
           checkpoint_every: 1, threads: 1}}
generation: {{max_new_tokens: 8, temperature: 0.9}}
)",
                                       kSteps));
  const auto whole = dir / "whole", run = dir / "run";
  // This run keeps all its checkpoints for the comparison.
  const auto outcome = run_zoo(
      dir,
      fmt::format("train writer.yaml --device cpu --out whole --set training.keep_checkpoints={}", kSteps));
  ASSERT_EQ(outcome.code, 0) << outcome.err;

  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  CounterRandom random({seed});
  // Steps spread over the run, the first ones before there is a checkpoint.
  std::vector<int64_t> steps = {0, 0};
  while (steps.size() < kDeaths) steps.push_back(1 + random.below(kSteps - 2));
  std::ranges::sort(steps);

  int within_checkpoints = 0;
  for (int death = 0; death < kDeaths; ++death) {
    SCOPED_TRACE(fmt::format("death {}", death));
    const int64_t step = steps[static_cast<size_t>(death)];
    ZooProcess process(dir, "train writer.yaml --device cpu --out run --resume");
    if (step > 0) {
      ASSERT_TRUE(comes_true([&] { return newest_step(run) >= step; }));
    }
    // At any moment; every second time while a checkpoint is being written and has some of its files.
    std::chrono::duration<double, std::milli> delay(step > 0 ? 20 : 500);
    if (step > 0 && death % 2 == 0) {
      ASSERT_TRUE(comes_true([&] { return unfinished_checkpoint(run) || newest_step(run) == kSteps; }));
      delay = 4ms;
    }
    std::this_thread::sleep_for(random.uniform() * delay);
    process.kill(SIGKILL);
    const auto killed = process.finish();
    ASSERT_TRUE(killed.code == -SIGKILL || newest_step(run) == kSteps) << killed.code << killed.err;

    if (unfinished_checkpoint(run)) ++within_checkpoints;
    if (const auto newest = newest_checkpoint(run)) {
      EXPECT_THAT(differences_of_checkpoints(*newest, whole / "checkpoints" / newest->filename()),
                  ::testing::IsEmpty());
    }
  }
  RecordProperty("within_checkpoints", within_checkpoints);
  EXPECT_GE(within_checkpoints, 3);

  const auto last = run_zoo(dir, "train writer.yaml --device cpu --out run --resume");
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_THAT(differences_of_checkpoints(run / "checkpoints/last/", whole / "checkpoints/last/"),
              ::testing::IsEmpty());
  EXPECT_THAT(lasting_differences(run, whole), ::testing::ElementsAre("config.yaml"));  // keep_checkpoints
  EXPECT_EQ(metrics_of(run), metrics_of(whole));
  // Killed processes leave no files behind.
  std::vector<std::string> checkpoints;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints"))
    checkpoints.push_back(entry.path().filename());
  EXPECT_THAT(checkpoints, ::testing::UnorderedElementsAre("last", fmt::format("step-{}", kSteps),
                                                           fmt::format("step-{}", kSteps - 1)));
}

}  // namespace
}  // namespace zoo::testing
