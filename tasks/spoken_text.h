#pragma once
// What is said in a recording, and when, and what may be asked about it.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// A part of a recording and what is said in it.
struct SpokenSegment {
  double begin = 0, end = 0;  // in seconds
  std::string text;           // one line: an empty one would end a subtitle
};

/// What is said in a recording.
struct Transcript {
  std::string text;
  std::optional<std::string> language = {};                 // where the model was asked for it: "de"
  std::optional<std::vector<SpokenSegment>> segments = {};  // where times were asked for
};

/// What a model writes of a recording.
enum class SpeechTask { transcribe, translate };  // translate: into English
constexpr auto config_names(SpeechTask) {
  return std::to_array<std::string_view>({"transcribe", "translate"});
}

enum class SpokenTimes { left_out, told };

/// What is asked about a recording.
struct SpeechOptions {
  /// A code such as "de", or "auto": the model says it; default: the one of generation.start_tokens.
  std::optional<std::string> language = {};
  std::optional<SpeechTask> task = {};  // default: the one of generation.start_tokens
  SpokenTimes times = SpokenTimes::left_out;

  bool asks_for_nothing() const { return !language && !task && times == SpokenTimes::left_out; }
};

/// SubRip subtitles: numbered segments, each with its times, which are written as 00:01:02,345.
std::string to_srt(const std::vector<SpokenSegment>& segments);
/// The same as WebVTT, with a full stop in times.
std::string to_vtt(const std::vector<SpokenSegment>& segments);

}  // namespace zoo
