#include "kernels/cpu_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "kernels/first_derivative.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

// Queries in a block. With larger blocks fewer keys can be skipped; with smaller blocks the gemms are
// smaller.
constexpr int64_t kQueryBlock = 24;
// Keys in a tile. Its keys and values and a block of weights fit into the second cache together.
constexpr int64_t kKeyTile = 256;
// With fewer queries, transposing the keys costs more than computing with them.
constexpr int64_t kMinQueries = 8;
constexpr float kHidden = -std::numeric_limits<float>::infinity();

constexpr int64_t padded(int64_t n) { return (n + kWidestVector - 1) / kWidestVector * kWidestVector; }

/// Some rows of a head, at equal distances from each other. Number is float or const float.
template <class Number>
struct RowsOf {
  Number* data;
  int64_t row_stride, width;

  operator RowsOf<const Number>() const
    requires(!std::is_const_v<Number>)
  {
    return {data, row_stride, width};
  }
  Number* operator[](int64_t i) const { return data + i * row_stride; }
  /// The rows at positions p.first + i·p.step.
  RowsOf at(const Progression& p) const { return {(*this)[p.first], row_stride * p.step, width}; }
  RowsOf from(int64_t i) const { return {(*this)[i], row_stride, width}; }
  MatrixA matrix_a() const { return {.data = data, .row_stride = row_stride, .column_stride = 1}; }
  MatrixB matrix_b() const { return {.data = data, .row_stride = row_stride}; }
  MatrixC matrix_c() const { return {.data = data, .row_stride = row_stride}; }
};

using Rows = RowsOf<float>;
using ConstRows = RowsOf<const float>;

/// Of x (B, H, T, D).
ConstRows head_rows(const torch::Tensor& x, int64_t b, int64_t h) {
  return {x.const_data_ptr<float>() + b * x.stride(0) + h * x.stride(1), x.stride(2), x.size(3)};
}
Rows mutable_head_rows(const torch::Tensor& x, int64_t b, int64_t h) {
  return {x.mutable_data_ptr<float>() + b * x.stride(0) + h * x.stride(1), x.stride(2), x.size(3)};
}

/// The transpose of a tile of keys or values: (D, tile).
class TransposedTile {
 public:
  explicit TransposedTile(int64_t width)
      : width_(width), numbers_(torch::zeros({width, kStride})), data_(numbers_.mutable_data_ptr<float>()) {}

  void assign(const ConstRows& x, int64_t n_rows) {
    kernels().scores.transpose(x.data, x.row_stride, n_rows, width_, data_, kStride);
  }
  /// From column `first` on.
  MatrixB matrix_b(int64_t first) const { return {.data = data_ + first, .row_stride = kStride}; }

 private:
  // Rows at distances of a power of two would compete for the same lines of the cache.
  static constexpr int64_t kStride = kKeyTile + kWidestVector;

  int64_t width_;
  torch::Tensor numbers_;  // a tensor, because its allocator keeps the memory from one call to the next
  float* data_;
};

/// Scores, weights or their gradients: of a block of queries over a tile of keys.
class ScoreBlock {
 public:
  ScoreBlock() : numbers_(torch::empty({kQueryBlock, kKeyTile})), data_(numbers_.mutable_data_ptr<float>()) {}

  float* operator[](int64_t i) { return data_ + i * kKeyTile; }
  MatrixC matrix_c() { return {.data = data_, .row_stride = kKeyTile}; }
  MatrixA matrix_a() const { return {.data = data_, .row_stride = kKeyTile, .column_stride = 1}; }
  MatrixA transposed_a() const { return {.data = data_, .row_stride = 1, .column_stride = kKeyTile}; }

 private:
  torch::Tensor numbers_;
  float* data_;
};

/// A block of consecutive queries of a band, and the part of a tile of its keys that they see.
struct Block {
  const Band& band;
  int64_t first_query, n_queries;  // numbers within the band
  int64_t tile;                    // the number of the tile's first key
  int64_t first_key, n_keys;       // within the tile; first_key is a multiple of kWidestVector

  int64_t width() const { return padded(n_keys); }

  /// Hides the scores of the keys that query first_query + i does not see. Returns whether it sees any.
  bool mask(int64_t i, float* scores) const {
    const int64_t origin = tile + first_key;
    const int64_t begin = std::clamp<int64_t>(band.first_key(first_query + i) - origin, 0, n_keys);
    const int64_t end = std::clamp<int64_t>(band.end_key(first_query + i) - origin, 0, n_keys);
    if (begin >= end) return false;
    std::fill(scores, scores + begin, kHidden);
    std::fill(scores + end, scores + width(), kHidden);
    return true;
  }
};

/// Calls visit(block) for the blocks of queries that see keys of a tile.
template <class Visit>
void for_each_block(const Band& band, int64_t tile, int64_t n_keys, const Visit& visit) {
  const int64_t begin = std::max<int64_t>(tile - band.high + 1, 0),
                end = std::min(tile + n_keys - band.low, band.queries.count);
  for (int64_t first = begin; first < end; first += kQueryBlock) {
    const int64_t n_queries = std::min(kQueryBlock, end - first);
    const int64_t first_seen =
        std::max<int64_t>(band.first_key(first) - tile, 0) / kWidestVector * kWidestVector;
    const int64_t end_seen = std::min(band.end_key(first + n_queries - 1) - tile, n_keys);
    if (first_seen < end_seen) visit(Block{band, first, n_queries, tile, first_seen, end_seen - first_seen});
  }
}

/// Calls visit(band, first key, number of keys) for the tiles of keys of every band.
template <class Visit>
void for_each_tile(const Bands& bands, int64_t n_keys, const Visit& visit) {
  for (const auto& whole : bands) {
    const Band band = whole.before(n_keys);
    for (int64_t tile = 0; tile < band.keys.count; tile += kKeyTile)
      visit(band, tile, std::min(kKeyTile, band.keys.count - tile));
  }
}

struct ForwardPass {
  float scale;
  ScoreBlock weights = {};

  /// One query head.
  struct Head {
    ConstRows q;
    Rows out;
    float* logsumexp;  // (T): of the scaled scores
  };

  /// Adds the keys of a block to the running softmax of its queries: out = Σ e^(score - maximum)·v. `sums`
  /// (T) are Σ e^(score - maximum), and head.logsumexp has the maxima.
  void add(const Block& block, const TransposedTile& keys, const ConstRows& values, const Head& head,
           float* sums) {
    const auto& positions = block.band.queries;
    const ConstRows q = head.q.at(positions).from(block.first_query);
    const Rows out = head.out.at(positions).from(block.first_query);
    const auto& loops = kernels();
    const int64_t n = block.width();
    loops.gemm(q.matrix_a(), keys.matrix_b(block.first_key), q.width, weights.matrix_c(), block.n_queries, n);
    for (int64_t i = 0; i < block.n_queries; ++i) {
      if (!block.mask(i, weights[i])) {
        std::fill(weights[i], weights[i] + n, 0.0F);
        continue;
      }
      const int64_t query = positions[block.first_query + i];
      float& maximum = head.logsumexp[query];
      const float larger = std::max(maximum, scale * loops.scores.largest(weights[i], n));
      if (maximum < larger && sums[query] > 0) {
        const float correction = std::exp(maximum - larger);
        sums[query] *= correction;
        loops.multiply(out[i], correction, out.width);
      }
      maximum = larger;
      sums[query] += loops.scores.exponentials(weights[i], n, scale, larger);
    }
    loops.add_gemm(weights.matrix_a(), values.from(block.first_key).matrix_b(), block.n_keys, out.matrix_c(),
                   block.n_queries, out.width);
  }

  /// Divides by the sums and completes the logsumexp. A query that sees nothing gets zeros, and a logsumexp
  /// of infinity: then all its weights are 0 in the backward pass.
  static void finish(const Head& head, const float* sums, int64_t n_queries) {
    for (int64_t i = 0; i < n_queries; ++i) {
      const bool sees_any = sums[i] > 0;
      if (sees_any) kernels().multiply(head.out[i], 1 / sums[i], head.out.width);
      head.logsumexp[i] = sees_any ? head.logsumexp[i] + std::log(sums[i]) : -kHidden;
    }
  }
};

struct BackwardPass {
  float scale;
  ScoreBlock weights = {}, scores = {};

  /// One query head.
  struct Head {
    ConstRows q, out_gradients;
    Rows q_gradients;
    const float* logsumexp;
  };
  /// The keys of a tile and their gradients.
  struct Tile {
    const TransposedTile &keys, &values;
    ConstRows k;
    Rows dk, dv;
  };

  /// out·∂out of each query.
  static void find_deltas(const ConstRows& out, const ConstRows& out_gradients, int64_t n_queries,
                          float* deltas) {
    for (int64_t i = 0; i < n_queries; ++i)
      deltas[i] = kernels().scores.dot(out[i], out_gradients[i], out.width);
  }

  /// Adds the gradients of a block. `deltas` (T) are those of find_deltas().
  void add(const Block& block, const Tile& tile, const Head& head, const float* deltas) {
    const auto& positions = block.band.queries;
    const ConstRows q = head.q.at(positions).from(block.first_query),
                    upstream = head.out_gradients.at(positions).from(block.first_query);
    const Rows dq = head.q_gradients.at(positions).from(block.first_query);
    const auto& loops = kernels();
    const int64_t n = block.width(), m = block.n_queries;
    loops.gemm(q.matrix_a(), tile.keys.matrix_b(block.first_key), q.width, weights.matrix_c(), m, n);
    loops.gemm(upstream.matrix_a(), tile.values.matrix_b(block.first_key), upstream.width, scores.matrix_c(),
               m, n);
    for (int64_t i = 0; i < m; ++i) {
      const int64_t query = positions[block.first_query + i];
      if (!block.mask(i, weights[i])) std::fill(weights[i], weights[i] + n, kHidden);
      loops.scores.exponentials(weights[i], n, scale, head.logsumexp[query]);
      loops.scores.backward(scores[i], weights[i], n, deltas[query], scale);
    }
    loops.add_gemm(scores.matrix_a(), tile.k.from(block.first_key).matrix_b(), block.n_keys, dq.matrix_c(), m,
                   q.width);
    loops.add_gemm(scores.transposed_a(), q.matrix_b(), m, tile.dk.from(block.first_key).matrix_c(),
                   block.n_keys, q.width);
    loops.add_gemm(weights.transposed_a(), upstream.matrix_b(), m, tile.dv.from(block.first_key).matrix_c(),
                   block.n_keys, upstream.width);
  }
};

/// An empty (B, H, T, D), laid out in memory as (B, T, H, D).
torch::Tensor empty_token_major(const torch::Tensor& like, int64_t n_heads, int64_t n_rows, int64_t width) {
  return torch::empty_strided({like.size(0), n_heads, n_rows, width},
                              {n_rows * n_heads * width, width, n_heads * width, 1}, like.options());
}

/// Number of keys of row b.
int64_t n_keys_of(const torch::Tensor& lengths, int64_t b, int64_t n_keys) {
  return lengths.defined() ? std::min(lengths.const_data_ptr<int64_t>()[b], n_keys) : n_keys;
}

/// Keeps VisiblePairs for the backward pass.
struct KeptPairs : torch::CustomClassHolder {
  explicit KeptPairs(VisiblePairs pairs) : visible(std::move(pairs)) {}
  VisiblePairs visible;
};

struct CpuAttention : torch::autograd::Function<CpuAttention> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, const VisiblePairs& visible, double scale) {
    const int64_t n_heads = q.size(1), n_kv_heads = k.size(1), group = n_heads / n_kv_heads,
                  n_queries = q.size(2), n_keys = k.size(2);
    const auto out = empty_token_major(q, n_heads, n_queries, v.size(3)).zero_();
    const auto logsumexp = torch::full({q.size(0), n_heads, n_queries}, kHidden, q.options());
    at::parallel_for(0, q.size(0) * n_kv_heads, 1, [&](int64_t begin, int64_t end) {
      TransposedTile keys(k.size(3));
      ForwardPass pass{static_cast<float>(scale)};
      const auto sums = torch::empty({group, n_queries});
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / n_kv_heads, kv_head = i % n_kv_heads;
        const ConstRows k_rows = head_rows(k, b, kv_head), v_rows = head_rows(v, b, kv_head);
        std::vector<ForwardPass::Head> heads;
        for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
          heads.push_back({head_rows(q, b, h), mutable_head_rows(out, b, h),
                           logsumexp.mutable_data_ptr<float>() + (b * n_heads + h) * n_queries});
        }
        sums.zero_();
        auto* const sums_data = sums.mutable_data_ptr<float>();
        const auto add_tile = [&](const Band& band, int64_t tile, int64_t n) {
          keys.assign(k_rows.at(band.keys).from(tile), n);
          const ConstRows values = v_rows.at(band.keys).from(tile);
          for (int64_t h = 0; h < group; ++h) {
            for_each_block(band, tile, n, [&](const Block& block) {
              pass.add(block, keys, values, heads[static_cast<size_t>(h)], sums_data + h * n_queries);
            });
          }
        };
        for_each_tile(visible.row(b), n_keys_of(visible.lengths, b, n_keys), add_tile);
        for (int64_t h = 0; h < group; ++h)
          ForwardPass::finish(heads[static_cast<size_t>(h)], sums_data + h * n_queries, n_queries);
      }
    });
    context->save_for_backward({q, k, v, out, logsumexp});
    context->saved_data["visible"] = c10::IValue::make_capsule(c10::make_intrusive<KeptPairs>(visible));
    context->saved_data["scale"] = scale;
    return out;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("attention");
    const auto saved = context->get_saved_variables();
    const auto &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3], &logsumexp = saved[4];
    const auto kept = context->saved_data["visible"].toCapsule();
    const auto& visible = static_cast<const KeptPairs&>(*kept).visible;
    const auto scale = static_cast<float>(context->saved_data["scale"].toDouble());
    const auto upstream = gradients[0].stride(3) == 1 ? gradients[0] : gradients[0].contiguous();
    const int64_t n_heads = q.size(1), n_kv_heads = k.size(1), group = n_heads / n_kv_heads,
                  n_queries = q.size(2), n_keys = k.size(2);
    const auto dq = empty_token_major(q, n_heads, n_queries, q.size(3)).zero_();
    const auto dk = empty_token_major(q, n_kv_heads, n_keys, k.size(3)).zero_();
    const auto dv = empty_token_major(q, n_kv_heads, n_keys, v.size(3)).zero_();
    at::parallel_for(0, q.size(0) * n_kv_heads, 1, [&](int64_t begin, int64_t end) {
      TransposedTile keys(k.size(3)), values(v.size(3));
      BackwardPass pass{scale};
      const auto deltas = torch::empty({group, n_queries});
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / n_kv_heads, kv_head = i % n_kv_heads;
        const ConstRows k_rows = head_rows(k, b, kv_head), v_rows = head_rows(v, b, kv_head);
        const Rows dk_rows = mutable_head_rows(dk, b, kv_head), dv_rows = mutable_head_rows(dv, b, kv_head);
        std::vector<BackwardPass::Head> heads;
        auto* const deltas_data = deltas.mutable_data_ptr<float>();
        for (int64_t h = 0; h < group; ++h) {
          const int64_t head = kv_head * group + h;
          heads.push_back({head_rows(q, b, head), head_rows(upstream, b, head),
                           mutable_head_rows(dq, b, head),
                           logsumexp.const_data_ptr<float>() + (b * n_heads + head) * n_queries});
          BackwardPass::find_deltas(head_rows(out, b, head), heads.back().out_gradients, n_queries,
                                    deltas_data + h * n_queries);
        }
        const auto add_tile = [&](const Band& band, int64_t tile, int64_t n) {
          const auto in_tile = [&](const auto& rows) { return rows.at(band.keys).from(tile); };
          keys.assign(in_tile(k_rows), n);
          values.assign(in_tile(v_rows), n);
          const BackwardPass::Tile tile_of_keys{keys, values, in_tile(k_rows), in_tile(dk_rows),
                                                in_tile(dv_rows)};
          for (int64_t h = 0; h < group; ++h) {
            for_each_block(band, tile, n, [&](const Block& block) {
              pass.add(block, tile_of_keys, heads[static_cast<size_t>(h)], deltas_data + h * n_queries);
            });
          }
        };
        for_each_tile(visible.row(b), n_keys_of(visible.lengths, b, n_keys), add_tile);
      }
    });
    return {dq, dk, dv, {}, {}};
  }
};

bool is_suitable(const torch::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat && x.numel() > 0 && x.stride(3) == 1 &&
         x.size(3) % kWidestVector == 0;
}

}  // namespace

bool has_cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  return is_suitable(q) && is_suitable(k) && is_suitable(v) && q.size(0) == k.size(0) &&
         q.size(1) % k.size(1) == 0 && q.size(3) == k.size(3) &&
         k.sizes().slice(0, 3) == v.sizes().slice(0, 3) && q.size(2) >= kMinQueries &&
         !at::autocast::is_autocast_enabled(at::kCPU);
}

torch::Tensor cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                            const VisiblePairs& visible, double scale) {
  TORCH_CHECK(has_cpu_attention(q, k, v) && scale > 0, "cpu_attention does not support queries ", q.sizes(),
              " over keys ", k.sizes(), " with scale ", scale, ": check has_cpu_attention() first");
  VisiblePairs on_cpu = visible;
  if (visible.lengths.defined()) on_cpu.lengths = visible.lengths.to(torch::kInt64).contiguous();
  return CpuAttention::apply(q, k, v, on_cpu, scale);
}

}  // namespace zoo
