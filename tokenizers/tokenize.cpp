#include "tokenizers/tokenize.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "io/sha256.h"
#include "tokenizers/token_cache.h"

namespace zoo {
namespace {

/// Hash of everything that the ids depend on.
std::string cache_key(const TextReader& texts, const Tokenizer& tokenizer, RowEnding ending) {
  Sha256 sum;
  sum.add(fmt::format("{} {}\n", static_cast<int>(ending), tokenizer.fingerprint()));
  texts([&](std::string_view text) {
    sum.add(fmt::format("{}\n", text.size()));
    sum.add(text);
  });
  return sum.digest();
}

/// What comes after some of a text's ids.
enum class Follows { more_of_the_text, next_text };
using UseOfIds = std::function<void(TokenIds ids, Follows follows)>;

/// Encodes texts with all threads, a few megabytes at a time. The ids of a long text come in parts, so that
/// they need not be in memory together.
class ParallelEncoder {
 public:
  ParallelEncoder(const Tokenizer& tokenizer, const UseOfIds& use) : tokenizer_(tokenizer), use_(use) {}

  void add(std::string_view text) {
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

  /// Encodes what waits.
  void finish() {
    std::atomic<size_t> next = 0;
    const auto n_threads = std::min<int64_t>(std::ssize(parts_), at::get_num_threads());
    at::parallel_for(0, n_threads, 1, [&](int64_t, int64_t) {
      for (size_t i = next++; i < parts_.size(); i = next++)
        parts_[i].ids = tokenizer_.encode(parts_[i].text);
    });
    for (auto& part : parts_)
      use_(std::move(part.ids), part.is_last ? Follows::next_text : Follows::more_of_the_text);
    parts_.clear();
    kept_.clear();
    n_bytes_ = 0;
  }

 private:
  static constexpr size_t kPartBytes = size_t{1} << 17, kBytesAtOnce = size_t{1} << 22;
  struct Part {
    std::string_view text;
    bool is_last = false;  // of its text
    TokenIds ids = {};
  };

  /// Copies the end of a text, to which the parts from `first` on belong: the caller's text will be gone.
  void keep(std::string_view text, size_t first) {
    if (first == parts_.size()) return;
    std::string_view rest = kept_.emplace_back(text);
    for (size_t i = first; i < parts_.size(); ++i) {
      const size_t size = parts_[i].text.size();
      parts_[i].text = rest.substr(0, size);
      rest.remove_prefix(size);
    }
  }

  const Tokenizer& tokenizer_;
  const UseOfIds& use_;
  std::vector<Part> parts_;
  std::deque<std::string> kept_;
  size_t n_bytes_ = 0;
};

/// A store of all parts in memory.
TokenStore joined_in_memory(const std::vector<TokenStore>& parts, int64_t vocab_size) {
  if (parts.size() == 1) return parts.front();
  TokenStoreBuilder builder(vocab_size);
  for (const auto& part : parts) {
    for (int64_t i = 0; i < part.n_rows(); ++i) builder.add(part.row(i));
  }
  return builder.finish();
}

}  // namespace

void encode_in_order(const TextReader& texts, const Tokenizer& tokenizer,
                     const std::function<void(TokenIds ids)>& use) {
  TokenIds row;
  const UseOfIds collect = [&](TokenIds ids, Follows follows) {
    row.insert(row.end(), ids.begin(), ids.end());
    if (follows == Follows::next_text) use(std::exchange(row, {}));
  };
  ParallelEncoder encoder(tokenizer, collect);
  texts([&](std::string_view text) { encoder.add(text); });
  encoder.finish();
}

TokenStore tokenize(const TextReader& texts, const Tokenizer& tokenizer, RowEnding ending,
                    const TokenizeOptions& options) {
  const bool has_cache = !tokenizer.fingerprint().empty() && !cache_root().empty();
  const CachedStore cache(has_cache ? cache_key(texts, tokenizer, ending) : std::string());
  if (auto store = cache.open()) return *std::move(store);

  auto parts = cache.open_parts();
  int64_t n_written = 0;  // texts whose ids are in parts
  for (const auto& part : parts) n_written += part.n_rows();
  TokenStoreBuilder builder(tokenizer.vocab_size());
  const int64_t eos = ending == RowEnding::end_of_sequence ? tokenizer.special().eos : -1;
  const UseOfIds use = [&](const TokenIds& ids, Follows follows) {
    builder.append(ids);
    if (follows == Follows::more_of_the_text) return;
    if (eos >= 0) builder.append({eos});
    builder.end_row();
  };
  ParallelEncoder encoder(tokenizer, use);
  size_t part_bytes = 0;
  bool is_complete = !parts.empty();  // nothing came after the last part
  texts([&](std::string_view text) {
    if (n_written-- > 0) return;
    encoder.add(text);
    part_bytes += text.size();
    is_complete = part_bytes >= options.part_bytes;
    if (!is_complete) return;
    part_bytes = 0;
    encoder.finish();
    parts.push_back(cache.write_part(parts.size(), builder.finish()));
  });
  encoder.finish();
  if (!is_complete) parts.push_back(builder.finish());
  if (auto store = cache.join(parts)) return *std::move(store);
  return joined_in_memory(parts, tokenizer.vocab_size());
}

TokenStore tokenize(const std::vector<std::string>& texts, const Tokenizer& tokenizer, RowEnding ending,
                    const TokenizeOptions& options) {
  return tokenize(reader_of({&texts}), tokenizer, ending, options);
}

TextReader reader_of(std::vector<const std::vector<std::string>*> lists) {
  return [lists = std::move(lists)](const std::function<void(std::string_view)>& sink) {
    for (const auto* const texts : lists) {
      for (const auto& text : *texts) sink(text);
    }
  };
}

}  // namespace zoo
