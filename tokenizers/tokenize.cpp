#include "tokenizers/tokenize.h"

#include <utility>

#include <fmt/format.h>

#include "io/sha256.h"

namespace zoo {
namespace {

std::string hash_of(const TextReader& texts) {
  Sha256 sum;
  texts([&](std::string_view text) {
    sum.add(fmt::format("{}\n", text.size()));
    sum.add(text);
  });
  return sum.digest();
}

/// Whether the ids of a tokenizer are cached.
bool has_cache(const Tokenizer& tokenizer) {
  return !tokenizer.fingerprint().empty() && !cache_root().empty();
}

/// Hash of everything that the ids depend on; empty if they are not cached.
std::string cache_key(std::string_view texts_hash, const Tokenizer& tokenizer, RowEnding ending) {
  if (texts_hash.empty() || !has_cache(tokenizer)) return {};
  return sha256(fmt::format("{} {}\n{}", static_cast<int>(ending), tokenizer.fingerprint(), texts_hash));
}

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
  ParallelEncoder encoder(tokenizer, [&](const TokenIds& ids, Follows follows) {
    row.insert(row.end(), ids.begin(), ids.end());
    if (follows == Follows::next_text) use(std::exchange(row, {}));
  });
  texts([&](std::string_view text) { encoder.add(text); });
  encoder.finish();
}

Tokenization::Tokenization(std::string_view texts_hash, const Tokenizer& tokenizer, RowEnding ending,
                           const TokenizeOptions& options)
    : options_(options),
      vocab_size_(tokenizer.vocab_size()),
      eos_(ending == RowEnding::end_of_sequence ? tokenizer.special().eos : -1),
      cache_(cache_key(texts_hash, tokenizer, ending)),
      whole_(cache_.open()),
      builder_(vocab_size_),
      encoder_(tokenizer, [this](const TokenIds& ids, Follows follows) { build(ids, follows); }) {
  if (whole_) return;
  parts_ = cache_.open_parts();
  for (const auto& part : parts_) n_written_ += part.n_rows();
  is_complete_ = !parts_.empty();
}

void Tokenization::build(const TokenIds& ids, Follows follows) {
  builder_.append(ids);
  if (follows == Follows::more_of_the_text) return;
  if (eos_ >= 0) builder_.append({eos_});
  builder_.end_row();
}

void Tokenization::add(std::string_view text) {
  if (n_written_-- > 0) return;
  encoder_.add(text);
  part_bytes_ += text.size();
  is_complete_ = part_bytes_ >= options_.part_bytes;
  if (!is_complete_) return;
  part_bytes_ = 0;
  encoder_.finish();
  parts_.push_back(cache_.write_part(parts_.size(), builder_.finish()));
}

TokenStore Tokenization::finish() {
  if (whole_) return *whole_;
  encoder_.finish();
  if (!is_complete_) parts_.push_back(builder_.finish());
  if (auto store = cache_.join(parts_)) return *std::move(store);
  return joined_in_memory(parts_, vocab_size_);
}

TokenStore tokenize(const TextReader& texts, const Tokenizer& tokenizer, RowEnding ending,
                    const TokenizeOptions& options) {
  Tokenization work(has_cache(tokenizer) ? hash_of(texts) : "", tokenizer, ending, options);
  if (!work.is_cached()) texts([&](std::string_view text) { work.add(text); });
  return work.finish();
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
