#include "data/text/tokenize.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <optional>
#include <system_error>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/error.h"
#include "io/files.h"
#include "io/sha256.h"

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

/// Encodes texts with all threads, a few megabytes at a time.
class ParallelEncoder {
 public:
  ParallelEncoder(const Tokenizer& tokenizer, const std::function<void(TokenIds ids)>& use)
      : tokenizer_(tokenizer), use_(use) {}

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
    for (auto& part : parts_) {
      row_.insert(row_.end(), part.ids.begin(), part.ids.end());
      if (part.is_last) use_(std::exchange(row_, {}));
    }
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
  const std::function<void(TokenIds ids)>& use_;
  std::vector<Part> parts_;
  std::deque<std::string> kept_;
  size_t n_bytes_ = 0;
  TokenIds row_;  // the ids of a text whose last part has not come
};

/// The files of a store in the cache. None if there is no cache, or the tokenizer has no fingerprint.
class CachedStore {
 public:
  CachedStore(std::filesystem::path root, std::string key) : root_(std::move(root)), key_(std::move(key)) {}

  std::optional<TokenStore> open() const { return opened(path()); }
  /// The parts that were written before, from the first on.
  std::vector<TokenStore> open_parts() const {
    std::vector<TokenStore> parts;
    while (auto part = opened(part_path(parts.size()))) parts.push_back(*std::move(part));
    return parts;
  }
  /// The part as it was written; as it is in memory if it cannot be written.
  TokenStore write_part(size_t number, const TokenStore& part) const {
    return written(part_path(number), {part}).value_or(part);
  }
  /// All parts as one, which removes their files; nothing if it cannot be written.
  std::optional<TokenStore> join(const std::vector<TokenStore>& parts) const {
    auto whole = written(path(), parts);
    std::error_code ignored;
    for (size_t i = 0; whole && i < parts.size(); ++i) std::filesystem::remove(part_path(i), ignored);
    return whole;
  }

 private:
  std::filesystem::path path() const { return root_ / (key_ + ".tokens"); }
  std::filesystem::path part_path(size_t number) const {
    return root_ / fmt::format("{}.part-{}", key_, number);
  }
  std::optional<TokenStore> opened(const std::filesystem::path& path) const {
    return root_.empty() ? std::nullopt : open_store(path, key_);
  }
  /// A cache only saves time, so errors do not matter.
  std::optional<TokenStore> written(const std::filesystem::path& path,
                                    const std::vector<TokenStore>& parts) const {
    if (root_.empty()) return std::nullopt;
    try {
      std::error_code ignored;  // a failure here shows again in the write
      std::filesystem::create_directories(root_, ignored);
      write_store(path, key_, parts);
      return open_store(path, key_);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  std::filesystem::path root_;
  std::string key_;
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
  ParallelEncoder encoder(tokenizer, use);
  texts([&](std::string_view text) { encoder.add(text); });
  encoder.finish();
}

TokenStore tokenize(const TextReader& texts, const Tokenizer& tokenizer, RowEnding ending,
                    const TokenizeOptions& options) {
  const auto root = tokenizer.fingerprint().empty() ? std::filesystem::path() : cache_root();
  const CachedStore cache(root, root.empty() ? std::string() : cache_key(texts, tokenizer, ending));
  if (auto store = cache.open()) return *std::move(store);

  auto parts = cache.open_parts();
  int64_t n_written = 0;  // texts whose ids are in parts
  for (const auto& part : parts) n_written += part.n_rows();
  TokenStoreBuilder builder(tokenizer.vocab_size());
  const int64_t eos = ending == RowEnding::end_of_sequence ? tokenizer.special().eos : -1;
  const std::function<void(TokenIds)> use = [&](TokenIds ids) {
    if (eos >= 0) ids.push_back(eos);
    builder.add(ids);
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

std::filesystem::path cache_root() {
  const auto variable = [](const char* name) -> std::filesystem::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const auto path = variable("ZOO_CACHE"); !path.empty()) return path;
  if (const auto path = variable("XDG_CACHE_HOME"); !path.empty()) return path / "transformer-zoo";
  if (const auto path = variable("HOME"); !path.empty()) return path / ".cache" / "transformer-zoo";
  return {};
}

}  // namespace zoo
