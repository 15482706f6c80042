#pragma once
// WAV files that a test makes.

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {

/// The format codes of WAV.
enum class WavCode : uint16_t { integers = 1, floats = 3, a_law = 6, mu_law = 7, extensible = 0xFFFE };

/// A number as WAV stores it: little-endian.
template <class T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

/// A WAV file with these bytes of samples.
inline std::string wav(WavCode code, uint16_t n_channels, uint32_t rate, uint16_t bits,
                       const std::string& data) {
  const auto block = static_cast<uint16_t>(n_channels * bits / 8);
  const bool extensible = code == WavCode::extensible;
  std::string format = little_endian(static_cast<uint16_t>(code)) + little_endian(n_channels) +
                       little_endian(rate) + little_endian(rate * block) + little_endian(block) +
                       little_endian(bits);
  if (extensible) {  // the sub-format: integers
    format += little_endian<uint16_t>(22) + little_endian(bits) + little_endian<uint32_t>(0) +
              std::string("\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71", 16);
  }
  const auto chunk = [](const std::string& name, const std::string& content) {
    return name + little_endian(static_cast<uint32_t>(content.size())) + content;
  };
  const std::string chunks = "WAVE" + chunk("fmt ", format) + chunk("data", data);
  return chunk("RIFF", chunks);
}

/// A WAV file of 16 bits in one channel.
inline std::string wav(const std::vector<float>& samples, uint32_t rate) {
  constexpr float largest = 32767;
  std::string data;
  for (const float sample : samples)
    data += little_endian(static_cast<uint16_t>(static_cast<int16_t>(std::lround(sample * largest))));
  return wav(WavCode::integers, 1, rate, 16, data);
}

/// A tone of this frequency.
inline std::vector<float> tone(double hertz, int64_t n, double rate, double height = 0.5) {
  std::vector<float> samples;
  for (int64_t i = 0; i < n; ++i) {
    const double turns = hertz * static_cast<double>(i) / rate;
    samples.push_back(static_cast<float>(height * std::sin(2 * std::numbers::pi * turns)));
  }
  return samples;
}

/// FOLDER/recordings.tsv and FOLDER/sounds: 60 recordings of one to three words, which are tones: "low" or
/// "high", by the speakers "ann" and "bob", who is deeper.
inline void write_recordings(const TempDir& dir, const std::string& folder) {
  constexpr int n = 60, rate = 8000;
  CounterRandom random({8});
  std::string list = "audio\ttext\tspeaker\n";
  for (int i = 0; i < n; ++i) {
    const bool is_bob = random.below(2) == 0;
    std::string text;
    std::vector<float> samples;
    for (int64_t words = 1 + random.below(3); words > 0; --words) {
      const bool high = random.below(2) == 0;
      text += std::string(text.empty() ? "" : " ") + (high ? "high" : "low");
      const auto word = tone((high ? 1600 : 400) * (is_bob ? 0.8 : 1), 1200 + random.below(400), rate);
      samples.insert(samples.end(), word.begin(), word.end());
      samples.insert(samples.end(), 400 + static_cast<size_t>(random.below(200)), 0.0F);
    }
    const auto name = fmt::format("sounds/{}.wav", i);
    dir.write(folder + name, wav(samples, rate));
    list += fmt::format("{}\t{}\t{}\n", name, text, is_bob ? "bob" : "ann");
  }
  dir.write(folder + "recordings.tsv", list);
}

}  // namespace zoo::testing
