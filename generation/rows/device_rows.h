#pragma once
// Outputs that grow on a GPU. Their steps have fixed shapes, so that each kind of step is recorded once as a
// graph and then started as a whole; the tokens are chosen where the logits are, and read by the host when
// the next step is under way.

#include <compare>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "base/device_graph.h"
#include "base/late_numbers.h"
#include "generation/rules/row_sampler.h"
#include "models/model.h"

namespace zoo {

class ColumnStorage;

/// Whether the log-probabilities of tokens are wanted beside the tokens.
enum class TokenLogprobs { none, wanted };

/// Rows of a decoder whose layers keep the keys and values of all tokens. Rows stay in slots of one tensor a
/// layer: one that joins is copied into a free slot, and one that leaves is not moved. A step reads a token
/// of each row. It has as many slots as the next power of 2, and as many columns, so a row may be computed
/// with others, longer ones and empty slots beside it.
///
/// Everything is done on the current stream, which must not be the default one. If a step cannot be recorded,
/// steps are done operation by operation from then on.
class DeviceRows {
 public:
  /// The model must outlive this object.
  /// n_outputs: V.
  DeviceRows(GenerativeModel& model, torch::Device device, int64_t most_rows, int64_t n_outputs);
  ~DeviceRows();
  DeviceRows(const DeviceRows&) = delete;
  DeviceRows& operator=(const DeviceRows&) = delete;

  /// Whether rows of this state, which has read something, can be here.
  static bool take(DecodingState& state) { return !state.slots().empty(); }

  int64_t n_rows() const { return std::ssize(rows_); }
  /// Appends the rows of `state`. Each needs start() before the next step, which copies all that have joined
  /// to their slots, in a few operations.
  void join(DecodingState state);
  /// Rows i are from now on the rows kept[i]; the others leave.
  void keep(const std::vector<int64_t>& kept);
  /// Copies of the states of rows.
  DecodingState copy_of(const std::vector<int64_t>& rows);
  DecodingState copy_of_all();

  /// How a row goes on.
  struct Start {
    int64_t token;          // the newest one, which the next step reads
    const RowRules* rules;  // null: the caller chooses its tokens, see restart()
    SequenceView text;      // its tokens so far, the newest one included
    Draw next;              // of the token that the next step chooses
  };
  void start(size_t row, const Start& start);
  /// The next step reads this token, not the one that was chosen.
  void restart(size_t row, int64_t token);
  /// Whether a row has joined and not been started.
  bool is_new(size_t row) const { return rows_[row].is_new; }

  /// Reads a token of each row and chooses the next one.
  void step(TokenLogprobs logprobs);
  /// Steps whose tokens are not read.
  size_t n_unread() const { return unread_.size(); }
  /// The tokens that the earliest unread step has chosen for the rows of then; -1: its logits are not
  /// numbers.
  struct Chosen {
    std::vector<int64_t> tokens;
    std::vector<double> logprobs;  // NaN if they are not wanted
  };
  Chosen read();
  /// The logits of the newest step for some rows, (n, V) float32.
  torch::Tensor logits(const std::vector<int64_t>& rows) const;

 private:
  struct Row {
    int64_t slot;
    int64_t n_read;  // tokens that the state has read
    bool is_new = true;
  };
  /// What tells one kind of step from another.
  struct Kind {
    int64_t n_slots, n_columns, sampler;
    TokenLogprobs logprobs;
    auto operator<=>(const Kind&) const = default;
  };
  struct Recording {
    std::unique_ptr<DeviceGraph> graph = nullptr;  // null before it is recorded
    torch::Tensor logits = {};                     // (slots, V) float: a replay writes them here
    int64_t n_watched = 0;                         // steps of the kind, before
    bool can_be_made = false;                      // what the last of them has shown
  };
  struct Unread {
    std::vector<int64_t> slots;  // of the rows
    int64_t n_slots;             // of the step
    LateNumbers numbers;         // (2, n_slots) double: tokens, log-probabilities
    TokenLogprobs logprobs;
  };
  /// A row that has joined, and is not in its slot yet.
  struct Joined {
    std::shared_ptr<DecodingState> state;
    int64_t row, n_read, slot;
  };
  /// A slot that a row has taken, or left, since the last step.
  struct Change {
    int64_t token = 0, offset = 0, is_used = 0;
  };

  int64_t free_slot() const;
  int64_t columns_for(int64_t n) const;
  void make_room(int64_t n_slots, int64_t n_columns);
  void place_joined();
  void send_changes();
  void close_gaps();
  void move(Row& row, int64_t slot);
  const DeviceGraph* any_graph() const;
  void run(const Kind& kind);
  void record_step(const Kind& kind, Recording& recording);
  torch::Tensor compute(const Kind& kind);

  GenerativeModel& model_;
  torch::Device device_;
  int64_t most_slots_;
  std::vector<Row> rows_;
  DecodingState state_;                   // of all slots
  std::vector<ColumnStorage*> storages_;  // of state_'s layers; empty before the first row
  std::vector<Joined> joined_;
  std::map<int64_t, Change> changes_;  // by slot
  RowSampler sampler_;
  std::map<Kind, Recording> recordings_;  // by kind, of those that were seen
  bool records_ = true;                   // whether steps can be recorded
  torch::Tensor logits_;                  // of the newest step
  std::deque<Unread> unread_;

  // (slots) int64 on the device: the token that is read next, its position, 1 for a slot that is used.
  torch::Tensor ids_, offsets_, is_used_;
  torch::Tensor chosen_;  // (2, slots) double: see Unread
};

}  // namespace zoo
