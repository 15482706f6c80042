#pragma once
// WAV and FLAC files, which may come from strangers.
//
// libsndfile decodes both. It reads what a reader of our own would read of WAV (8, 16, 24 and 32 bits,
// floats, A-law and mu-law, WAVE_FORMAT_EXTENSIBLE, RF64), and FLAC needs a library anyway. Its other forty
// formats are not reachable: the first bytes of a file have to be those of WAV or FLAC. The tests fuzz.wav
// and fuzz.flac read mutated files.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace zoo {

/// What the header of a file says.
struct SoundInfo {
  int64_t sample_rate = 0;  // per second
  int64_t n_channels = 0;
  int64_t n_samples = 0;  // of each channel; at least 1

  double seconds() const { return static_cast<double>(n_samples) / static_cast<double>(sample_rate); }
};

/// An open file. Only its header has been read.
class SoundFile {
 public:
  /// `path` may be a link to a regular file, but no pipe. Throws DataError, one line with the path: not to be
  /// read, neither WAV nor FLAC, a damaged header, a rate outside 1 to 768 kHz, no samples.
  explicit SoundFile(const std::filesystem::path& path);
  ~SoundFile();
  SoundFile(const SoundFile&) = delete;
  SoundFile& operator=(const SoundFile&) = delete;

  const SoundInfo& info() const { return info_; }
  /// All samples, the mean of the channels; integers become -1 … 1. To be called once. Reads in pieces, so
  /// many channels need no more memory. Throws DataError: the file ends before, or a sample is not a number.
  std::vector<float> read();

 private:
  struct Source;
  std::unique_ptr<Source> source_;
  SoundInfo info_;
};

/// Whether the name of a file ends as those of recordings: .wav, .flac.
bool is_recording_name(const std::filesystem::path& path);

}  // namespace zoo
