#include "text/batches/teacher_forcing.h"

#include <algorithm>
#include <numeric>

#include "text/batches/padded_rows.h"

namespace zoo {

void require_teacher_forcing(const SpecialTokens& special, const char* task) {
  require_special(special.pad, "<pad>", task);
  require_special(special.eos, "<eos>", task);
  require_special(decoder_start(special), "<bos>", task);
}

void add_teacher_forcing(Batch& batch, const std::vector<TokenIds>& texts, const SpecialTokens& special) {
  std::vector<int64_t> lengths;
  for (const auto& text : texts) lengths.push_back(std::ssize(text) + 1);
  const int64_t n = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  PaddedRows decoder(lengths, special.pad);
  batch.targets = int64_tensor(n);
  int64_t* target = batch.targets.mutable_data_ptr<int64_t>();
  for (size_t b = 0; b < texts.size(); ++b) {
    int64_t* const row = decoder.row(static_cast<int64_t>(b));
    row[0] = decoder_start(special);
    std::ranges::copy(texts[b], row + 1);
    target = std::ranges::copy(texts[b], target).out;
    *target++ = special.eos;
  }
  batch.decoder = decoder.batch();
  if (decoder.padded())  // otherwise every position predicts
    batch.positions = flat_positions(std::vector<int64_t>(texts.size(), 0), lengths, decoder.width());
}

torch::Tensor flat_positions(const std::vector<int64_t>& firsts, const std::vector<int64_t>& counts,
                             int64_t width) {
  auto result = int64_tensor(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  int64_t* to = result.mutable_data_ptr<int64_t>();
  for (size_t b = 0; b < counts.size(); ++b) {
    std::iota(to, to + counts[b], static_cast<int64_t>(b) * width + firsts[b]);
    to += counts[b];
  }
  return result;
}

}  // namespace zoo
