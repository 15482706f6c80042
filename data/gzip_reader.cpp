#include "data/gzip_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "io/files.h"

namespace zoo {
namespace {

bool begins_member(std::string_view bytes) { return bytes.starts_with("\x1F\x8B"); }

}  // namespace

GzipReader::GzipReader(std::string_view bytes) : bytes_(bytes), is_compressed_(begins_member(bytes)) {
  if (!is_compressed_) return;
  constexpr int gzip_window = 15 + 16;
  if (inflateInit2(&stream_, gzip_window) != Z_OK) throw SystemError("zlib cannot start");
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib does not write there
  stream_.avail_in = static_cast<uInt>(bytes.size());
}

GzipReader::~GzipReader() {
  if (is_compressed_) inflateEnd(&stream_);
}

size_t GzipReader::read(std::span<uint8_t> to) {
  if (!is_compressed_) {
    const size_t n = std::min(to.size(), bytes_.size());
    std::copy_n(bytes_.begin(), n, to.begin());
    bytes_.remove_prefix(n);
    return n;
  }
  constexpr size_t at_once = size_t{1} << 30;
  size_t done = 0;
  while (done < to.size() && state_ == Z_OK) {
    const size_t wanted = std::min(at_once, to.size() - done);
    stream_.next_out = to.data() + done;
    stream_.avail_out = static_cast<uInt>(wanted);
    state_ = inflate(&stream_, Z_NO_FLUSH);
    done += wanted - stream_.avail_out;
    // A file may have several members, as `cat a.gz b.gz` makes it.
    if (state_ == Z_STREAM_END && begins_member(rest())) state_ = inflateReset(&stream_);
  }
  return done;
}

bool GzipReader::is_at_end() const {
  return is_compressed_ ? state_ == Z_STREAM_END && rest().empty() : bytes_.empty();
}

std::string read_unpacked(const std::filesystem::path& path, int64_t most_bytes) {
  constexpr size_t at_once = size_t{1} << 20;
  const auto bytes = read_file(path, Follow::everything, most_bytes);
  GzipReader reader(bytes);
  std::string text;
  for (size_t n = at_once; n == at_once;) {
    const size_t before = text.size();
    text.resize(before + at_once);
    n = reader.read(std::span(reinterpret_cast<uint8_t*>(text.data()) + before, at_once));
    text.resize(before + n);
    if (std::ssize(text) > most_bytes) {
      throw DataError(fmt::format("{}: has more than {} MiB without compression, the most that is read",
                                  path.string(), most_bytes >> 20));
    }
  }
  if (!reader.is_at_end())
    throw DataError(fmt::format("{}: the compressed file is damaged or truncated", path.string()));
  return text;
}

}  // namespace zoo
