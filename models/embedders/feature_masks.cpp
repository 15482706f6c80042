#include "models/embedders/feature_masks.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace zoo {

void describe(ConfigVisitor& v, FeatureMasks& c) {
  constexpr double longest = 1 << 12, most = 1 << 12;
  v.field("active", c.active, "Whether training hides something.");
  v.field("time_share", c.time_share,
          "Share of the moments that spans of time_length hide, where they do not overlap.",
          Limits::between(0, 1));
  v.field("time_length", c.time_length, "Moments of a span.", Limits::between(1, longest));
  v.field("least_time_masks", c.least_time_masks, "The fewest spans of moments.", Limits::between(0, most));
  v.field("feature_share", c.feature_share,
          "Share of the numbers of all moments that spans of feature_length hide.", Limits::between(0, 1));
  v.field("feature_length", c.feature_length, "Numbers of a span.", Limits::between(1, longest));
  v.field("least_feature_masks", c.least_feature_masks, "The fewest spans of numbers.",
          Limits::between(0, most));
}

namespace {

/// Spans over a row of places.
struct Spans {
  double share;
  int64_t length, least;
};

/// Sets the hidden ones of `n` places to true.
void hide_spans(bool* hidden, int64_t n, const Spans& spans, CounterRandom& random) {
  // The part of a span that is left over is drawn.
  const double wanted = spans.share * static_cast<double>(n) / static_cast<double>(spans.length);
  auto count = std::max(static_cast<int64_t>(wanted + random.uniform()), spans.least);
  count = std::min(count, n / spans.length);
  std::vector<int64_t> starts(static_cast<size_t>(std::max<int64_t>(n - spans.length + 1, 0)));
  std::iota(starts.begin(), starts.end(), 0);
  for (int64_t i = 0; i < count; ++i) {
    const auto other = i + random.below(std::ssize(starts) - i);
    std::swap(starts[static_cast<size_t>(i)], starts[static_cast<size_t>(other)]);
    std::fill_n(hidden + starts[static_cast<size_t>(i)], spans.length, true);
  }
}

/// (B, n) bool. `lengths`: the places of each row.
torch::Tensor hidden_places(const std::vector<int64_t>& lengths, int64_t n, const Spans& spans,
                            uint64_t purpose, const RowSeed& seed) {
  const auto B = std::ssize(lengths);
  auto hidden = torch::zeros({B, n}, torch::kBool);
  for (int64_t b = 0; b < B; ++b) {
    CounterRandom random({seed.seed, purpose, static_cast<uint64_t>(seed.first_row + b)});
    hide_spans(hidden.mutable_data_ptr<bool>() + b * n, lengths[static_cast<size_t>(b)], spans, random);
  }
  return hidden;
}

}  // namespace

torch::Tensor with_hidden_features(const torch::Tensor& x, const torch::Tensor& lengths,
                                   const torch::Tensor& vector, const FeatureMasks& masks,
                                   const RowSeed& seed) {
  const int64_t B = x.size(0), T = x.size(1), D = x.size(2);
  constexpr uint64_t of_time = 0, of_features = 1;
  auto result = x;
  if (masks.time_share > 0) {
    std::vector<int64_t> own(static_cast<size_t>(B), T);
    if (lengths.defined()) {
      const auto on_cpu = lengths.to(torch::kCPU, torch::kInt64).contiguous();
      own.assign(on_cpu.const_data_ptr<int64_t>(), on_cpu.const_data_ptr<int64_t>() + B);
    }
    const Spans spans{masks.time_share, masks.time_length, masks.least_time_masks};
    const auto hidden = hidden_places(own, T, spans, of_time, seed).to(x.device());
    result = torch::where(hidden.unsqueeze(2), vector.to(x.scalar_type()), result);
  }
  if (masks.feature_share > 0) {
    const std::vector<int64_t> own(static_cast<size_t>(B), D);
    const Spans spans{masks.feature_share, masks.feature_length, masks.least_feature_masks};
    const auto hidden = hidden_places(own, D, spans, of_features, seed).to(x.device());
    result = result.masked_fill(hidden.unsqueeze(1), 0);
  }
  return result;
}

}  // namespace zoo
