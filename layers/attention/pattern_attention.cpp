#include "layers/attention/pattern_attention.h"

#include <algorithm>

#include "kernels/flash_attention.h"
#include "layers/attention/banded_attention.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/attention/window_state.h"

namespace zoo {
namespace {

/// (B or 1, 1, T, T) bool: the visible pairs as a mask, for attention step by step.
torch::Tensor as_mask(const VisiblePairs& visible, int64_t n, torch::Device device) {
  std::vector<torch::Tensor> rows;
  for (const auto& bands : visible.rows) rows.push_back(visible_pairs(*bands, n, n));
  return torch::stack(rows).unsqueeze(1).to(device);
}

/// Every token of the sequences is in q, k and v.
torch::Tensor over_whole_sequences(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                   const PatternCall& call) {
  const int64_t n = q.size(2);
  if (const auto window = call.pattern.plain_window();
      window && !call.maps && !call.sinks.defined() && !call.softcap && has_flash_attention(q, k, v))
    return flash_attention(q, k, v,
                           {.is_causal = call.mask.is_causal(),
                            .lengths = call.mask.ends(),
                            .window = window,
                            .scale = call.scale,
                            .dropout = call.dropout});
  const auto visible = call.pattern.visible({.length = n, .lengths = call.mask.ends(), .ids = call.ids});
  if (!call.maps && !call.sinks.defined())
    return banded_attention(q, k, v, visible, call.scale, call.dropout, call.softcap);
  auto mask = Mask::keep(as_mask(visible, n, q.device()));
  if (call.mask.ends().defined()) mask = mask & Mask::lengths(call.mask.ends());
  const auto result = explicit_attention(q, k, v,
                                         {.mask = mask,
                                          .scale = call.scale,
                                          .dropout = call.dropout,
                                          .softcap = call.softcap,
                                          .sinks = call.sinks});
  if (call.maps) call.maps->push_back(result.weights);
  return result.output;
}

/// Attention of queries at `query_positions` (B or 1, T) over keys at `key_positions` (B or 1, S), where
/// -1 = no key.
torch::Tensor over_positions(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                             const torch::Tensor& query_positions, const torch::Tensor& key_positions,
                             const PatternCall& call) {
  const auto keys = key_positions.unsqueeze(1);
  const auto visible = call.pattern.sees(query_positions.unsqueeze(2), keys).logical_and(keys.ge(0));
  return fused_attention(q, k, v,
                         {.mask = Mask::keep(visible),  // (B or 1, T, S)
                          .scale = call.scale,
                          .softcap = call.softcap,
                          .sinks = call.sinks});
}

/// (B or 1, T): the positions of the tokens of a range, -1 for padding.
torch::Tensor token_positions(const PositionRange& range, torch::Device device) {
  if (!range.differs_by_row()) return range.ids(device).unsqueeze(0);
  if (!range.counts().defined()) return range.columns();
  const auto columns = torch::arange(range.count(), range.columns().options());
  return range.columns().masked_fill(columns.ge(range.counts().unsqueeze(1)), -1);
}

/// A single token of every row. A row finds its keys in the same order in any batch, and so gets the same
/// bits.
torch::Tensor next_token(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                         WindowState& state, const PatternCall& call) {
  // The token that is overwritten is out of the window.
  const auto& range = *call.range;
  state.write(k, v, range);
  if (call.pattern.sees_all_in_reach() && !range.differs_by_row()) {
    const auto all = state.of_equal_rows(range.n_keys());
    return fused_attention(q, all.keys, all.values,
                           {.scale = call.scale, .softcap = call.softcap, .sinks = call.sinks});
  }
  const auto now = state.after(range);
  const auto here = range.differs_by_row() ? range.columns() : range.ids(q.device()).unsqueeze(0);
  return over_positions(q, now.keys, now.values, here, now.positions, call);
}

torch::Tensor next_tokens(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                          WindowState& state, const PositionRange& range, const PatternCall& call) {
  const auto past = state.before(range);
  const auto here = token_positions(range, q.device());
  const int64_t n_rows = std::max(past.positions.size(0), here.size(0));
  const auto expanded = [&](const torch::Tensor& x) { return x.expand({n_rows, x.size(1)}); };
  const auto positions = torch::cat({expanded(past.positions), expanded(here)}, 1);
  const auto out = over_positions(q, torch::cat({past.keys, k.to(past.keys.scalar_type())}, 2),
                                  torch::cat({past.values, v.to(past.values.scalar_type())}, 2),
                                  range.differs_by_row() ? range.columns() : here, positions, call);
  state.write(k, v, range);
  return out;
}

torch::Tensor over_window(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                          WindowState& state, const PatternCall& call) {
  const auto& range = *call.range;
  if (range.count() == 1) return next_token(q, k, v, state, call);
  // In parts, because the mask of a part has a row for each of its tokens.
  constexpr int64_t most = 256;
  std::vector<torch::Tensor> parts;
  for (int64_t first = 0; first < range.count(); first += most) {
    const int64_t n = std::min(most, range.count() - first);
    parts.push_back(next_tokens(q.narrow(2, first, n), k.narrow(2, first, n), v.narrow(2, first, n), state,
                                range.part(first, n), call));
  }
  return parts.size() == 1 ? parts.front() : torch::cat(parts, 2);
}

/// Over all keys so far, and those of these tokens.
torch::Tensor over_all_keys(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                            KeyValueState& state, const PatternCall& call) {
  const auto& range = *call.range;
  const auto keys = torch::arange(range.n_keys(), torch::dtype(torch::kInt64).device(q.device()));
  const auto queries = range.differs_by_row() ? range.columns() : range.ids(q.device()).unsqueeze(0);
  const auto visible = call.pattern.sees(queries.unsqueeze(2), keys.view({1, 1, -1}));
  return fused_attention(
      q, k, v, state, range,
      {.mask = Mask::keep(visible), .scale = call.scale, .softcap = call.softcap, .sinks = call.sinks});
}

}  // namespace

std::unique_ptr<LayerState> new_pattern_state(const AttentionPattern& pattern, int64_t n_rows) {
  if (const auto reach = pattern.reach()) return std::make_unique<WindowState>(n_rows, *reach);
  return std::make_unique<KeyValueState>(n_rows);
}

torch::Tensor pattern_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                const PatternCall& call) {
  TORCH_CHECK(call.mask.is_causal() == (call.pattern.direction() == Direction::causal),
              "the mask and the pattern ", call.pattern.description(), " are not both causal");
  if (!call.state) {
    TORCH_CHECK(call.mask.is_causal_or_lengths(), "a pattern takes causality and lengths, but no other mask");
    return over_whole_sequences(q, k, v, call);
  }
  TORCH_CHECK(call.range, "a state needs the positions of the tokens");
  auto* const window = call.state->window();
  const bool is_first = call.range->first() == 0;  // no row has read anything before
  if (window) {
    if (!is_first) return over_window(q, k, v, *window, call);
    window->write(k, v, *call.range);
    return over_whole_sequences(q, k, v, call);
  }
  auto& state = call.state->key_values();
  if (!is_first) return over_all_keys(q, k, v, state, call);
  const auto all = state.extend(k, v, *call.range);
  return over_whole_sequences(q, all.keys, all.values, call);
}

}  // namespace zoo
