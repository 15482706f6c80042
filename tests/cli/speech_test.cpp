// zoo train, predict and evaluate on recordings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/suite_directory.h"
#include "tests/support/small_recordings.h"

namespace zoo::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A run "run" that has hardly learnt to tell two words apart.
class Speech : public SuiteDirectory<Speech> {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    write_recordings(*dir_, "");
    dir_->write("config.yaml", R"(
task: speech_recognition
data:
  {train: recordings.tsv, test: recordings.tsv, tokenizer: {type: char},
   audio: {sample_rate: 8000, n_mels: 12, n_fft: 200, hop: 80, max_seconds: 2, normalization: recording}}
model: {architecture: {type: speech_encoder, max_frames: 300}, d_model: 16, n_layers: 1, n_heads: 2, position: sinusoidal}
training: {steps: 30, batch_size: 18, optimizer: {lr: 0.01}, schedule: {warmup_steps: 5}, evaluate_every: 30, threads: 1}
)");
    const auto outcome = zoo("train config.yaml --device cpu --out run");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
};

TEST_F(Speech, PredictsTheTextOfFiles) {
  const auto outcome = zoo("predict run --device cpu --json --audio sounds/1.wav sounds/2.wav");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto results = json::parse(outcome.out).at("results");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].at("input"), "sounds/1.wav");
  EXPECT_TRUE(results[0].at("text").is_string());
  EXPECT_EQ(results[0].size(), 2U);
  EXPECT_EQ(zoo("predict run --device cpu --json", "sounds/1.wav\nsounds/2.wav\n").out, outcome.out);
  EXPECT_EQ(json::parse(zoo("predict run --device cpu --json --audio sounds").out).at("results").size(), 60U);
  EXPECT_EQ(zoo("predict run --device cpu --audio sounds/1.wav").out,
            results[0].at("text").get<std::string>() + "\n");
}

TEST_F(Speech, BadFilesGetOneLine) {
  dir_->write("bad.wav", "RIFF");
  EXPECT_THAT(problem("predict run --device cpu --audio bad.wav"),
              HasSubstr("bad.wav: this is no WAV or FLAC file"));
  EXPECT_THAT(problem("predict run --device cpu --audio none.wav"), HasSubstr("none.wav"));
  EXPECT_THAT(problem("predict run --device cpu --text hello"), HasSubstr("reads recordings: use --audio"));
  EXPECT_THAT(problem("predict run --device cpu --top 3 --audio sounds/1.wav"), HasSubstr("--top"));
  EXPECT_THAT(problem("embed run --device cpu --text hello"), HasSubstr("reads recordings"));
  dir_->write("long.wav", wav(std::vector<float>(80'000), 8000));
  EXPECT_THAT(problem("predict run --device cpu --audio long.wav"),
              HasSubstr("long.wav: is 10.0 s long, longer than 2 s (data.audio.max_seconds)"));
  const auto some = zoo("predict run --device cpu --audio sounds/1.wav bad.wav");
  EXPECT_EQ(some.code, 1);
  EXPECT_THAT(some.err, AllOf(HasSubstr("skipped: bad.wav"), HasSubstr("note: 1 of 2 recordings skipped")));
}

TEST_F(Speech, AttentionIsShownOverTime) {
  const auto maps = json::parse(zoo("attention run --device cpu --json --audio sounds/1.wav").out);
  EXPECT_EQ(maps.at("text"), "sounds/1.wav");
  EXPECT_EQ(maps.at("source_tokens")[3], "0.06 s");
  EXPECT_EQ(maps.at("layers")[0].at("heads")[1].size(), maps.at("source_tokens").size());
  EXPECT_EQ(maps.at("predictions").size(), maps.at("source_tokens").size());
  const auto& recording = maps.at("recording");
  EXPECT_EQ(recording.at("frame_seconds"), 0.01);
  EXPECT_EQ(recording.at("spectrogram").size(), 12U);
  EXPECT_EQ(recording.at("spectrogram")[0].size(), 2 * maps.at("source_tokens").size());
  EXPECT_EQ(zoo("attention run --device cpu --audio sounds/1.wav").code, 0);
  EXPECT_THAT(problem("attention run --device cpu --text hello"), HasSubstr("reads recordings: use --audio"));
}

TEST_F(Speech, EvaluatesBySpeaker) {
  const auto found = json::parse(zoo("evaluate run --device cpu --split test --json").out);
  EXPECT_EQ(found.at("recordings"), 60);
  EXPECT_TRUE(found.at("wer").is_number());
  EXPECT_EQ(found.at("speakers").size(), 2U);
  EXPECT_EQ(found.at("speakers")[0].at("label"), "ann");
  EXPECT_THAT(zoo("evaluate run --device cpu").out, AllOf(HasSubstr("speaker"), HasSubstr("bob")));
}

}  // namespace
}  // namespace zoo::testing
