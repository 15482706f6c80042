#include "io/formats/pickle_bytes.h"

#include <algorithm>

namespace zoo {

std::string PickleBytes::take(uint64_t n) {
  if (n > left()) file_.fail("damaged: its pickle goes past byte {}; was it cut?", end_);
  std::string bytes;
  bytes.reserve(static_cast<size_t>(n));
  while (bytes.size() < n) {
    if (at_ < begin_ || at_ >= begin_ + buffer_.size()) {
      constexpr uint64_t most = 1 << 16;
      begin_ = at_;
      buffer_ = file_.read(at_, static_cast<size_t>(std::min(most, left())));
    }
    const auto from = static_cast<size_t>(at_ - begin_);
    const size_t count = std::min(static_cast<size_t>(n) - bytes.size(), buffer_.size() - from);
    bytes.append(buffer_, from, count);
    at_ += count;
  }
  return bytes;
}

std::string PickleBytes::line() {
  constexpr size_t longest = 1000;  // a name of Python
  std::string text;
  for (char c = 0; (c = static_cast<char>(byte())) != '\n';) {
    text += c;
    if (text.size() > longest) file_.fail("damaged: a name of more than {} bytes in its pickle", longest);
  }
  return text;
}

}  // namespace zoo
