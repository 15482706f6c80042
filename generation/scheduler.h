#pragma once
// Continuous batching (Yu et al. 2022, "Orca"): requests of any length come at any time, the outputs under
// way grow together by one token a step, and each leaves the batch when it ends.

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/Stream.h>
#include <torch/types.h>

#include "generation/hypothesis.h"
#include "generation/rows/device_rows.h"
#include "generation/rows/prompt_reading.h"
#include "generation/rules/token_rules.h"
#include "generation/speculation.h"
#include "models/model.h"

namespace zoo {

class StreamScope;

struct GenerationRequest {
  TokenIds prompt;  // as the model reads it, not empty unless it reads recordings
  std::shared_ptr<const TokenRules> rules;
  SearchLimits limits;                 // one decoder if there are stop texts
  std::vector<Draw> draws = {Draw()};  // one for each output; the scheduler sets the position
  /// Makes the proposer of an output; none: a step adds one token. The model must keep every token
  /// (DecodingState).
  std::function<std::unique_ptr<Proposer>()> make_proposer = {};
  int64_t n_proposed = 4;   // the most tokens that are proposed for a step, at most kMostProposed
  int64_t n_likeliest = 0;  // how many tokens Hypothesis::likeliest has at each place
  /// Whether Hypothesis::logprobs are wanted. If not, they may be NaN.
  TokenLogprobs logprobs = TokenLogprobs::wanted;
  int64_t priority = 0;     // those with a lower one are begun earlier
  std::string client = {};  // who asks: clients share the places; "": the program itself, without a limit
  BatchFields fields = {};  // of one row: the recording, if the model reads recordings
};

struct SchedulerOptions {
  int64_t most_rows = 64;      // outputs that grow together, at least 1
  int64_t prompt_piece = 256;  // tokens of a prompt that are read between two steps, at least 1
  int64_t prefix_bytes = 0;    // for the states of what several prompts begin with; 0 = they are read again
  /// The most rows of one request and of one client, each at least 1; default: all.
  std::optional<int64_t> most_of_request = {}, most_of_client = {};
  /// So many rows at most grow together while there are several requests, but one of each request always, up
  /// to most_rows: outputs pause when others come. Default: outputs never pause, and requests wait for
  /// places.
  std::optional<int64_t> shared_rows = {};
};

/// Generates outputs for requests by greedy search or sampling.
///
/// A step adds a token to each output under way, or more where proposed tokens are accepted. Then it reads
/// about prompt_piece tokens of the prompts that wait, as long as there is room for their outputs, and a
/// prompt that is read gives its outputs their first token. Requests are begun by their priority, of one
/// priority those of the client with the fewest outputs under way, and of one client in the order of their
/// arrival. With shared_rows, a request with many outputs does not keep the others waiting: what it has begun
/// pauses, except for one output, and keeps its state.
/// An output is a function of its request: prompts are read alone and in fixed pieces, and the rows of a
/// batch do not mix. Whether it is the same to the last bit in any company depends on the model's products:
/// docs/generation.md.
///
/// On a GPU, prompts that are short enough are read together, and the rows of a model whose layers keep every
/// token grow as DeviceRows: outputs() then lack the token of the newest step, which is read when the next
/// one is under way. Rules that look at the text are applied by the host, for the rows that have them, and
/// make it wait.
///
/// A decoder sees at most max_length() tokens. An output that becomes longer with its prompt leaves the
/// batch and keeps its place; its last ⌈max_length/2⌉ tokens are read anew, before other prompts, and of
/// several such outputs in the order of their priority. A prompt that is too long is shortened in the same
/// way. Every token is therefore predicted from at least half of max_length() tokens, and each token is read
/// twice on average. An encoder-decoder must not generate more than max_length() tokens.
class Scheduler {
 public:
  /// The model must outlive this object.
  Scheduler(GenerativeModel& model, torch::Device device, const SchedulerOptions& options = {});

  /// Returns the number of the request, counted from 0.
  size_t submit(GenerationRequest request);
  /// Returns false if there is nothing to do. Throws what the model throws for all rows together. An error of
  /// one request, such as logits that are NaN after its rules, ends that request only (problem()).
  bool step();

  bool is_finished(size_t request) const { return requests_.at(request).n_unfinished == 0; }
  /// The error that has finished the request; null: none has.
  const std::exception_ptr& problem(size_t request) const { return requests_.at(request).problem; }
  /// Throws the error that has finished the request, if there is one.
  void require(size_t request) const {
    if (problem(request)) std::rethrow_exception(problem(request));
  }
  /// One output for each draw, as far as they are generated.
  const std::vector<Hypothesis>& outputs(size_t request) const { return requests_.at(request).outputs; }
  /// Ends and forgets the request. Returns its outputs so far.
  std::vector<Hypothesis> take(size_t request);

 private:
  struct Request {
    GenerationRequest asked;
    std::vector<Hypothesis> outputs;
    std::vector<ContinuationDecoder> decoders;         // of each output, if there are stop texts
    std::vector<std::unique_ptr<Proposer>> proposers;  // of each output, if there are any
    size_t n_unfinished = 0;
    std::exception_ptr problem = nullptr;
  };
  /// An output under way.
  struct Row {
    size_t request, output;
    int64_t n_seen;              // tokens that a decoder's state has read, and the newest token
    bool is_chosen_here = true;  // whether the host chooses its tokens, from the second one on
  };
  /// Which output a row is, also after it has left.
  struct Place {
    size_t request, output;
  };
  /// An output that has paused, and its state.
  struct PausedRow {
    Row row;
    DecodingState state;
  };
  /// Outputs that begin, or go on, when `tokens` are read.
  struct Waiting {
    size_t request;
    std::vector<size_t> outputs;
    TokenIds tokens;
    std::optional<size_t> left_at = {};        // the step in which an output left the batch to go on
    std::optional<PromptReading> prompt = {};  // once it is being read
  };
  /// The outputs that grow, or go on, and the requests that have any; of_request: also those that have
  /// paused.
  struct Places {
    bool are_shared = false;  // by several requests, of which some may wait
    int64_t all = 0;
    std::map<size_t, int64_t> of_request = {};
    std::map<std::string_view, int64_t> of_client = {}, requests_of_client = {};
  };

  std::unique_ptr<StreamScope> own_stream() const;
  bool proposes(size_t request) const;
  bool is_on_device() const { return on_device_ && on_device_->n_rows() > 0; }
  void join_rows(DecodingState state, size_t request);
  void leave_device_for(size_t request);
  void advance_on_device();
  bool has_complete_row() const;
  void start_new_rows();
  void choose_here();
  void read_chosen();
  void read_all_chosen();
  bool are_rows_shared() const;
  void share_rows();
  void pause_rows(const std::vector<bool>& grow);
  void resume_rows(const std::vector<bool>& grow);
  void advance_rows();
  std::vector<Proposal> proposals();
  void check_proposals(const std::vector<Proposal>& proposals);
  std::vector<int64_t> checked(const Row& row, const Proposal& proposal, const torch::Tensor& logits) const;
  void add_accepted(Row& row, const Proposal& proposal, const torch::Tensor& logits);
  /// logits: after which the token was chosen, (1, V).
  void add_token(Row& row, int64_t token, double logprob, const torch::Tensor& logits);
  void read_prompts();
  int64_t read_together();
  bool begin_next();
  int64_t start_rows(std::list<Waiting> read);
  torch::Tensor begin_rows(Waiting waiting);
  Places places() const;
  int64_t room_for(size_t request, const Places& places) const;
  void add_tokens(const torch::Tensor& logits, const std::vector<size_t>& rows);
  std::vector<std::optional<int64_t>> choose(const torch::Tensor& logits, const std::vector<size_t>& rows);
  std::vector<int64_t> choose_together(const torch::Tensor& logits, const std::vector<size_t>& rows,
                                       const std::vector<int64_t>& members) const;
  std::vector<size_t> rows_from(size_t first) const;
  template <class Work>
  void for_request(size_t request, const Work& work);
  void give_up(size_t request, const std::exception_ptr& problem);
  void forget_waiting(size_t request);
  Hypothesis& output_of(const Row& row) { return requests_.at(row.request).outputs[row.output]; }
  void let_rows_leave();
  void keep_rows(const std::vector<int64_t>& kept);
  TokenIds end_of_text(const Row& row) const;

  GenerativeModel& model_;
  torch::Device device_;
  SchedulerOptions options_;
  PrefixCache prefixes_;
  size_t n_submitted_ = 0, n_steps_ = 0;
  std::map<size_t, Request> requests_;
  std::list<Waiting> waiting_;
  std::list<Waiting> outgrown_;     // they go on before all others, by priority, from the next step on
  std::optional<Waiting> reading_;  // whose prompt is being read
  std::list<Waiting> together_;     // whose prompts are about to be read together
  std::vector<Row> rows_;
  DecodingState state_;  // of rows_, unless they are on the device
  std::list<PausedRow> paused_;

  // Used on a GPU only.
  std::optional<c10::Stream> stream_;  // where all of this is computed
  bool reads_together_ = false;        // whether prompts can be read together
  int64_t n_outputs_ = 0;              // V, once logits were seen
  std::optional<DeviceRows> on_device_;
  std::deque<std::vector<Place>> unread_;  // the rows of the steps whose tokens are not read
};

}  // namespace zoo
