#pragma once
// A model that writes what is said in recordings of any length, in the language and for the task that it is
// told, with times (Radford et al. 2022, Whisper).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "data/audio_config.h"
#include "generation/generation_config.h"
#include "models/model.h"
#include "tasks/audio/speech_tokens.h"
#include "tasks/spoken_text.h"
#include "tasks/task.h"

namespace zoo {

/// The longest recording that is read, in seconds: four hours.
inline constexpr double kLongestRecording = 4 * 3600;

/// Listens to recordings with a model that has a decoder. A recording that is longer than
/// data.audio.max_seconds is read in windows of this length: the next one begins at the last time that the
/// model has written, or where the window ends (as transformers' WhisperForConditionalGeneration.generate()
/// reads recordings one after the other).
class Listener {
 public:
  /// The model and the task must outlive it. Throws UsageError for options for which the vocabulary has no
  /// tokens.
  Listener(Model& model, const Task& task, SpeechOptions options);

  /// The longest recording that it reads.
  double max_seconds() const;
  /// samples: as read_samples() gives them. Throws DataError for a recording that is too long, and
  /// CheckpointError if the model's outputs are NaN.
  Transcript listen(const std::vector<float>& samples) const;

  /// A recording that is heard window by window, so that a server can do other work in between.
  struct Hearing {
    torch::Tensor spectrogram = {};  // (M, N)
    GenerationConfig options = {};   // of every window; set with the first one
    int64_t begin = 0;               // frame of the next window
    std::string language = {};
    std::vector<SpokenSegment> segments = {};
    TokenIds text = {};
    std::optional<Transcript> transcript = {};  // once it is heard
  };
  Hearing begin(const std::vector<float>& samples) const;
  /// Hears the next window. Returns whether the recording is heard.
  bool go_on(Hearing& hearing) const;

 private:
  struct Start {
    std::vector<int64_t> tokens = {};  // GenerationConfig::start_tokens
    std::string language = {};         // the one that they name
  };
  struct Window {
    std::vector<SpokenSegment> segments;
    TokenIds text;
    int64_t n_frames = 0;  // until the next window
  };

  Transcript heard_at_once(const std::vector<float>& samples) const;
  Start start_of(const torch::Tensor& spectrogram, SpokenTimes times) const;
  GenerationConfig options_with_times(const std::vector<int64_t>& start_tokens) const;
  std::string language_of(const torch::Tensor& spectrogram) const;
  TokenIds written(const torch::Tensor& spectrogram, const GenerationConfig& options) const;
  Window window_of(const TokenIds& ids, double begin, int64_t n_frames) const;
  std::string decoded(TokenIds ids) const;

  Model& model_;
  const Task& task_;
  SpeechOptions options_;
  SpeechTokens tokens_;
};

}  // namespace zoo
