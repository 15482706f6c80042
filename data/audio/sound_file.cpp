#include "data/audio/sound_file.h"

#include <sndfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/file_kind.h"
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

/// Where the data of a WAV file should end by its header. Nothing if it does not say: a recorder that writes
/// to a pipe does not know how much will come, and writes the largest size (SoX: a little less than 2 GiB).
std::optional<uint64_t> end_of_data(const Descriptor& file, const std::filesystem::path& path) {
  constexpr uint32_t most = 0xFFFFFFFF, least_of_a_stream = 0x7FFFE000, most_of_a_stream = 0x80000000;
  constexpr int most_chunks = 1000;
  std::array<char, 4> form{};
  read_at(file, path, 0, form);
  const bool is_big_endian = form[3] == 'X';
  std::optional<uint64_t> wide_size;  // of the data of RF64
  uint64_t at = 12;
  for (int i = 0; i < most_chunks; ++i) {
    std::array<char, 24> head{};
    if (read_at(file, path, at, head) < 8) return std::nullopt;
    const auto number = [&](size_t begin, size_t n) {
      uint64_t value = 0;
      for (size_t k = 0; k < n; ++k) {
        const size_t byte = begin + (is_big_endian ? k : n - 1 - k);
        value = value << 8U | static_cast<unsigned char>(head[byte]);
      }
      return value;
    };
    const std::string_view name(head.data(), 4);
    const uint64_t size = number(4, 4);
    constexpr size_t place_of_size = 16;
    if (name == "ds64") wide_size = number(place_of_size, 8);
    if (name == "data") {
      if (size == most && wide_size && *wide_size < uint64_t{1} << 62U) return at + 8 + *wide_size;
      const bool is_stream = size == most || (size >= least_of_a_stream && size <= most_of_a_stream);
      return is_stream ? std::nullopt : std::optional(at + 8 + size);
    }
    at += 8 + size + size % 2;
  }
  return std::nullopt;
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

  // libsndfile would read what is there without a word.
  const auto end = head.front() == 'R' ? end_of_data(source.file, path) : std::nullopt;
  if (end && *end > static_cast<uint64_t>(source.size)) {
    source.fail(
        fmt::format("damaged: its samples should end at byte {}, and the file has {} bytes; was it cut?",
                    *end, source.size));
  }

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
