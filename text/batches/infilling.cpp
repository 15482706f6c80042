#include "text/batches/infilling.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "data/epoch_plan.h"

namespace zoo {
namespace {

constexpr int64_t kMarks = 3;

/// The last row that begins at `token` or before.
int64_t row_at(const TokenStore& stream, int64_t token) {
  int64_t low = 0, high = stream.n_rows();
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (stream.row_begin(middle) <= token ? low : high) = middle;
  }
  return low;
}

int64_t id_of(const Tokenizer& tokenizer, std::string_view token) {
  const auto ids = tokenizer.encode(token);
  if (ids.size() != 1) {
    throw DataError(fmt::format(
        "data.fill_in_the_middle needs the token {}, which this tokenizer's vocabulary lacks", token));
  }
  return ids.front();
}

/// Appends to a span that is long enough.
class Output {
 public:
  Output(const TokenStore& stream, std::span<int64_t> out) : stream_(stream), out_(out) {}
  int64_t left() const { return static_cast<int64_t>(out_.size()); }
  void token(int64_t id) {
    out_.front() = id;
    out_ = out_.subspan(1);
  }
  void tokens(int64_t begin, int64_t end) {
    if (begin == end) return;
    stream_.copy(begin, end, out_.data());
    out_ = out_.subspan(static_cast<size_t>(end - begin));
  }

 private:
  const TokenStore& stream_;
  std::span<int64_t> out_;
};

}  // namespace

Infilling infilling_of(InfillingShares shares, const Tokenizer& tokenizer) {
  return {.shares = shares,
          .prefix = id_of(tokenizer, "<fim_prefix>"),
          .suffix = id_of(tokenizer, "<fim_suffix>"),
          .middle = id_of(tokenizer, "<fim_middle>"),
          .end = tokenizer.special().eos};
}

void copy_infilled(const TokenStore& stream, const Infilling& infilling, InfillingDraw draw, int64_t begin,
                   std::span<int64_t> out) {
  const auto epoch = static_cast<uint64_t>(draw.epoch);
  Output output(stream, out);
  int64_t at = begin;
  for (int64_t row = row_at(stream, begin); output.left() > 0; ++row) {
    const int64_t row_end = stream.row_begin(row) + stream.row_length(row);
    if (at >= row_end) continue;
    const bool has_end = stream.slice(row_end - 1, row_end).front() == infilling.end;
    const int64_t text_end = row_end - (has_end ? 1 : 0);
    const int64_t n = std::min(text_end - at, output.left() - kMarks);
    const auto document = static_cast<uint64_t>(row);
    const bool is_chosen =
        CounterRandom({draw.seed, epoch, kInfillingPurpose, document}).uniform() < infilling.shares.documents;
    if (is_chosen && n > 0) {
      CounterRandom random({draw.seed, epoch, kInfillingPurpose, document, static_cast<uint64_t>(at)});
      int64_t first = random.below(n + 1), second = random.below(n + 1);
      if (first > second) std::swap(first, second);
      const bool is_suffix_first = random.uniform() < infilling.shares.suffix_first;
      output.token(infilling.prefix);
      if (!is_suffix_first) output.tokens(at, at + first);
      output.token(infilling.suffix);
      output.tokens(at + second, at + n);
      output.token(infilling.middle);
      output.tokens(is_suffix_first ? at : at + first, at + second);
      at += n;
    }
    const int64_t rest = std::min(row_end - at, output.left());
    output.tokens(at, at + rest);
    at += rest;
  }
}

}  // namespace zoo
