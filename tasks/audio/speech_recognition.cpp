// Writes down what is said in a recording. The model is an encoder over spectrograms that is trained with CTC
// (Graves et al. 2006), or an encoder with a decoder that writes (Radford et al. 2022).

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/audio/recordings.h"
#include "data/prefetch.h"
#include "models/families/recordings.h"
#include "models/inference_scope.h"
#include "tasks/audio/listener.h"
#include "tasks/audio/speech_batches.h"
#include "tasks/audio/transcription.h"
#include "tasks/ctc.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/library_tasks.h"
#include "tasks/metrics/speech_metrics.h"
#include "tasks/task.h"
#include "tasks/task_checks.h"
#include "tasks/text/text_tasks.h"
#include "tasks/token_cross_entropy.h"
#include "text/batches/padded_rows.h"
#include "tokenizers/tokenize.h"

namespace zoo {
namespace {

/// pad: the padding token, or nothing if no vocabulary is known.
ModelPurpose purpose_for(const Experiment& experiment, int64_t vocab_size, int64_t start_token,
                         std::optional<int64_t> pad) {
  const int64_t n_mels = experiment.data.audio.n_mels;
  if (uses_ctc(experiment)) {
    ModelPurpose purpose{.head = HeadKind::ctc, .vocab_size = vocab_size, .n_mels = n_mels};
    const bool is_last = experiment.model.ctc_blank == CtcBlank::last;
    purpose.n_classes = is_last ? vocab_size + 1 : experiment.model.vocab_size.value_or(vocab_size);
    if (is_last || !pad) return purpose;
    if (*pad < 0 || *pad >= purpose.n_classes)
      throw ConfigError("model.ctc_blank: padding needs a vocabulary with a padding token: set it to last");
    purpose.ctc_blank = *pad;
    return purpose;
  }
  return {.head = HeadKind::language_modeling,
          .prompt = PromptUse::answered,
          .vocab_size = vocab_size,
          .start_token = start_token,
          .n_mels = n_mels};
}

/// Edits of words and characters, and how many recordings they are of.
struct Errors {
  EditCount words, characters;
  int64_t recordings = 0;

  Metrics metrics() const {
    return {
        {"wer", words.rate()}, {"cer", characters.rate()}, {"recordings", static_cast<double>(recordings)}};
  }
};

/// What is counted in an evaluation, for each speaker.
class ErrorCounts {
 public:
  explicit ErrorCounts(const std::vector<Recording>& recordings) {
    for (const auto& recording : recordings) by_speaker_[recording.speaker];
  }

  void add(const Recording& recording, const std::string& output) {
    auto& errors = by_speaker_.at(recording.speaker);
    errors.words += word_edits(recording.text, output);
    errors.characters += character_edits(recording.text, output);
    ++errors.recordings;
  }

  /// Adds the counts of the other processes. Collective.
  void finish(const EvaluationOptions& options) {
    std::vector<int64_t> counts;
    for (auto& [speaker, errors] : by_speaker_)
      for (const int64_t* const count : counts_of(errors)) counts.push_back(*count);
    const auto summed = int64_tensor(counts);
    sum_over_processes(options, summed);
    const int64_t* sum = summed.const_data_ptr<int64_t>();
    for (auto& [speaker, errors] : by_speaker_)
      for (int64_t* const count : counts_of(errors)) *count = *sum++;
  }

  Metrics metrics() const {
    Errors all;
    for (const auto& [speaker, errors] : by_speaker_) {
      all.words += errors.words;
      all.characters += errors.characters;
      all.recordings += errors.recordings;
    }
    return all.metrics();
  }

  /// The metrics of each speaker of whom there are recordings; none if the lists name no speakers.
  std::vector<ClassMetrics> metrics_of_speakers() const {
    std::vector<ClassMetrics> speakers;
    for (const auto& [speaker, errors] : by_speaker_) {
      if (!speaker.empty() && errors.recordings > 0)
        speakers.push_back({.label = speaker, .metrics = errors.metrics()});
    }
    return speakers;
  }

 private:
  static std::array<int64_t*, 5> counts_of(Errors& errors) {
    return {&errors.words.edits, &errors.words.reference, &errors.characters.edits,
            &errors.characters.reference, &errors.recordings};
  }

  std::map<std::string, Errors> by_speaker_;
};

class SpeechRecognition final : public Task {
 public:
  SpeechRecognition(const Experiment& experiment, Vocabulary vocabulary,
                    RowsBySplit<std::vector<Recording>> listed)
      : Task(experiment, std::move(vocabulary)), listed_(std::move(listed)) {}

  ModelPurpose purpose() const override {
    const auto& special = tokenizer().special();
    return purpose_for(experiment(), tokenizer().vocab_size(), decoder_start(special), special.pad);
  }

  /// The loss, without label smoothing, and the error rates of the model's transcripts.
  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override;
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override;
  std::vector<Prediction> predict(Model& model, const std::vector<std::string>& inputs,
                                  const PredictOptions& options) override;

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    auto recordings = listed_.take(split);
    read_headers(recordings, experiment().data.audio);
    std::vector<TokenIds> transcripts;
    for (const auto& recording : recordings) transcripts.push_back(encode(recording.text));
    recordings_[static_cast<size_t>(split)] = recordings;
    const auto layout = uses_ctc(experiment()) ? TranscriptLayout::ctc : TranscriptLayout::decoder;
    return prefetched(speech_batches(std::move(recordings), std::move(transcripts), experiment().data.audio,
                                     layout, tokenizer().special(), batch_options(split),
                                     *recording_input(experiment().model)));
  }

  std::shared_ptr<const Objective> own_objective(const ObjectiveContext& context) const override {
    if (uses_ctc(experiment())) return std::make_shared<CtcObjective>();
    return Task::own_objective(context);
  }

  /// A decoder reads at most sequence_length tokens: the first one and the text.
  TokenIds encode(const std::string& text) const {
    auto ids = tokenizer().encode(text);
    const auto most = static_cast<size_t>(experiment().data.sequence_length - 1);
    if (!uses_ctc(experiment())) ids.resize(std::min(ids.size(), most));
    return ids;
  }

  RowsBySplit<std::vector<Recording>> listed_;
  std::array<std::vector<Recording>, 3> recordings_;  // by Split, of those that are open
};

Metrics SpeechRecognition::measure(Model& model, Split split, const EvaluationOptions& options) {
  const InferenceScope scope(model);
  auto& source = batches(split);
  const auto& recordings = recordings_[static_cast<size_t>(split)];
  const auto objective =
      uses_ctc(experiment()) ? this->objective() : std::make_shared<const TokenCrossEntropy>();
  ErrorCounts counts(recordings);
  auto sums = torch::zeros({2}, torch::kDouble);  // loss, targets
  for_each_own_batch(source, options, [&](const Batch& batch) {
    sums[0] += objective->loss(model, model.on_device(batch)).to(torch::kCPU, torch::kDouble);
    sums[1] += objective->n_targets(batch);
    const auto outputs = transcribe(model, *this, batch, experiment().generation);
    const auto numbers = int64_values(batch.field(fields::kRecordingNumbers));
    for (size_t b = 0; b < outputs.size(); ++b) {
      const auto& recording = recordings[static_cast<size_t>(numbers[b])];
      counts.add(recording, outputs[b]);
      if (!options.examples) continue;
      const auto row = model.on_device(take_rows(batch, static_cast<int64_t>(b), 1));
      options.examples->push_back({.input = recording.file.string(),
                                   .target = recording.text,
                                   .prediction = outputs[b],
                                   .loss = objective->loss(model, row).item<double>(),
                                   .targets = objective->n_targets(row),
                                   .bytes = std::ssize(recording.text),
                                   .right = outputs[b] == recording.text});
    }
  });
  sum_over_processes(options, sums);
  counts.finish(options);
  if (options.classes) *options.classes = counts.metrics_of_speakers();
  auto metrics = counts.metrics();
  const double targets = sums[1].item<double>();
  if (targets == 0) throw DataError("the transcripts to be scored have no tokens");
  metrics["loss"] = sums[0].item<double>() / targets;
  metrics["tokens"] = targets;
  return metrics;
}

std::vector<Prediction> SpeechRecognition::predict(Model& model, const std::vector<std::string>& inputs,
                                                   const PredictOptions& options) {
  constexpr size_t at_once = 16;
  const auto& audio = experiment().data.audio;
  const Listener listener(model, *this, options.speech);
  auto any_length = audio;
  any_length.max_seconds = listener.max_seconds();
  std::vector<Prediction> predictions;
  for (size_t begin = 0; begin < inputs.size(); begin += at_once) {
    const auto end = std::min(inputs.size(), begin + at_once);
    std::vector<std::vector<float>> recordings;  // that are read together
    std::vector<Prediction> found;
    std::vector<size_t> together;  // their places in `found`
    for (size_t i = begin; i < end; ++i) {
      try {
        auto samples = read_samples(inputs[i], any_length);
        found.push_back({.input = inputs[i]});
        if (!options.speech.asks_for_nothing() || std::ssize(samples) > audio.max_samples()) {
          found.back().answer = listener.listen(samples);
          continue;
        }
        together.push_back(found.size() - 1);
        recordings.push_back(std::move(samples));
      } catch (const DataError& error) {
        if (!options.on_unreadable) throw;
        options.on_unreadable(error.what());
      }
    }
    if (!recordings.empty()) {
      const auto batch = batch_of_recordings(recordings, audio, *recording_input(experiment().model));
      auto texts = transcribe(model, *this, batch, experiment().generation);
      for (size_t i = 0; i < together.size(); ++i)
        found[together[i]].answer = Transcript{.text = std::move(texts[i])};
    }
    std::ranges::move(found, std::back_inserter(predictions));
    if (options.on_progress) options.on_progress(static_cast<int64_t>(end), std::ssize(inputs));
  }
  return predictions;
}

std::vector<Sample> SpeechRecognition::samples(Model& model, const std::vector<std::string>& inputs) {
  constexpr size_t n_samples = 8;
  std::vector<std::string> files = inputs, references;
  if (inputs.empty()) {
    batches(Split::valid);
    const auto& recordings = recordings_[static_cast<size_t>(Split::valid)];
    // At equal distances, because lists are often sorted.
    const size_t n = std::min(n_samples, recordings.size());
    for (size_t i = 0; i < n; ++i) {
      const auto& recording = recordings[i * recordings.size() / n];
      files.push_back(recording.file.string());
      references.push_back(recording.text);
    }
  }
  std::vector<Sample> result;
  for (auto& prediction : predict(model, files, {})) {
    const auto name = std::filesystem::path(prediction.input).filename().string();
    result.push_back({.input = inputs.empty() ? name : prediction.input, .output = prediction.transcript()});
    if (!references.empty()) result.back().reference = references[result.size() - 1];
  }
  return result;
}

std::unique_ptr<Task> make_speech_recognition(const Experiment& experiment, Vocabulary vocabulary) {
  auto listed = listed_recordings(experiment.data);
  if (!vocabulary.tokenizer) {
    std::vector<std::string> texts;
    for (const auto& recording : listed.of(Split::train)) texts.push_back(recording.text);
    const bool needs_none = uses_ctc(experiment) && experiment.model.ctc_blank == CtcBlank::last;
    const auto needed = needs_none ? SpecialTokenSet::none : SpecialTokenSet::all;
    vocabulary.tokenizer = make_tokenizer_for(experiment.data.tokenizer, needed, reader_of({&texts}));
  }
  return std::make_unique<SpeechRecognition>(experiment, std::move(vocabulary), std::move(listed));
}

/// Keys of data.audio that are for spectrograms, where a model reads samples.
void validate_samples(const AudioConfig& audio, const Complain& complain) {
  if (audio.padding != RecordingPadding::batch)
    complain("data.audio.padding", "must be batch: the model is told where recordings end");
  if (audio.augment.spec_augment)
    complain("data.audio.augment.spec_augment",
             "hides parts of spectrograms, and the model reads samples: leave it out, and set masks of "
             "model.architecture");
}

void validate_spectrograms(const Experiment& experiment, const Complain& complain) {
  const auto& model = experiment.model;
  const auto& audio = experiment.data.audio;
  const double silence = 2 * audio.augment.shift;
  const auto frames =
      static_cast<int64_t>((audio.max_seconds + silence) * static_cast<double>(audio.sample_rate) /
                           static_cast<double>(audio.hop) / (1 - audio.augment.speed));
  if (const auto wanted = padded_frames(model); wanted && audio.padding != RecordingPadding::longest) {
    complain("data.audio.padding",
             fmt::format("must be longest: the model pads recordings to {} frames", *wanted));
  }
  if (frames > most_frames(model)) {
    complain("data.audio.max_seconds",
             fmt::format("{:g}, with data.audio.augment, is up to {} frames of a recording, but "
                         "model.architecture.max_frames is {}",
                         audio.max_seconds, frames, most_frames(model)));
  }
  if (const auto bands = configured_mels(model); bands && *bands != audio.n_mels) {
    complain(
        "model.architecture",
        fmt::format("reads {} bands, but data.audio.n_mels is {}: leave out n_mels", *bands, audio.n_mels));
  }
}

void validate_speech_recognition(const Experiment& experiment, const Complain& complain) {
  const auto input = recording_input(experiment.model);
  if (!input) {
    complain("model.architecture", fmt::format("must be speech_encoder, wave_encoder or whisper, not {}",
                                               experiment.model.architecture.type));
    return;
  }
  if (*input == RecordingInput::samples)
    validate_samples(experiment.data.audio, complain);
  else
    validate_spectrograms(experiment, complain);
  if (uses_ctc(experiment)) {
    if (experiment.training.label_smoothing > 0)
      complain("training.label_smoothing", "is not for CTC: leave it out");
    return;
  }
  require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
}

}  // namespace

TaskType speech_recognition() {
  const auto rate = [](std::string key, std::string label) {
    return Metric{.key = std::move(key), .label = std::move(label), .percent = true};
  };
  TaskType type;
  type.name = "speech_recognition";
  type.doc = "What is said in a recording.";
  type.best_by = {rate("wer", "word error rate"), rate("cer", "character error rate")};
  type.comparison = type.best_by.front();
  type.needs = VocabularyNeeds::tokenizer;
  type.needs_special_tokens = [](const Experiment& experiment) {
    return !uses_ctc(experiment) || experiment.model.ctc_blank == CtcBlank::padding;
  };
  type.predicts_from = PredictionInput::audio_file;
  type.predicts = PredictionKind::transcript;
  type.make = make_speech_recognition;
  type.validate = validate_speech_recognition;
  type.purpose = [](const Experiment& experiment, int64_t vocab_size) -> std::optional<ModelPurpose> {
    return purpose_for(experiment, vocab_size, /*start_token=*/0, /*pad=*/std::nullopt);
  };
  return type;
}

}  // namespace zoo
