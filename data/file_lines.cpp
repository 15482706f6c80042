#include "data/file_lines.h"

#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

FileLines::FileLines(const std::filesystem::path& path)
    : path_(path), file_(open_for_reading(path, Follow::links)) {}

/// Reads another piece behind the buffer, whose passed part it drops.
bool FileLines::fill() {
  if (at_end_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t kept = buffer_.size();
  buffer_.resize(kept + kPieceBytes);
  const size_t n = read_at(file_, path_, offset_, std::span(buffer_).subspan(kept));
  buffer_.resize(kept + n);
  offset_ += n;
  at_end_ = n < kPieceBytes;
  return n > 0;
}

bool FileLines::next() {
  size_t searched = 0;  // bytes of the line that have no line end
  size_t end = buffer_.npos;
  for (;;) {
    end = buffer_.find('\n', begin_ + searched);
    if (end != buffer_.npos) break;
    searched = buffer_.size() - begin_;
    if (searched > kMostLineBytes) {
      throw DataError(fmt::format("{}:{}: a line of more than {} MiB", path_.string(), number_ + 1,
                                  kMostLineBytes >> 20));
    }
    if (!fill()) {
      if (begin_ == buffer_.size()) return false;
      end = buffer_.size();
      break;
    }
  }
  const uint64_t line_offset = offset_ - (buffer_.size() - begin_);
  line_ = std::string_view(buffer_).substr(begin_, end - begin_);
  const bool has_end = end < buffer_.size();
  begin_ = has_end ? end + 1 : end;
  ++number_;
  if (const auto at = find_invalid_utf8(line_)) {
    throw DataError(fmt::format("{}:{}: not UTF-8 at byte {}: {}", path_.string(), number_, line_offset + *at,
                                excerpt(line_.substr(*at), 16)));
  }
  if (number_ == 1) line_ = without_byte_order_mark(line_);
  if (has_end && line_.ends_with('\r')) line_.remove_suffix(1);
  return true;
}

void FileLines::rewind() {
  buffer_.clear();
  line_ = {};
  begin_ = 0;
  offset_ = 0;
  number_ = 0;
  at_end_ = false;
}

}  // namespace zoo
