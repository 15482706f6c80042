#include "data/audio/formats/sound_file.h"

#include <sndfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/directory.h"
#include "io/open_file.h"

namespace zoo {
namespace {

constexpr int64_t kLowestRate = 1000, kHighestRate = 768'000;

}  // namespace

struct SoundFile::Source {
  std::filesystem::path path;
  Descriptor file;
  int64_t size = 0, position = 0;
  std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> decoder{
      nullptr, &sf_close};  // destroyed first, because it reads the others

  [[noreturn]] void fail(std::string_view problem) const {
    throw DataError(fmt::format("{}: {}", excerpt(path.string(), 300), problem));
  }
};

namespace {

/// The functions by which libsndfile reads. `source` is a SoundFile::Source. No exception may pass through C.
template <class Source>
SF_VIRTUAL_IO reading_functions() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* source) -> sf_count_t { return static_cast<Source*>(source)->size; };
  io.seek = [](sf_count_t offset, int whence, void* opaque) -> sf_count_t {
    auto& source = *static_cast<Source*>(opaque);
    const int64_t from = whence == SEEK_CUR ? source.position : whence == SEEK_END ? source.size : 0;
    // The sum cannot overflow in the directions that are allowed.
    if (offset > source.size || offset < -source.size) return -1;
    const int64_t position = from + offset;
    if (position < 0) return -1;
    return source.position = position;
  };
  io.read = [](void* to, sf_count_t count, void* opaque) -> sf_count_t {
    auto& source = *static_cast<Source*>(opaque);
    if (count <= 0) return 0;
    try {
      const auto n = read_at(source.file, source.path, static_cast<uint64_t>(source.position),
                             std::span(static_cast<char*>(to), static_cast<size_t>(count)));
      source.position += static_cast<int64_t>(n);
      return static_cast<sf_count_t>(n);
    } catch (const Error&) {  // the file then ends too early for the decoder
      return 0;
    }
  };
  io.write = [](const void*, sf_count_t, void*) -> sf_count_t { return 0; };
  io.tell = [](void* source) -> sf_count_t { return static_cast<Source*>(source)->position; };
  return io;
}

bool is_wav_or_flac(std::string_view head) {
  if (head.starts_with("fLaC")) return true;
  constexpr size_t type = 8;  // after the name and the size of the outer chunk
  const bool is_riff = head.starts_with("RIFF") || head.starts_with("RIFX") || head.starts_with("RF64");
  return is_riff && head.substr(std::min(type, head.size())).starts_with("WAVE");
}

bool is_wanted(int format) {
  const int type = format & SF_FORMAT_TYPEMASK;
  return type == SF_FORMAT_WAV || type == SF_FORMAT_WAVEX || type == SF_FORMAT_RF64 || type == SF_FORMAT_FLAC;
}

int64_t size_of(const Descriptor& file) {
  struct stat status{};
  return ::fstat(file.get(), &status) == 0 ? status.st_size : 0;
}

}  // namespace

SoundFile::SoundFile(const std::filesystem::path& path)
    : source_(new Source{.path = path, .file = open_for_reading(path, Follow::links)}) {
  auto& source = *source_;
  source.size = size_of(source.file);
  if (source.size == 0) source.fail("the file is empty");
  std::array<char, 12> head{};
  const size_t n = read_at(source.file, path, 0, head);
  if (!is_wav_or_flac({head.data(), n})) source.fail("this is no WAV or FLAC file");

  auto functions = reading_functions<Source>();
  SF_INFO header{};
  source.decoder.reset(sf_open_virtual(&functions, SFM_READ, &header, source_.get()));
  if (!source.decoder) source.fail(fmt::format("damaged: {}", excerpt(sf_strerror(nullptr), 100)));
  if (!is_wanted(header.format)) source.fail("this is no WAV or FLAC file");
  info_ = {.sample_rate = header.samplerate, .n_channels = header.channels, .n_samples = header.frames};
  if (info_.sample_rate < kLowestRate || info_.sample_rate > kHighestRate) {
    source.fail(fmt::format("has {} samples per second: there must be {} to {}", info_.sample_rate,
                            kLowestRate, kHighestRate));
  }
  if (info_.n_channels < 1 || info_.n_samples < 1) source.fail("has no samples");
}

SoundFile::~SoundFile() = default;

std::vector<float> SoundFile::read() {
  auto& source = *source_;
  const auto n_channels = static_cast<size_t>(info_.n_channels);
  // The header may promise more than there is, so the memory grows with what is read.
  constexpr size_t at_once = 1 << 14;
  const size_t rows = std::max<size_t>(1, at_once / n_channels);
  std::vector<float> piece(rows * n_channels), samples;
  samples.reserve(static_cast<size_t>(std::min<int64_t>(info_.n_samples, source.size)));
  while (std::ssize(samples) < info_.n_samples) {
    const auto n = sf_readf_float(source.decoder.get(), piece.data(), static_cast<sf_count_t>(rows));
    if (n <= 0) break;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      float sum = 0;
      for (size_t c = 0; c < n_channels; ++c) sum += piece[i * n_channels + c];
      samples.push_back(sum / static_cast<float>(n_channels));
    }
  }
  if (std::ssize(samples) < info_.n_samples) {
    source.fail(fmt::format("damaged: it ends after {} of {} samples", samples.size(), info_.n_samples));
  }
  samples.resize(static_cast<size_t>(info_.n_samples));
  if (!std::ranges::all_of(samples, [](float sample) { return std::isfinite(sample); }))
    source.fail("has samples that are not numbers");
  return samples;
}

bool is_recording_name(const std::filesystem::path& path) { return has_extension(path, {".wav", ".flac"}); }

}  // namespace zoo
