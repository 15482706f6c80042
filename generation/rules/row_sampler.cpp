#include "generation/rules/row_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/transfer.h"

namespace zoo {
namespace {

constexpr double kLeftOut = -std::numeric_limits<double>::infinity();

// Columns of the rules' numbers.
enum : int64_t { kTemperature, kRepetition, kPresence, kFrequency, kLogMinP, kNumbers };
enum : int64_t { kTopK, kIsGreedy, kWhole };

}  // namespace

RowSampler::RowSampler(int64_t n_rows, int64_t n_outputs, torch::Device device)
    : device_(device),
      rows_(static_cast<size_t>(n_rows)),
      suppressed_(rows_.size(), {TokenIds(), n_outputs}),
      forbidden_(torch::zeros({n_rows, n_outputs}, torch::dtype(torch::kBool).device(device))),
      numbers_(torch::zeros({n_rows, kNumbers}, torch::dtype(torch::kFloat).device(device))),
      masses_(torch::zeros({n_rows, 1}, torch::dtype(torch::kDouble).device(device))),
      whole_(torch::zeros({n_rows, kWhole}, torch::dtype(torch::kInt64).device(device))),
      random_(torch::zeros({n_rows, kNumbersAtOnce}, torch::dtype(torch::kDouble).device(device))),
      column_(torch::zeros({1}, torch::dtype(torch::kInt64).device(device))) {}

void RowSampler::suppress(int64_t row, const RowRules& rules) {
  const int64_t n_outputs = forbidden_.size(1);
  std::pair<TokenIds, int64_t> wanted{rules.suppressed, std::min(rules.vocab_size, n_outputs)};
  auto& own = suppressed_[static_cast<size_t>(row)];
  if (own == wanted) return;
  if (const auto other = std::ranges::find(suppressed_, wanted); other != suppressed_.end()) {
    forbidden_[row].copy_(forbidden_[other - suppressed_.begin()]);
  } else {
    auto is_forbidden = torch::zeros({n_outputs}, torch::kBool);
    auto* const to = is_forbidden.mutable_data_ptr<bool>();
    for (const int64_t id : wanted.first) {
      if (id < n_outputs) to[id] = true;
    }
    std::fill(to + wanted.second, to + n_outputs, true);
    send(is_forbidden, forbidden_[row]);
  }
  own = std::move(wanted);
}

/// Sets how often each token is among `ids`.
void RowSampler::count(torch::Tensor& table, int64_t row, const TokenIds& ids) const {
  const int64_t n_outputs = forbidden_.size(1);
  if (!table.defined()) table = torch::zeros(forbidden_.sizes(), numbers_.options());
  auto counts = torch::zeros({n_outputs}, torch::kFloat);
  for (const int64_t id : ids) {
    if (id < n_outputs) ++counts.mutable_data_ptr<float>()[id];
  }
  send(counts, table[row]);
}

void RowSampler::set(int64_t row, const RowRules& rules, const SequenceView& text, const Draw& next) {
  rows_[static_cast<size_t>(row)] = {.rules = rules, .next = next, .is_set = true};
  suppress(row, rules);
  if (rules.repetition_penalty != 1) count(said_, row, rules.said(text));
  if (rules.presence_penalty != 0 || rules.frequency_penalty != 0)
    count(occurrences_, row, {text.generated.begin(), text.generated.end()});
  has_changed_ = true;
}

void RowSampler::clear(int64_t row) {
  rows_[static_cast<size_t>(row)] = {};
  has_changed_ = true;
}

void RowSampler::move(int64_t from, int64_t to) {
  const auto a = static_cast<size_t>(from), b = static_cast<size_t>(to);
  rows_[b] = std::exchange(rows_[a], {});
  suppressed_[b] = suppressed_[a];
  for (const auto& table : {forbidden_, said_, occurrences_}) {
    if (table.defined()) table[to].copy_(table[from]);
  }
  has_changed_ = true;
}

RowSampler::Uses RowSampler::uses() const {
  Uses result;
  for (const auto& [rules, next, is_set] : rows_) {
    if (!is_set) continue;
    result.repetition |= rules.repetition_penalty != 1;
    result.occurrence |= rules.presence_penalty != 0 || rules.frequency_penalty != 0;
    if (!rules.seed) continue;
    result.draws = true;
    result.top_p |= rules.top_p < 1;
    result.min_p |= rules.min_p > 0;
    if (rules.top_k > 0 && rules.top_k < forbidden_.size(1)) {
      result.most_k = std::max(result.most_k, std::min(power_of_two(rules.top_k), forbidden_.size(1)));
    }
  }
  return result;
}

int64_t RowSampler::variant() const {
  const int64_t flags = (uses_.repetition ? 1 : 0) | (uses_.occurrence ? 2 : 0) | (uses_.draws ? 4 : 0) |
                        (uses_.top_p ? 8 : 0) | (uses_.min_p ? 16 : 0);
  return uses_.most_k * 32 + flags;
}

void RowSampler::send_rules() {
  const auto n = std::ssize(rows_);
  auto numbers = torch::zeros({n, kNumbers}, torch::kFloat);
  auto masses = torch::zeros({n, 1}, torch::kDouble);
  auto whole = torch::zeros({n, kWhole}, torch::kInt64);
  for (int64_t i = 0; i < n; ++i) {
    const auto& rules = rows_[static_cast<size_t>(i)].rules;
    auto* const row = numbers.mutable_data_ptr<float>() + i * kNumbers;
    row[kTemperature] = static_cast<float>(
        rules.seed && rules.temperature != 1 ? Temperature::divisor(rules.temperature) : 1);
    row[kRepetition] = static_cast<float>(rules.repetition_penalty);
    row[kPresence] = static_cast<float>(rules.presence_penalty);
    row[kFrequency] = static_cast<float>(rules.frequency_penalty);
    row[kLogMinP] = static_cast<float>(rules.min_p > 0 ? std::log(rules.min_p) : kLeftOut);
    masses.mutable_data_ptr<double>()[i] = rules.top_p < 1 ? rules.top_p : 2;
    auto* const choice = whole.mutable_data_ptr<int64_t>() + i * kWhole;
    choice[kTopK] = rules.top_k < forbidden_.size(1) ? rules.top_k : 0;
    choice[kIsGreedy] = rules.seed ? 0 : 1;
  }
  send(numbers, numbers_);
  send(masses, masses_);
  send(whole, whole_);
}

void RowSampler::send_numbers() {
  auto random = torch::zeros(random_.sizes(), torch::kDouble);
  auto* to = random.mutable_data_ptr<double>();
  for (const auto& [rules, next, is_set] : rows_) {
    auto draw = next;
    for (int64_t i = 0; i < kNumbersAtOnce; ++i, ++draw.position, ++to) {
      if (is_set && rules.seed) *to = number_of_token(*rules.seed, draw);
    }
  }
  send(random, random_);
  column_.zero_();
  n_used_ = 0;
}

void RowSampler::prepare() {
  if (has_changed_) {
    uses_ = uses();
    send_rules();
  }
  if (uses_.draws && (has_changed_ || n_used_ == kNumbersAtOnce)) send_numbers();
  has_changed_ = false;
  ++n_used_;
  for (auto& row : rows_) ++row.next.position;
}

torch::Tensor RowSampler::penalised(torch::Tensor scores) const {
  const int64_t n = scores.size(0);
  if (uses_.repetition) {
    const auto penalty = number(kRepetition, n);
    const auto changed = torch::where(scores < 0, scores * penalty, scores / penalty);
    scores = torch::where(said_.narrow(0, 0, n) > 0, changed, scores);
  }
  if (uses_.occurrence) {
    const auto times = occurrences_.narrow(0, 0, n);
    const auto changed = scores - number(kPresence, n) - number(kFrequency, n) * times;
    scores = torch::where(times > 0, changed, scores);
  }
  return scores;
}

/// The probabilities (B, V) float64 from which tokens are drawn: Temperature, TopK, TopP and MinP.
torch::Tensor RowSampler::drawn_from(torch::Tensor scores) const {
  const int64_t n = scores.size(0);
  const auto temperature = number(kTemperature, n);
  scores = torch::where(temperature == 1, scores, (scores - scores.amax(1, /*keepdim=*/true)) / temperature);
  if (uses_.most_k > 0) {
    const auto k = whole_.narrow(0, 0, n).narrow(1, kTopK, 1);
    const auto best = std::get<0>(scores.topk(uses_.most_k, 1));
    const auto is_off = k <= 0;
    const auto least = best.gather(1, (k - 1).clamp_min(0)).masked_fill(is_off, kLeftOut);
    const auto above = scores > least, equal = scores == least;
    const auto room = k.masked_fill(is_off, scores.size(1)) - above.sum(1, /*keepdim=*/true);
    scores = scores.masked_fill(above.logical_or(equal.logical_and(equal.cumsum(1) <= room)).logical_not(),
                                kLeftOut);
  }
  if (uses_.top_p) {
    const auto order = std::get<1>(torch::sort(scores, /*stable=*/true, /*dim=*/1, /*descending=*/true));
    const auto mass = scores.to(torch::kFloat64).softmax(1).gather(1, order).cumsum(1);
    auto stays = torch::ones_like(order, torch::kBool);
    if (const int64_t rest = mass.size(1) - 1; rest > 0)
      stays.narrow(1, 1, rest).copy_(mass.narrow(1, 0, rest) < masses_.narrow(0, 0, n));
    scores = scores.masked_fill(torch::empty_like(stays).scatter_(1, order, stays).logical_not(), kLeftOut);
  }
  if (uses_.min_p) {
    const auto least = scores.amax(1, /*keepdim=*/true) + number(kLogMinP, n);
    scores = scores.masked_fill(scores < least, kLeftOut);
  }
  return scores.to(torch::kFloat64).softmax(1);
}

// A number as an argument of torch::where() would be copied to the device, for which nothing can be recorded.
torch::Tensor RowSampler::choose(const torch::Tensor& logits) {
  const int64_t n = logits.size(0);
  const auto scores = penalised(logits.masked_fill(forbidden_.narrow(0, 0, n), kLeftOut));
  auto [evidence, tokens] = scores.max(1);
  if (uses_.draws) {
    const auto numbers = random_.narrow(0, 0, n).index_select(1, column_);
    const auto drawn = tokens_at(numbers, drawn_from(scores));
    column_.add_(1);
    const auto is_greedy = whole_.narrow(0, 0, n).select(1, kIsGreedy) > 0;
    tokens = torch::where(is_greedy, tokens, drawn.tokens);
    evidence = torch::where(is_greedy, evidence.to(torch::kFloat64), drawn.total);
  }
  const auto chosen = tokens.masked_fill(evidence.isfinite().logical_not(), -1);
  const auto places = chosen.clamp(0, logits.size(1) - 1).unsqueeze(1);
  for (const auto& [is_used, table] :
       {std::pair(uses_.repetition, said_), std::pair(uses_.occurrence, occurrences_)}) {
    if (is_used) table.narrow(0, 0, n).scatter_add_(1, places, torch::ones({n, 1}, table.options()));
  }
  return chosen;
}

torch::Tensor logprobs_of(const torch::Tensor& logits, const torch::Tensor& tokens) {
  return logits.to(torch::kFloat64).log_softmax(1).gather(1, tokens.clamp_min(0).unsqueeze(1)).squeeze(1);
}

}  // namespace zoo
