#include "tasks/spoken_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace zoo {
namespace {

/// "01:02:03,456"
std::string time_text(double seconds, char before_fraction) {
  constexpr int64_t in_second = 1000, in_minute = 60 * in_second, in_hour = 60 * in_minute;
  const int64_t t = std::llround(std::max(0.0, seconds) * in_second);
  return fmt::format("{:02}:{:02}:{:02}{}{:03}", t / in_hour, t % in_hour / in_minute,
                     t % in_minute / in_second, before_fraction, t % in_second);
}

std::string times_of(const SpokenSegment& segment, char before_fraction) {
  return time_text(segment.begin, before_fraction) + " --> " + time_text(segment.end, before_fraction);
}

}  // namespace

std::string to_srt(const std::vector<SpokenSegment>& segments) {
  std::string text;
  for (size_t i = 0; i < segments.size(); ++i)
    text += fmt::format("{}\n{}\n{}\n\n", i + 1, times_of(segments[i], ','), segments[i].text);
  return text;
}

std::string to_vtt(const std::vector<SpokenSegment>& segments) {
  std::string text = "WEBVTT\n\n";
  for (const auto& segment : segments)
    text += fmt::format("{}\n{}\n\n", times_of(segment, '.'), segment.text);
  return text;
}

}  // namespace zoo
