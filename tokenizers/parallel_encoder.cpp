#include "tokenizers/parallel_encoder.h"

#include <algorithm>
#include <atomic>

#include <ATen/Parallel.h>

namespace zoo {
namespace {

constexpr size_t kPartBytes = size_t{1} << 17, kBytesAtOnce = size_t{1} << 22;

}  // namespace

void ParallelEncoder::add(std::string_view text) {
  size_t begin = 0, first_waiting = parts_.size(), waiting_from = 0;
  do {
    const size_t end = tokenizer_.part_end(text, begin, kPartBytes);
    parts_.push_back({.text = text.substr(begin, end - begin), .is_last = end == text.size()});
    n_bytes_ += end - begin;
    begin = end;
    if (n_bytes_ >= kBytesAtOnce) {
      finish();
      first_waiting = 0;
      waiting_from = end;
    }
  } while (begin < text.size());
  keep(text.substr(waiting_from), first_waiting);
}

void ParallelEncoder::finish() {
  std::atomic<size_t> next = 0;
  const auto n_threads = std::min<int64_t>(std::ssize(parts_), at::get_num_threads());
  at::parallel_for(0, n_threads, 1, [&](int64_t, int64_t) {
    for (size_t i = next++; i < parts_.size(); i = next++) parts_[i].ids = tokenizer_.encode(parts_[i].text);
  });
  for (auto& part : parts_)
    use_(std::move(part.ids), part.is_last ? Follows::next_text : Follows::more_of_the_text);
  parts_.clear();
  kept_.clear();
  n_bytes_ = 0;
}

/// Copies the end of a text, to which the parts from `first` on belong: the caller's text will be gone.
void ParallelEncoder::keep(std::string_view text, size_t first) {
  if (first == parts_.size()) return;
  std::string_view rest = kept_.emplace_back(text);
  for (size_t i = first; i < parts_.size(); ++i) {
    const size_t size = parts_[i].text.size();
    parts_[i].text = rest.substr(0, size);
    rest.remove_prefix(size);
  }
}

}  // namespace zoo
