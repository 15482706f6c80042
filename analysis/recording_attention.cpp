#include "analysis/recording_attention.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/audio/recordings.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "tasks/audio/speech_batches.h"
#include "tasks/audio/transcription.h"
#include "tasks/task.h"
#include "text/batches/teacher_forcing.h"

namespace zoo {
namespace {

constexpr int64_t kLikeliestTokens = 5;

/// The times at which the vectors of a spectrogram begin: two frames become one.
std::vector<std::string> times_of(const Batch& batch, const AudioConfig& config) {
  const auto frames = batch.field(fields::kSpectrograms).size(2);
  std::vector<std::string> times;
  for (int64_t frame = 0; frame < frames; frame += 2) {
    times.push_back(fmt::format(
        "{:.2f} s", static_cast<double>(frame * config.hop) / static_cast<double>(config.sample_rate)));
  }
  return times;
}

/// The likeliest classes of each vector.
TokenPredictions classes_of_vectors(Model& model, const Tokenizer& tokenizer, const Batch& batch) {
  const InferenceScope scope(model);
  const auto shares = model.logits(model.hidden_states(batch))[0].to(torch::kCPU, torch::kDouble).softmax(-1);
  const int64_t blank = shares.size(1) - 1;
  const auto [values, ids] = shares.topk(std::min(kLikeliestTokens, shares.size(1)), -1);
  TokenPredictions predictions;
  for (int64_t t = 0; t < shares.size(0); ++t) {
    auto& likeliest = predictions.emplace_back();
    for (int64_t i = 0; i < ids.size(1); ++i) {
      const auto id = ids[t][i].item<int64_t>();
      likeliest.push_back(
          {.token = id == blank ? "∅" : tokenizer.label(id), .probability = values[t][i].item<double>()});
    }
  }
  return predictions;
}

/// Adds what a decoder reads and writes.
void add_decoder(AttentionReport& report, const Tokenizer& tokenizer, Batch& batch) {
  const auto ids = tokenizer.encode(report.target);
  add_teacher_forcing(batch, {ids}, tokenizer.special());
  report.target_tokens.push_back(tokenizer.label(decoder_start(tokenizer.special())));
  for (const int64_t id : ids) {
    report.target_tokens.push_back(tokenizer.label(id));
    report.target_next.push_back(tokenizer.label(id));
  }
  report.target_next.push_back(tokenizer.label(tokenizer.special().eos));
}

}  // namespace

AttentionReport recording_attention_report(const Run& run, const std::string& file) {
  const auto& experiment = run.experiment();
  if (task_type(experiment).predicts_from != PredictionInput::audio_file)
    throw UsageError(fmt::format("the task {} reads no recordings", experiment.task.type));
  if (const auto problem = why_no_maps(experiment.model)) throw UsageError(*problem + ": choose another run");
  auto& model = run.model();
  const auto& audio = experiment.data.audio;
  const std::vector<std::vector<float>> samples{read_samples(file, audio)};
  auto batch = batch_of_recordings(samples, audio);
  AttentionReport report;
  report.name = experiment.name;
  report.text = file;
  report.target = transcribe(model, run.task(), batch, experiment.generation).front();
  report.source_tokens = times_of(batch, audio);
  report.recording = AttendedRecording{
      .spectrogram = batch.field(fields::kSpectrograms)[0].to(torch::kFloat32).contiguous(),
      .frame_seconds = static_cast<double>(audio.hop) / static_cast<double>(audio.sample_rate)};
  const bool has_decoder = run.task().purpose().head == HeadKind::language_modeling;
  if (has_decoder) add_decoder(report, run.tokenizer(), batch);
  const auto on_device = model.on_device(batch);
  report.layers = attention_layers(model, on_device);
  report.predictions = has_decoder ? token_predictions(model, run.tokenizer(), on_device, kLikeliestTokens)
                                   : classes_of_vectors(model, run.tokenizer(), on_device);
  return report;
}

}  // namespace zoo
