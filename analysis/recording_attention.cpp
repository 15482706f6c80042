#include "analysis/recording_attention.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/audio/recordings.h"
#include "models/families/families.h"
#include "models/families/recordings.h"
#include "models/inference_scope.h"
#include "tasks/audio/speech_batches.h"
#include "tasks/audio/transcription.h"
#include "tasks/task.h"
#include "text/batches/teacher_forcing.h"

namespace zoo {
namespace {

constexpr int64_t kLikeliestTokens = 5;

/// The times at which `n` vectors begin that are `step` samples apart.
std::vector<std::string> times_of(int64_t n, int64_t step, const AudioConfig& config) {
  std::vector<std::string> times;
  for (int64_t i = 0; i < n; ++i)
    times.push_back(
        fmt::format("{:.2f} s", static_cast<double>(i * step) / static_cast<double>(config.sample_rate)));
  return times;
}

/// The spectrogram that a page shows, with two frames for each of `n` vectors of the encoder.
AttendedRecording shown_recording(const std::vector<std::vector<float>>& samples, int64_t n,
                                  AudioConfig config, const ModelConfig& model) {
  constexpr int64_t frames = 2;
  if (!reads_spectrograms(model)) {
    config.hop = std::max<int64_t>(samples_per_vector(model, config.hop) / frames, 1);
    config.n_fft = std::max(config.n_fft, config.hop);
  }
  const auto whole = batch_of_recordings(samples, config).field(fields::kSpectrograms)[0];
  return {.spectrogram = torch::constant_pad_nd(whole, {0, frames * n - whole.size(1)}).contiguous(),
          .frame_seconds = static_cast<double>(config.hop) / static_cast<double>(config.sample_rate)};
}

/// The likeliest classes of each vector.
TokenPredictions classes_of_vectors(Model& model, const Tokenizer& tokenizer, const Batch& batch) {
  const InferenceScope scope(model);
  const auto shares = model.logits(model.hidden_states(batch))[0].to(torch::kCPU, torch::kDouble).softmax(-1);
  const int64_t blank = model.aligning()->blank();
  const auto [values, ids] = shares.topk(std::min(kLikeliestTokens, shares.size(1)), -1);
  TokenPredictions predictions;
  for (int64_t t = 0; t < shares.size(0); ++t) {
    auto& likeliest = predictions.emplace_back();
    for (int64_t i = 0; i < ids.size(1); ++i) {
      const auto id = ids[t][i].item<int64_t>();
      likeliest.push_back({.token = id == blank                   ? "∅"
                                    : id < tokenizer.vocab_size() ? tokenizer.label(id)
                                                                  : fmt::format("<{}>", id),
                           .probability = values[t][i].item<double>()});
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
  auto batch = batch_of_recordings(samples, audio, *recording_input(experiment.model));
  AttentionReport report;
  report.name = experiment.name;
  report.text = file;
  report.target = transcribe(model, run.task(), batch, experiment.generation).front();
  const bool has_decoder = run.task().purpose().head == HeadKind::language_modeling;
  if (has_decoder) add_decoder(report, run.tokenizer(), batch);
  const auto on_device = model.on_device(batch);
  report.layers = attention_layers(model, on_device);
  report.predictions = has_decoder ? token_predictions(model, run.tokenizer(), on_device, kLikeliestTokens)
                                   : classes_of_vectors(model, run.tokenizer(), on_device);
  const int64_t n_vectors = has_decoder ? n_audio_vectors(batch.field(fields::kSpectrograms).size(2))
                                        : std::ssize(report.predictions);
  report.recording = shown_recording(samples, n_vectors, audio, experiment.model);
  report.source_tokens = times_of(n_vectors, samples_per_vector(experiment.model, audio.hop), audio);
  return report;
}

}  // namespace zoo
