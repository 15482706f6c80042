#include "layers/attention/banded_attention.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "base/random.h"
#include "kernels/cpu_attention.h"
#include "kernels/dropout.h"
#include "kernels/soft_cap.h"

namespace zoo {
namespace {

constexpr int64_t kQueryBlock = 64;

/// Consecutive queries of a band, and the keys that at least one of them sees.
struct Piece {
  Band band;
  int64_t first_query, n_queries, first_key, n_keys;
};

/// The pieces of bands, by their number of keys, which is rounded up. Few different numbers mean few
/// products.
std::map<int64_t, std::vector<Piece>> pieces_of(const Bands& bands) {
  std::map<int64_t, std::vector<Piece>> result;
  for (const auto& band : bands) {
    for (int64_t first = 0; first < band.queries.count; first += kQueryBlock) {
      const int64_t n = std::min(kQueryBlock, band.queries.count - first);
      const int64_t begin = band.first_key(first), n_keys = band.end_key(first + n - 1) - begin;
      if (n_keys <= 0) continue;
      int64_t unit = kQueryBlock;  // at most an eighth of the keys is padding
      while (n_keys > 8 * unit) unit *= 2;
      result[(n_keys + unit - 1) / unit * unit].push_back({band, first, n, begin, n_keys});
    }
  }
  return result;
}

/// The pieces with M keys as positions on a device.
struct Gathering {
  torch::Tensor queries;  // (P, kQueryBlock) int64
  torch::Tensor keys;     // (P, M) int64
  torch::Tensor visible;  // (P, kQueryBlock, M) bool
};

Gathering gathering_of(const std::vector<Piece>& pieces, int64_t n_keys, torch::Device device) {
  const auto n = static_cast<int64_t>(pieces.size());
  auto table = torch::empty({n, 9}, torch::kInt64);
  auto* row = table.mutable_data_ptr<int64_t>();
  for (const auto& piece : pieces) {
    for (const int64_t number :
         {piece.band.queries[piece.first_query], piece.band.queries.step, piece.n_queries,
          piece.band.keys[piece.first_key], piece.band.keys.step, piece.n_keys,
          piece.first_query + piece.band.low - piece.first_key,
          piece.first_query + piece.band.high - piece.first_key, piece.band.keys.count})
      *row++ = number;
  }
  table = table.to(device);
  const auto column = [&](int64_t i) { return table.select(1, i).unsqueeze(1); };  // (P, 1)
  const auto query = torch::arange(kQueryBlock, table.options()),
             key = torch::arange(n_keys, table.options());
  const auto query_exists = query.lt(column(2)), key_exists = key.lt(column(5));
  const auto difference = key.view({1, 1, -1}) - query.view({1, -1, 1});
  Gathering result;
  // Numbers of padding become numbers that exist: nothing of them is visible.
  result.queries = column(0) + query.minimum(column(2) - 1) * column(1);
  result.keys = column(3) + key.minimum(column(5) - 1) * column(4);
  result.visible = difference.ge(column(6).unsqueeze(2))
                       .logical_and(difference.lt(column(7).unsqueeze(2)))
                       .logical_and(query_exists.unsqueeze(2))
                       .logical_and(key_exists.unsqueeze(1));
  return result;
}

/// x (B, H, T, D) at positions (P, n): (B, H, P, n, D).
torch::Tensor gathered(const torch::Tensor& x, const torch::Tensor& positions) {
  return x.index_select(2, positions.flatten())
      .view({x.size(0), x.size(1), positions.size(0), positions.size(1), x.size(3)});
}

/// Attention of rows that share their bands.
torch::Tensor attention_of_equal_rows(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                      const Bands& bands, const torch::Tensor& lengths, double scale,
                                      double dropout_probability, const RowSeed& seed,
                                      std::optional<double> softcap) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  const int64_t n_rows = q.size(0), n_heads = q.size(1), n_queries = q.size(2), n_kv_heads = k.size(1),
                group = n_heads / n_kv_heads;
  const auto type = q.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;  // of the softmax
  struct Scores {
    Gathering gathering;
    torch::Tensor values;  // (B, K, P, G, kQueryBlock, M)
  };
  std::vector<Scores> all;
  auto largest = torch::full({n_rows, n_heads, n_queries}, hidden, q.options().dtype(type));
  // (B, K, P, G, …) of a gathered tensor of query heads, and its reverse.
  const auto by_kv_head = [&](const torch::Tensor& x) {  // (B, H, P, kQueryBlock, D)
    return x.view({n_rows, n_kv_heads, group, x.size(2), kQueryBlock, x.size(4)}).transpose(2, 3);
  };
  const auto flat = [&](const torch::Tensor& x) {  // (B, K, P, G, kQueryBlock) → (B, H, P·kQueryBlock)
    return x.transpose(2, 3).reshape({n_rows, n_heads, -1});
  };
  for (const auto& [n_keys, pieces] : pieces_of(bands)) {
    auto gathering = gathering_of(pieces, n_keys, q.device());
    const auto queries = by_kv_head(gathered(q * scale, gathering.queries));
    const auto keys = gathered(k, gathering.keys).unsqueeze(3);  // (B, K, P, 1, M, Dh)
    auto visible = gathering.visible.view({1, 1, -1, 1, kQueryBlock, n_keys});
    if (lengths.defined()) {
      const auto exists =
          gathering.keys.unsqueeze(0).lt(lengths.to(q.device()).view({-1, 1, 1}));  // (B, P, M)
      visible = visible.logical_and(exists.view({n_rows, 1, -1, 1, 1, n_keys}));
    }
    auto scores = soft_capped(torch::matmul(queries, keys.transpose(-2, -1)).to(type), softcap);
    scores = scores.masked_fill(visible.logical_not(), hidden);
    const auto rows = gathering.queries.flatten().expand({n_rows, n_heads, -1});
    largest.scatter_reduce_(2, rows, flat(scores.detach().amax(-1)), "amax");
    all.push_back({std::move(gathering), std::move(scores)});
  }
  largest = largest.masked_fill(largest.eq(hidden), 0);
  auto sums = torch::zeros({n_rows, n_heads, n_queries}, largest.options());
  auto out = torch::zeros({n_rows, n_heads, n_queries, v.size(3)}, largest.options());
  CounterRandom seeds({seed.seed});  // one for each group of pieces
  for (const auto& [gathering, scores] : all) {
    const auto positions = gathering.queries.flatten();
    const int64_t n_pieces = gathering.queries.size(0);
    const auto shift = largest.index_select(2, positions)
                           .view({n_rows, n_kv_heads, group, n_pieces, kQueryBlock})
                           .transpose(2, 3)
                           .unsqueeze(-1);
    const auto weights = (scores - shift).exp();
    sums = sums.index_add(2, positions, flat(weights.sum(-1)));
    const auto values = gathered(v, gathering.keys).unsqueeze(3);  // (B, K, P, 1, M, Dv)
    const auto kept = dropout(weights, dropout_probability, {seeds.next(), seed.first_row});
    const auto mixed = torch::matmul(kept.to(v.scalar_type()), values);
    out = out.index_add(
        2, positions,
        mixed.transpose(2, 3).reshape({n_rows, n_heads, n_pieces * kQueryBlock, v.size(3)}).to(type));
  }
  out = out / sums.masked_fill(sums.eq(0), 1).unsqueeze(-1);
  return out.to(v.scalar_type());
}

}  // namespace

torch::Tensor gathered_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                 const VisiblePairs& visible, double scale, double dropout,
                                 std::optional<double> softcap) {
  const RowSeed seed = dropout > 0 ? draw_row_seed() : RowSeed();
  if (visible.rows.size() == 1)
    return attention_of_equal_rows(q, k, v, visible.row(0), visible.lengths, scale, dropout, seed, softcap);
  std::vector<torch::Tensor> rows;
  for (int64_t b = 0; b < q.size(0); ++b) {
    const auto one = [&](const torch::Tensor& x) { return x.defined() ? x.narrow(0, b, 1) : x; };
    rows.push_back(attention_of_equal_rows(one(q), one(k), one(v), visible.row(b), one(visible.lengths),
                                           scale, dropout, {seed.seed, seed.first_row + b}, softcap));
  }
  return torch::cat(rows);
}

torch::Tensor banded_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                               const VisiblePairs& visible, double scale, double dropout,
                               std::optional<double> softcap) {
  if (dropout == 0 && scale > 0 && !softcap && has_cpu_attention(q, k, v))
    return cpu_attention(q, k, v, visible, scale);
  return gathered_attention(q, k, v, visible, scale, dropout, softcap);
}

}  // namespace zoo
