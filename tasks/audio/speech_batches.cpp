#include "tasks/audio/speech_batches.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/types.h>

#include "base/random.h"
#include "data/epoch_plan.h"
#include "text/batches/padded_rows.h"
#include "text/batches/teacher_forcing.h"

namespace zoo {
namespace {

/// What a random change does to the samples of a recording.
struct SampleChanges {
  int64_t speed = 100;            // hundredths
  int64_t before = 0, after = 0;  // samples of silence
  double factor = 1;              // of the loudness
};

SampleChanges draw_changes(const AudioConfig& config, CounterRandom& random) {
  constexpr double per_decibel = 20;
  const auto& augment = config.augment;
  SampleChanges changes;
  const auto most_percent = static_cast<int64_t>(std::round(100 * augment.speed));
  changes.speed += random.below(2 * most_percent + 1) - most_percent;
  const auto most_silence = static_cast<int64_t>(augment.shift * static_cast<double>(config.sample_rate));
  changes.before = random.below(most_silence + 1);
  changes.after = random.below(most_silence + 1);
  changes.factor = std::pow(10, augment.gain * (2 * random.uniform() - 1) / per_decibel);
  return changes;
}

void change(std::vector<float>& samples, const SampleChanges& changes) {
  for (float& sample : samples) sample = static_cast<float>(static_cast<double>(sample) * changes.factor);
  samples.insert(samples.begin(), static_cast<size_t>(changes.before), 0.0F);
  samples.insert(samples.end(), static_cast<size_t>(changes.after), 0.0F);
}

/// What a model reads of recordings of unequal length, in one tensor.
class RecordingRows {
 public:
  virtual ~RecordingRows() = default;
  /// A row, not yet in the batch.
  virtual torch::Tensor make(std::vector<float> samples) const = 0;
  virtual void set(int64_t row, const torch::Tensor& made) = 0;
  virtual void put_into(Batch& batch) const = 0;
};

class Spectrograms final : public RecordingRows {
 public:
  /// n_samples: of each recording.
  Spectrograms(const AudioConfig& config, const LogMel& log_mel, const std::vector<int64_t>& n_samples)
      : config_(config), log_mel_(log_mel) {
    for (const int64_t n : n_samples)
      frames_.push_back(log_mel.n_frames(is_padded() ? std::max(n, config.max_samples()) : n));
    const int64_t longest = *std::ranges::max_element(frames_);
    all_ = torch::zeros({std::ssize(frames_), config.n_mels, longest + longest % 2});
  }

  torch::Tensor make(std::vector<float> samples) const override {
    if (is_padded()) samples.resize(std::max(samples.size(), static_cast<size_t>(config_.max_samples())));
    return log_mel_(samples);
  }
  void set(int64_t row, const torch::Tensor& spectrogram) override {
    all_[row].narrow(1, 0, spectrogram.size(1)).copy_(spectrogram);
  }
  void put_into(Batch& batch) const override {
    batch.fields[fields::kSpectrograms] = all_;
    if (!is_padded()) batch.fields[fields::kFrames] = int64_tensor(frames_);
  }

 private:
  bool is_padded() const { return config_.padding == RecordingPadding::longest; }

  const AudioConfig& config_;
  const LogMel& log_mel_;
  std::vector<int64_t> frames_;
  torch::Tensor all_;  // (B, M, N)
};

class Waves final : public RecordingRows {
 public:
  Waves(const AudioConfig& config, const std::vector<int64_t>& n_samples)
      : config_(config),
        counts_(n_samples),
        all_(torch::zeros(
            {std::ssize(n_samples), std::max<int64_t>(*std::ranges::max_element(n_samples), 1)})) {}

  torch::Tensor make(std::vector<float> samples) const override {
    return torch::tensor(config_.standardize ? standardized(std::move(samples)) : samples);
  }
  void set(int64_t row, const torch::Tensor& samples) override {
    all_[row].narrow(0, 0, samples.size(0)).copy_(samples);
  }
  void put_into(Batch& batch) const override {
    batch.fields[fields::kSamples] = all_;
    batch.fields[fields::kSampleCounts] = int64_tensor(counts_);
  }

 private:
  const AudioConfig& config_;
  std::vector<int64_t> counts_;
  torch::Tensor all_;  // (B, N)
};

std::unique_ptr<RecordingRows> rows_for(RecordingInput input, const AudioConfig& config,
                                        const LogMel& log_mel, const std::vector<int64_t>& n_samples) {
  if (input == RecordingInput::samples) return std::make_unique<Waves>(config, n_samples);
  return std::make_unique<Spectrograms>(config, log_mel, n_samples);
}

class SpeechBatches final : public PlannedBatches {
 public:
  SpeechBatches(std::vector<Recording> recordings, std::vector<TokenIds> transcripts,
                const AudioConfig& config, TranscriptLayout layout, const SpecialTokens& special,
                const BatchOptions& options, RecordingInput input)
      : PlannedBatches(options),
        recordings_(std::move(recordings)),
        transcripts_(std::move(transcripts)),
        config_(config),
        log_mel_(config),
        layout_(layout),
        special_(special),
        input_(input) {
    if (recordings_.size() != transcripts_.size())
      throw std::invalid_argument("recordings and transcripts must be of equal number");
    if (layout == TranscriptLayout::decoder) require_teacher_forcing(special, "speech_recognition");
  }

 private:
  EpochPlan make_plan(int64_t epoch) const override {
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < recordings_.size(); ++i) {
      const int64_t frames = log_mel_.n_frames(n_samples_read(recordings_[i], config_));
      lengths.push_back(std::max((frames + 1) / 2, std::ssize(transcripts_[i]) + 1));
    }
    return plan_epoch(lengths, options(), epoch);
  }

  Batch make(int64_t epoch, std::span<const int64_t> examples) const override {
    const auto B = std::ssize(examples);
    const auto used = used_rows(B);
    std::vector<CounterRandom> random;
    std::vector<SampleChanges> changes;
    std::vector<int64_t> n_samples;
    for (const int64_t example : examples) {
      auto& numbers = random.emplace_back(CounterRandom(
          {options().seed, kAugmentPurpose, static_cast<uint64_t>(epoch), static_cast<uint64_t>(example)}));
      const auto& changed =
          changes.emplace_back(shuffled() ? draw_changes(config_, numbers) : SampleChanges{});
      n_samples.push_back(n_samples_read(recording(example), config_, changed.speed) + changed.before +
                          changed.after);
    }
    const auto rows = rows_for(input_, config_, log_mel_, n_samples);
    for (int64_t row = used.first; row < used.first + used.count; ++row) {
      const auto b = static_cast<size_t>(row);
      auto samples = read_samples(recording(examples[b]).file, config_, changes[b].speed);
      if (shuffled()) change(samples, changes[b]);
      auto made = rows->make(std::move(samples));
      if (shuffled() && config_.augment.spec_augment)
        hide_parts(made, *config_.augment.spec_augment, random[b]);
      rows->set(row, made);
    }
    Batch batch;
    rows->put_into(batch);
    batch.fields[fields::kRecordingNumbers] = int64_tensor(examples);
    add_transcripts(batch, rows_at(transcripts_, examples));
    return batch;
  }

  void add_transcripts(Batch& batch, const std::vector<TokenIds>& texts) const {
    if (layout_ == TranscriptLayout::decoder) {
      add_teacher_forcing(batch, texts, special_);
      batch.tokens = batch.targets.numel();
      return;
    }
    constexpr int64_t none = -1;
    batch.fields[fields::kTranscripts] = padded(texts, none).ids;
    for (const auto& text : texts) batch.tokens += std::ssize(text);
  }

  const Recording& recording(int64_t example) const { return recordings_[static_cast<size_t>(example)]; }

  std::vector<Recording> recordings_;
  std::vector<TokenIds> transcripts_;
  AudioConfig config_;
  LogMel log_mel_;
  TranscriptLayout layout_;
  SpecialTokens special_;
  RecordingInput input_;
};

}  // namespace

std::unique_ptr<BatchSource> speech_batches(std::vector<Recording> recordings,
                                            std::vector<TokenIds> transcripts, const AudioConfig& config,
                                            TranscriptLayout layout, const SpecialTokens& special,
                                            const BatchOptions& options, RecordingInput input) {
  return std::make_unique<SpeechBatches>(std::move(recordings), std::move(transcripts), config, layout,
                                         special, options, input);
}

std::vector<float> standardized(std::vector<float> samples) {
  constexpr double least = 1e-7;
  if (samples.empty()) return samples;
  const auto n = static_cast<double>(samples.size());
  double sum = 0, squares = 0;
  for (const float sample : samples) sum += static_cast<double>(sample);
  const double mean = sum / n;
  for (const float sample : samples) {
    const double difference = static_cast<double>(sample) - mean;
    squares += difference * difference;
  }
  const double scale = 1 / std::sqrt(squares / n + least);
  for (float& sample : samples) sample = static_cast<float>((static_cast<double>(sample) - mean) * scale);
  return samples;
}

Batch batch_of_recordings(std::span<const std::vector<float>> recordings, const AudioConfig& config,
                          RecordingInput input) {
  const LogMel log_mel(config);
  std::vector<int64_t> n_samples;
  for (const auto& samples : recordings) n_samples.push_back(std::ssize(samples));
  const auto rows = rows_for(input, config, log_mel, n_samples);
  for (int64_t row = 0; row < std::ssize(recordings); ++row)
    rows->set(row, rows->make(recordings[static_cast<size_t>(row)]));
  Batch batch;
  rows->put_into(batch);
  return batch;
}

}  // namespace zoo
