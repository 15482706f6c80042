// Recordings from lists to transcripts: training, error rates, runs.

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "data/audio/recordings.h"
#include "tasks/audio/transcription.h"
#include "tasks/metrics/speech_metrics.h"
#include "tasks/task.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SpeechMetrics, CountTheFewestEdits) {
  const auto rate = [](const char* reference, const char* output) {
    return word_edits(reference, output).rate();
  };
  EXPECT_EQ(rate("one two three", "one two three"), 0);
  EXPECT_EQ(rate("one two three four", "one  three five"), 0.5);  // left out, replaced
  EXPECT_EQ(rate("one", "two one two three"), 3);
  EXPECT_EQ(rate("", "one two"), 2);
  EXPECT_EQ(character_edits(" über ", "uber").edits, 1);
  EXPECT_EQ(character_edits(" über ", "uber").reference, 4);
  EditCount sum = word_edits("a b", "a");
  sum += word_edits("a b", "a b");
  EXPECT_EQ(sum.rate(), 0.25);
}

/// An experiment that learns the two words in seconds.
Experiment learning(const TinyWorld& world, std::vector<std::string> overrides = {}) {
  for (const char* const value :
       {"training.steps=300", "training.batch_size=18", "training.gradient_accumulation=1",
        "training.evaluate_every=300", "training.checkpoint_every=300", "training.best_by=wer",
        "training.optimizer.lr=0.005", "model.dropout=0", "model.d_model=32", "data.audio.augment={}"})
    overrides.emplace_back(value);
  return world.speech_experiment(overrides);
}

TEST(SpeechRecognition, ARunOverSamplesLearnsAndPredicts) {
  const TinyWorld world;
  const auto experiment = world.wave_experiment(
      {"training.steps=60", "training.batch_size=18", "training.gradient_accumulation=1",
       "training.evaluate_every=60", "training.checkpoint_every=60", "training.best_by=wer",
       "training.optimizer.lr=0.005", "model.dropout=0", "data.audio.augment={}",
       "model.architecture.masks.active=false"});
  train(experiment, {.run_dir = world.path("run")});
  const zoo::Run run = zoo::Run::open(world.path("run"));
  const auto pad = run.tokenizer().special().pad;
  EXPECT_GE(pad, 0);
  EXPECT_EQ(run.model().aligning()->blank(), pad);
  EXPECT_EQ(run.model().n_outputs(), run.tokenizer().vocab_size()) << "the blank is one of the tokens";
  std::vector<double> losses;
  for (const auto& row : metrics(world.path("run")))
    if (row.contains("train_loss")) losses.push_back(row.at("train_loss").get<double>());
  ASSERT_GE(losses.size(), 2U);
  EXPECT_LT(losses.back(), 0.6 * losses.front());
}

TEST(SpeechRecognition, SamplesHaveKeysOfTheirOwn) {
  const TinyWorld world;
  const auto problem = [&](const std::string& override) {
    return message_of<ConfigError>([&] { world.wave_experiment({override}); });
  };
  EXPECT_THAT(problem("data.audio.padding=longest"), HasSubstr("data.audio.padding must be batch"));
  EXPECT_THAT(problem("data.audio.augment.spec_augment={}"),
              HasSubstr("hides parts of spectrograms, and the model reads samples"));
  EXPECT_THAT(problem("model.architecture.conv_strides=[10]"),
              HasSubstr("has 2 conv_widths, 2 conv_kernels and 1 conv_strides"));
  EXPECT_THAT(problem("model.position={type: convolution, groups: 3}"),
              HasSubstr("has 3 groups, which do not divide the width 16"));
  EXPECT_THAT(problem("model.position=learned"), HasSubstr("must be convolution, rotary"));
}

TEST(SpeechRecognition, ARunWithCtcLearnsAndPredicts) {
  const TinyWorld world;
  const auto experiment = learning(world);
  train(experiment, {.run_dir = world.path("run")});
  const zoo::Run run = zoo::Run::open(world.path("run"));
  EXPECT_TRUE(uses_ctc(experiment));
  EXPECT_EQ(run.tokenizer().special().eos, -1);  // CTC needs no special tokens

  std::vector<ClassMetrics> speakers;
  const auto metrics = run.task().evaluate(run.model(), Split::valid, {.classes = &speakers});
  EXPECT_LT(metrics.at("wer"), 0.1);
  EXPECT_EQ(metrics.at("recordings"), 6);
  double n = 0;
  for (const auto& speaker : speakers) {
    EXPECT_THAT(speaker.label, AnyOf("ann", "bob"));
    n += speaker.metrics.at("recordings");
  }
  EXPECT_EQ(n, 6);

  // Predictions are those of the evaluation.
  EditCount words;
  for (const auto& recording : read_recordings(experiment.data, Split::valid)) {
    const auto predictions = run.task().predict(run.model(), {recording.file.string()});
    ASSERT_EQ(predictions.size(), 1U);
    words += word_edits(recording.text, predictions.front().transcript());
  }
  EXPECT_EQ(words.rate(), metrics.at("wer"));
  const auto samples = run.task().samples(run.model());
  ASSERT_EQ(samples.size(), 6U);
  EXPECT_THAT(samples.front().input, HasSubstr(".wav"));
  EXPECT_THAT(samples.front().reference.value(), AnyOf(HasSubstr("low"), HasSubstr("high")));
}

TEST(SpeechRecognition, ARunWithADecoderLearns) {
  const TinyWorld world;
  const auto experiment =
      learning(world, {"model.architecture={type: whisper, max_frames: 300, pad_to_max: false}",
                       "model.n_decoder_layers=1", "data.sequence_length=24", "model.max_positions=32"});
  train(experiment, {.run_dir = world.path("run")});
  const zoo::Run run = zoo::Run::open(world.path("run"));
  EXPECT_FALSE(uses_ctc(experiment));
  const auto metrics = run.task().evaluate(run.model(), Split::train);
  EXPECT_LT(metrics.at("loss"), 0.8);
  const auto recording = read_recordings(experiment.data, Split::valid).front();
  const auto text = run.task().predict(run.model(), {recording.file.string()}).front().transcript();
  EXPECT_THAT(text, AnyOf(HasSubstr("low"), HasSubstr("high")));
}

TEST(SpeechRecognition, PredictionsAreJsonAndLines) {
  const std::vector<Prediction> predictions{{.input = "a.wav", .answer = Transcript{"one\ttwo"}}};
  EXPECT_EQ(to_json(predictions), R"({"results":[{"input":"a.wav","text":"one\ttwo"}]})");
  EXPECT_EQ(to_text(predictions), "one\\ttwo\n");
  EXPECT_EQ(to_text(predictions, kEveryLabel, InputColumn::first), "a.wav\tone\\ttwo\n");
}

TEST(SpeechRecognition, UnreadableRecordingsAreToldOrFail) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.speech_experiment());
  const auto model = initialized_model(task->experiment(), *task);
  const auto bad = world.dir().write("bad.wav", "no recording").string();
  const auto good = world.path("data/sounds/0.wav").string();
  EXPECT_THAT(message_of<DataError>([&] { task->predict(*model, {good, bad}); }),
              HasSubstr("bad.wav: this is no WAV or FLAC file"));
  std::vector<std::string> problems;
  const auto predictions = task->predict(
      *model, {bad, good}, {.on_unreadable = [&](const auto& problem) { problems.push_back(problem); }});
  ASSERT_EQ(predictions.size(), 1U);
  EXPECT_EQ(predictions.front().input, good);
  EXPECT_EQ(problems.size(), 1U);
}

TEST(SpeechRecognition, ContradictionsOfAConfigurationAreNamed) {
  const TinyWorld world;
  const auto problem = [&](const std::vector<std::string>& overrides) {
    return message_of<Error>([&] { world.speech_experiment(overrides); });
  };
  EXPECT_THAT(problem({"model.architecture=encoder"}),
              HasSubstr("must be speech_encoder, wave_encoder or whisper, not encoder"));
  EXPECT_THAT(problem({"model.architecture={type: whisper, max_frames: 300}", "data.sequence_length=24"}),
              HasSubstr("must be longest: the model pads recordings to 300 frames"));
  EXPECT_THAT(problem({"data.audio.max_seconds=20"}), HasSubstr("model.architecture.max_frames is 300"));
  EXPECT_THAT(problem({"model.architecture={type: speech_encoder, max_frames: 300, n_mels: 80}"}),
              HasSubstr("reads 80 bands, but data.audio.n_mels is 12: leave out n_mels"));
  EXPECT_THAT(problem({"data.audio.hop=300"}), HasSubstr("is more than n_fft 200"));
  EXPECT_THAT(problem({"training.label_smoothing=0.1"}), HasSubstr("is not for CTC"));
  EXPECT_THAT(problem({"data.audio.sample_rate=100"}), HasSubstr("sample_rate"));
}

}  // namespace
}  // namespace zoo::testing
