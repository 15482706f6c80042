#include "tasks/audio/listener.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"
#include "data/audio/log_mel.h"
#include "data/batch.h"
#include "generation/generator.h"
#include "generation/rules/timestamps.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "tasks/audio/speech_batches.h"
#include "tasks/audio/transcription.h"
#include "tasks/text/text_tasks.h"

namespace zoo {
namespace {

constexpr int64_t kFramesOfTime = 2;  // from one time that a token says to the next
constexpr const char* kAutomatic = "auto";

int64_t frames_of_window(const AudioConfig& audio) { return audio.max_samples() / audio.hop; }

/// The frames from `begin` on, and zeros up to the length of a window: (1, M, N).
torch::Tensor window_at(const torch::Tensor& spectrogram, int64_t begin, int64_t length) {
  const int64_t n = std::min(length, spectrogram.size(1) - begin);
  return torch::constant_pad_nd(spectrogram.narrow(1, begin, n), {0, length - n}).unsqueeze(0);
}

}  // namespace

Listener::Listener(Model& model, const Task& task, SpeechOptions options)
    : model_(model), task_(task), options_(std::move(options)) {
  if (uses_ctc(task.experiment())) {
    if (options_.asks_for_nothing()) return;
    throw UsageError(
        "language, task and times are for models with a decoder, such as Whisper: leave them out");
  }
  tokens_ = speech_tokens(task.tokenizer());
  const auto& start = task.experiment().generation.start_tokens;
  const bool has_languages =
      std::ranges::any_of(start, [&](int64_t id) { return tokens_.language_of(id).has_value(); });
  if (options_.language && !has_languages)
    throw UsageError("this model writes one language: leave the language out");
  if (options_.language && *options_.language != kAutomatic &&
      !tokens_.languages.contains(*options_.language)) {
    std::vector<std::string> known;
    for (const auto& [code, id] : tokens_.languages) known.push_back(code);
    throw UsageError(fmt::format("'{}' is no language of this model: it knows {}",
                                 excerpt(*options_.language), fmt::join(known, ", ")));
  }
  if (options_.task && (!has_languages || !tokens_.transcribe || !tokens_.translate))
    throw UsageError("this model has one task: leave the task out");
  if (options_.times == SpokenTimes::told && !tokens_.first_time)
    throw UsageError("the vocabulary of this model has no tokens for times");
}

double Listener::max_seconds() const {
  return tokens_.first_time ? kLongestRecording : task_.experiment().data.audio.max_seconds;
}

GenerationConfig Listener::options_with_times(const std::vector<int64_t>& start_tokens) const {
  auto options = task_.experiment().generation;
  options.start_tokens = start_tokens;
  options = writing_options(task_, std::move(options));
  options.rules.emplace_back("timestamps",
                             TimestampOptions{.first = *tokens_.first_time,
                                              .none = tokens_.no_times,
                                              .most_at_beginning = options.max_initial_timestamp});
  return options;
}

TokenIds Listener::written(const torch::Tensor& spectrogram, const GenerationConfig& options) const {
  Batch batch;
  batch.fields[fields::kSpectrograms] = spectrogram;
  auto output = Generator(model_, task_.tokenizer()).transcribe(batch, options).front().outputs.front();
  if (output.end == OutputEnd::end_token && !output.ids.empty()) output.ids.pop_back();
  return std::move(output.ids);
}

std::string Listener::language_of(const torch::Tensor& spectrogram) const {
  const InferenceScope scope(model_);
  Batch batch{.input = {torch::empty({1, 0}, torch::kInt64)}};
  batch.fields[fields::kSpectrograms] = spectrogram;
  const auto on_device = model_.on_device(batch);
  DecodingState state;
  const auto logits = model_.generative()->prefill(on_device, state).to(torch::kCPU, torch::kFloat)[0];
  const auto likelier = [&](const auto& one, const auto& other) {
    return logits[one.second].template item<float>() < logits[other.second].template item<float>();
  };
  return std::ranges::max_element(tokens_.languages, likelier)->first;
}

Listener::Start Listener::start_of(const torch::Tensor& spectrogram, SpokenTimes times) const {
  Start start;
  for (const int64_t usual : task_.experiment().generation.start_tokens) {
    if (const auto usual_language = tokens_.language_of(usual)) {
      const auto wanted = options_.language.value_or(*usual_language);
      start.language = wanted == kAutomatic ? language_of(spectrogram) : wanted;
      start.tokens.push_back(tokens_.languages.at(start.language));
    } else if (options_.task && (usual == tokens_.transcribe || usual == tokens_.translate)) {
      start.tokens.push_back(options_.task == SpeechTask::translate ? *tokens_.translate
                                                                    : *tokens_.transcribe);
    } else if (times == SpokenTimes::left_out || usual != tokens_.no_times) {
      start.tokens.push_back(usual);
    }
  }
  return start;
}

std::string Listener::decoded(TokenIds ids) const {
  if (tokens_.first_time) std::erase_if(ids, [&](int64_t id) { return id >= *tokens_.first_time; });
  return as_line(task_.tokenizer().decode(ids));
}

Listener::Window Listener::window_of(const TokenIds& ids, double begin, int64_t n_frames) const {
  const auto& audio = task_.experiment().data.audio;
  const double step = static_cast<double>(kFramesOfTime * audio.hop) / static_cast<double>(audio.sample_rate);
  const int64_t first = *tokens_.first_time, n = std::ssize(ids);
  const auto is_time = [&](int64_t i) { return i >= 0 && i < n && ids[static_cast<size_t>(i)] >= first; };
  const auto time_at = [&](int64_t i) { return ids[static_cast<size_t>(i)] - first; };
  std::vector<int64_t> ends;  // of the parts: two times follow each other there
  for (int64_t i = 1; i < n; ++i)
    if (is_time(i - 1) && is_time(i)) ends.push_back(i);
  Window window{.segments = {}, .text = {}, .n_frames = n_frames};
  if (ends.empty()) {
    int64_t end = n_frames / kFramesOfTime;
    for (int64_t i = n - 1; i >= 0; --i) {
      if (!is_time(i)) continue;
      if (time_at(i) != 0) end = time_at(i);
      break;
    }
    window.segments.push_back(
        {.begin = begin, .end = begin + step * static_cast<double>(end), .text = decoded(ids)});
    window.text = ids;
    return window;
  }
  const bool ends_alone = is_time(n - 1) && !is_time(n - 2);  // nothing is said after this time
  if (ends_alone) ends.push_back(n);
  int64_t from = 0;
  for (const int64_t end : ends) {
    window.segments.push_back({.begin = begin + step * static_cast<double>(time_at(from)),
                               .end = begin + step * static_cast<double>(time_at(end - 1)),
                               .text = decoded({ids.begin() + from, ids.begin() + end})});
    from = end;
  }
  window.text.assign(ids.begin(), ids.begin() + from);
  // What comes behind the last complete segment is heard again.
  if (!ends_alone) window.n_frames = kFramesOfTime * time_at(from - 1);
  return window;
}

Transcript Listener::heard_at_once(const std::vector<float>& samples) const {
  const auto& experiment = task_.experiment();
  const std::vector<std::vector<float>> recordings = {samples};
  const auto batch =
      batch_of_recordings(recordings, experiment.data.audio, *recording_input(experiment.model));
  auto options = experiment.generation;
  Start start;
  if (!uses_ctc(experiment)) {
    start = start_of(batch.field(fields::kSpectrograms), SpokenTimes::left_out);
    options.start_tokens = start.tokens;
  }
  Transcript transcript{.text = transcribe(model_, task_, batch, options).front()};
  if (options_.language) transcript.language = start.language;
  return transcript;
}

Listener::Hearing Listener::begin(const std::vector<float>& samples) const {
  const auto& audio = task_.experiment().data.audio;
  const bool is_long = std::ssize(samples) > audio.max_samples();
  if (is_long && !tokens_.first_time)
    throw DataError(fmt::format("the recording has more than {:g} seconds", audio.max_seconds));
  if (!is_long && options_.times == SpokenTimes::left_out) return {.transcript = heard_at_once(samples)};
  return {.spectrogram = LogMel(audio)(samples)};
}

bool Listener::go_on(Hearing& hearing) const {
  if (hearing.transcript) return true;
  const auto& audio = task_.experiment().data.audio;
  const int64_t N = hearing.spectrogram.size(1), length = frames_of_window(audio), begin = hearing.begin;
  const auto spectrogram = window_at(hearing.spectrogram, begin, length);
  if (begin == 0) {
    auto start = start_of(spectrogram, SpokenTimes::told);
    hearing.options = options_with_times(start.tokens);
    hearing.language = std::move(start.language);
  }
  const double seconds = static_cast<double>(begin * audio.hop) / static_cast<double>(audio.sample_rate);
  auto window = window_of(written(spectrogram, hearing.options), seconds, std::min(length, N - begin));
  std::ranges::copy_if(window.segments, std::back_inserter(hearing.segments),
                       [](const SpokenSegment& segment) { return !segment.text.empty(); });
  std::ranges::copy(window.text, std::back_inserter(hearing.text));
  hearing.begin += std::max(window.n_frames, kFramesOfTime);  // a model must not hear one window for ever
  if (hearing.begin < N) return false;
  auto& transcript = hearing.transcript.emplace(Transcript{.text = decoded(hearing.text)});
  if (options_.language) transcript.language = hearing.language;
  if (options_.times == SpokenTimes::told) transcript.segments = std::move(hearing.segments);
  return true;
}

Transcript Listener::listen(const std::vector<float>& samples) const {
  auto hearing = begin(samples);
  while (!go_on(hearing)) {
  }
  return *std::move(hearing.transcript);
}

}  // namespace zoo
