#include "generation/rows/device_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/recordable.h"
#include "base/transfer.h"
#include "layers/attention/column_storage.h"

namespace zoo {
namespace {

/// Recordings take memory. Beyond this number all are forgotten.
constexpr size_t kMostKinds = 64;
/// Steps of a kind that are looked at. A kernel of our own is compared with another one when it is first
/// used.
constexpr int64_t kMostWatched = 3;

}  // namespace

DeviceRows::DeviceRows(GenerativeModel& model, torch::Device device, int64_t most_rows, int64_t n_outputs)
    : model_(model),
      device_(device),
      most_slots_(power_of_two(most_rows)),
      sampler_(most_slots_, n_outputs, device) {
  const auto whole = torch::dtype(torch::kInt64).device(device);
  ids_ = torch::zeros({most_slots_}, whole);
  offsets_ = torch::zeros({most_slots_}, whole);
  is_used_ = torch::zeros({most_slots_}, whole);
  chosen_ = torch::full({2, most_slots_}, std::numeric_limits<double>::quiet_NaN(),
                        torch::dtype(torch::kDouble).device(device));
}

DeviceRows::~DeviceRows() = default;

int64_t DeviceRows::free_slot() const {
  int64_t slot = 0;
  while (std::ranges::find(rows_, slot, &Row::slot) != rows_.end()) ++slot;
  return slot;
}

/// Few kinds of steps serve all lengths. A model never sees more than it reads.
int64_t DeviceRows::columns_for(int64_t n) const {
  constexpr int64_t fewest = 32;
  return std::max(n, std::min(power_of_two(std::max(n, fewest)), model_.max_length()));
}

void DeviceRows::make_room(int64_t n_slots, int64_t n_columns) {
  bool has_moved = false;
  for (auto* const storage : storages_)
    has_moved |= storage->reserve(power_of_two(n_slots), columns_for(n_columns));
  if (has_moved) recordings_.clear();  // they would use the memory of before
}

void DeviceRows::join(DecodingState state) {
  const auto from = std::make_shared<DecodingState>(std::move(state));
  if (storages_.empty()) {
    state_ = from->row(0);
    storages_ = state_.slots();
  }
  for (int64_t b = 0; b < from->n_rows(); ++b) {
    const int64_t n = from->lengths()[static_cast<size_t>(b)], slot = free_slot();
    TORCH_CHECK(slot < most_slots_, "more rows than there are places");
    joined_.push_back({.state = from, .row = b, .n_read = n, .slot = slot});
    rows_.push_back({.slot = slot, .n_read = n});
  }
}

void DeviceRows::place_joined() {
  const auto joined = std::exchange(joined_, {});
  if (joined.empty()) return;
  std::vector<int64_t> slots, lengths;
  for (const auto& row : joined) {
    slots.push_back(row.slot);
    lengths.push_back(row.n_read);
  }
  make_room(std::ranges::max(slots) + 1, std::ranges::max(lengths) + 1);
  const auto places = column_places(slots, lengths, device_);
  for (size_t i = 0; i < storages_.size(); ++i) {
    std::vector<PlacedRow> rows;
    for (const auto& row : joined)
      rows.push_back({.from = row.state->slots()[i], .row = row.row, .n = row.n_read});
    storages_[i]->place(rows, places);
  }
}

void DeviceRows::start(size_t row, const Start& start) {
  auto& started = rows_[row];
  started.is_new = false;
  changes_[started.slot] = {.token = start.token, .offset = started.n_read, .is_used = 1};
  if (start.rules) {
    sampler_.set(started.slot, *start.rules, start.text, start.next);
  } else {
    sampler_.clear(started.slot);
  }
}

void DeviceRows::restart(size_t row, int64_t token) {
  changes_[rows_[row].slot] = {.token = token, .offset = rows_[row].n_read, .is_used = 1};
}

void DeviceRows::keep(const std::vector<int64_t>& kept) {
  std::vector<Row> rows;
  for (const int64_t i : kept) rows.push_back(rows_[static_cast<size_t>(i)]);
  for (const auto& row : std::exchange(rows_, std::move(rows))) {
    if (std::ranges::find(rows_, row.slot, &Row::slot) != rows_.end()) continue;
    changes_[row.slot] = {};
    sampler_.clear(row.slot);
    std::erase_if(joined_, [&](const Joined& joined) { return joined.slot == row.slot; });
  }
}

DecodingState DeviceRows::copy_of(const std::vector<int64_t>& rows) {
  place_joined();
  std::vector<int64_t> lengths(static_cast<size_t>(most_slots_), 0);
  for (const auto& row : rows_) lengths[static_cast<size_t>(row.slot)] = row.n_read;
  state_.release(std::move(lengths));
  DecodingState result;
  for (const int64_t i : rows) result.join(state_.row(rows_[static_cast<size_t>(i)].slot));
  return result;
}

DecodingState DeviceRows::copy_of_all() {
  std::vector<int64_t> all(rows_.size());
  std::iota(all.begin(), all.end(), 0);
  return copy_of(all);
}

void DeviceRows::send_changes() {
  if (changes_.empty()) return;
  auto all = torch::empty({4, std::ssize(changes_)}, torch::kInt64);
  auto numbers = all.accessor<int64_t, 2>();
  int64_t i = 0;
  for (const auto& [slot, change] : std::exchange(changes_, {})) {
    numbers[0][i] = slot;
    numbers[1][i] = change.token;
    numbers[2][i] = change.offset;
    numbers[3][i++] = change.is_used;
  }
  const auto there = sent(all, device_);
  ids_.index_copy_(0, there[0], there[1]);
  offsets_.index_copy_(0, there[0], there[2]);
  is_used_.index_copy_(0, there[0], there[3]);
}

void DeviceRows::move(Row& row, int64_t slot) {
  for (auto* const storage : storages_) storage->place(slot, *storage, row.slot, row.n_read);
  for (const auto& numbers : {ids_, offsets_, is_used_}) {
    numbers[slot].copy_(numbers[row.slot]);
    numbers[row.slot].zero_();
  }
  sampler_.move(row.slot, slot);
  row.slot = slot;
}

/// Moves rows out of the last slots if half as many slots are enough.
void DeviceRows::close_gaps() {
  const int64_t enough = power_of_two(n_rows());
  for (auto& row : rows_) {
    if (row.slot >= enough) move(row, free_slot());
  }
}

void DeviceRows::step(TokenLogprobs logprobs) {
  const torch::NoGradGuard no_grad;
  place_joined();
  send_changes();
  close_gaps();
  const int64_t last = std::ranges::max(rows_, {}, &Row::slot).slot;
  const int64_t longest = std::ranges::max(rows_, {}, &Row::n_read).n_read + 1;
  make_room(last + 1, longest);
  sampler_.prepare();
  const Kind kind{.n_slots = power_of_two(last + 1),
                  .n_columns = columns_for(longest),
                  .sampler = sampler_.variant(),
                  .logprobs = logprobs};
  run(kind);
  std::vector<int64_t> slots;
  for (auto& row : rows_) {
    ++row.n_read;
    slots.push_back(row.slot);
  }
  unread_.push_back({.slots = std::move(slots),
                     .n_slots = kind.n_slots,
                     .numbers = LateNumbers(chosen_.narrow(1, 0, kind.n_slots)),
                     .logprobs = logprobs});
}

/// All graphs share memory, because they run one after the other. Null: there is none yet.
const DeviceGraph* DeviceRows::any_graph() const {
  const auto found =
      std::ranges::find_if(recordings_, [](const auto& entry) { return entry.second.graph != nullptr; });
  return found == recordings_.end() ? nullptr : found->second.graph.get();
}

/// The first steps of a kind load kernels, check them, and allocate what libraries keep. Once one of them
/// shows that it can be recorded, the next one is.
void DeviceRows::run(const Kind& kind) {
  state_.fix(std::vector<int64_t>(static_cast<size_t>(kind.n_slots), 0),
             PositionRange::at(offsets_.narrow(0, 0, kind.n_slots), kind.n_columns));
  for (auto* const storage : storages_) storage->use_rows(kind.n_slots);
  if (!recordings_.contains(kind) && recordings_.size() == kMostKinds) recordings_.clear();
  auto& recording = recordings_[kind];
  if (records_ && recording.can_be_made && !recording.graph) record_step(kind, recording);
  if (recording.graph) {
    recording.graph->replay();
  } else if (records_ && recording.n_watched < kMostWatched) {
    const RecordableWatch watch(device_);
    recording.logits = compute(kind);
    recording.can_be_made = !watch.obstacle();
    ++recording.n_watched;
  } else {
    recording.logits = compute(kind);
  }
  logits_ = recording.logits;
}

/// Recording a step changes nothing; the replay takes it.
void DeviceRows::record_step(const Kind& kind, Recording& recording) {
  auto graph = make_device_graph(device_.type());
  records_ = graph != nullptr;
  if (!graph) return;
  try {
    torch::Tensor logits;
    record(*graph, any_graph(), [&] { logits = compute(kind); });
    recording.graph = std::move(graph);
    recording.logits = std::move(logits);
  } catch (const c10::Error&) {
    records_ = false;
  }
}

/// A step: work of the device that reads and writes tensors which stay where they are. Returns the logits.
torch::Tensor DeviceRows::compute(const Kind& kind) {
  const int64_t n = kind.n_slots;
  const auto ids = ids_.narrow(0, 0, n);
  const auto logits = model_.forward({.ids = ids.unsqueeze(1)}, state_).to(torch::kFloat32);
  const auto tokens = sampler_.choose(logits);
  chosen_[0].narrow(0, 0, n).copy_(tokens);
  if (kind.logprobs == TokenLogprobs::wanted) chosen_[1].narrow(0, 0, n).copy_(logprobs_of(logits, tokens));
  ids.copy_(tokens.clamp_min(0));
  offsets_.narrow(0, 0, n).add_(is_used_.narrow(0, 0, n));
  return logits;
}

DeviceRows::Chosen DeviceRows::read() {
  const auto unread = std::move(unread_.front());
  unread_.pop_front();
  const auto numbers = unread.numbers.read();  // all tokens, then all log-probabilities
  Chosen chosen;
  for (const int64_t slot : unread.slots) {
    chosen.tokens.push_back(static_cast<int64_t>(numbers[static_cast<size_t>(slot)]));
    chosen.logprobs.push_back(unread.logprobs == TokenLogprobs::wanted
                                  ? numbers[static_cast<size_t>(unread.n_slots + slot)]
                                  : std::numeric_limits<double>::quiet_NaN());
  }
  return chosen;
}

torch::Tensor DeviceRows::logits(const std::vector<int64_t>& rows) const {
  std::vector<int64_t> slots;
  for (const int64_t i : rows) slots.push_back(rows_[static_cast<size_t>(i)].slot);
  return logits_.index_select(0, sent(torch::tensor(slots, torch::kInt64), device_));
}

}  // namespace zoo
