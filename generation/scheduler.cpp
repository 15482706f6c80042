#include "generation/scheduler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/types.h>

#include "base/device.h"
#include "base/stream_scope.h"
#include "generation/log_probabilities.h"
#include "generation/rows/row_shares.h"
#include "generation/sequence_reader.h"

namespace zoo {
namespace {

/// The most tokens of all rows in a step with proposals. Up to this number our products compute each token
/// by itself, so a token's logits are the same with and without proposals.
constexpr int64_t kMostTokensAtOnce = 64;

/// The most tokens of prompts that a GPU reads together, padding included.
constexpr int64_t kMostPromptTokens = 8192;

torch::Tensor indices(const std::vector<int64_t>& values, torch::Device device) {
  return torch::tensor(values, torch::kInt64).to(device);
}

}  // namespace

Scheduler::Scheduler(GenerativeModel& model, torch::Device device, const SchedulerOptions& options)
    : model_(model), device_(device), options_(options), prefixes_(options.prefix_bytes) {
  TORCH_CHECK(options.most_rows > 0 && options.prompt_piece > 0, "a scheduler needs rows and pieces");
  if (device.is_cpu()) return;
  synchronize(device);  // the weights may have been stored on another stream
  stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  const TokenBatch any{.ids = torch::zeros({1, 1}, torch::kInt64)};
  reads_together_ = model.continues_prompt() && model.begin({.input = any}).keeps_every_token();
}

/// Null on a CPU.
std::unique_ptr<StreamScope> Scheduler::own_stream() const {
  return stream_ ? std::make_unique<StreamScope>(*stream_) : nullptr;
}

size_t Scheduler::submit(GenerationRequest request) {
  const size_t number = n_submitted_++;
  const size_t n_outputs = request.draws.size();
  auto tokens = request.prompt;
  if (model_.continues_prompt()) shorten(tokens, model_.max_length());
  Request made{.asked = std::move(request),
               .outputs = std::vector<Hypothesis>(n_outputs),
               .decoders = {},
               .proposers = {}};
  if (made.asked.limits.max_new_tokens > 0) {
    made.n_unfinished = n_outputs;
    const auto& decoders = made.asked.limits.decoders;
    for (size_t i = 0; i < n_outputs; ++i) {
      if (!decoders.empty()) made.decoders.push_back(decoders.front());
      if (made.asked.make_proposer) made.proposers.push_back(made.asked.make_proposer());
    }
    Waiting waiting{.request = number, .outputs = {}, .tokens = std::move(tokens)};
    for (size_t i = 0; i < n_outputs; ++i) waiting.outputs.push_back(i);
    waiting_.push_back(std::move(waiting));
  }
  requests_.emplace(number, std::move(made));
  return number;
}

bool Scheduler::step() {
  if (rows_.empty() && paused_.empty() && waiting_.empty() && outgrown_.empty() && !reading_) return false;
  const auto stream = own_stream();
  ++n_steps_;
  share_rows();
  advance_rows();
  read_prompts();
  return true;
}

/// Does the part of a step that belongs to one request. Its errors end this request only.
template <class Work>
void Scheduler::for_request(size_t request, const Work& work) {
  try {
    work();
  } catch (...) {
    give_up(request, std::current_exception());
  }
}

/// The rows of the request leave with let_rows_leave().
void Scheduler::give_up(size_t request, const std::exception_ptr& problem) {
  auto& given_up = requests_.at(request);
  given_up.problem = problem;
  given_up.n_unfinished = 0;
  forget_waiting(request);
}

void Scheduler::forget_waiting(size_t request) {
  const auto is_of_it = [&](const Waiting& waiting) { return waiting.request == request; };
  std::erase_if(waiting_, is_of_it);
  std::erase_if(outgrown_, is_of_it);
  std::erase_if(paused_, [&](const PausedRow& paused) { return paused.row.request == request; });
  if (reading_ && is_of_it(*reading_)) reading_.reset();
}

std::vector<Hypothesis> Scheduler::take(size_t request) {
  auto outputs = std::move(requests_.at(request).outputs);
  if (!is_finished(request)) {
    const auto stream = own_stream();
    forget_waiting(request);
    std::vector<int64_t> kept;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].request != request) kept.push_back(static_cast<int64_t>(i));
    }
    keep_rows(kept);
  }
  requests_.erase(request);
  return outputs;
}

/// Whether several requests have something to do.
bool Scheduler::are_rows_shared() const {
  return std::ranges::count_if(requests_, [](const auto& entry) { return entry.second.n_unfinished > 0; }) >
         1;
}

/// Lets outputs pause and go on, so that each request has its share.
void Scheduler::share_rows() {
  if (!options_.shared_rows) return;
  const int64_t most = are_rows_shared() ? *options_.shared_rows : options_.most_rows;
  if (paused_.empty() && std::ssize(rows_) <= std::min(most, options_.most_rows)) return;
  if (is_on_device()) {
    read_all_chosen();
    let_rows_leave();
  }
  std::vector<BegunRow> begun;
  for (const auto& row : rows_) begun.push_back({.request = row.request, .grows = true});
  for (const auto& paused : paused_) begun.push_back({.request = paused.row.request, .grows = false});
  const auto grow = rows_that_grow(begun, options_.most_rows, most);
  const auto n_rows = static_cast<std::ptrdiff_t>(rows_.size());
  resume_rows({grow.begin() + n_rows, grow.end()});
  pause_rows({grow.begin(), grow.begin() + n_rows});
}

/// grow: of each paused row, whether it goes on.
void Scheduler::resume_rows(const std::vector<bool>& grow) {
  auto paused = paused_.begin();
  for (const bool goes_on : grow) {
    const auto next = std::next(paused);
    if (goes_on) {
      leave_device_for(paused->row.request);
      rows_.push_back(paused->row);
      join_rows(std::move(paused->state), paused->row.request);
      paused_.erase(paused);
    }
    paused = next;
  }
}

/// grow: of the first rows, whether they go on. The others do.
void Scheduler::pause_rows(const std::vector<bool>& grow) {
  std::vector<int64_t> kept, pausing;
  for (size_t i = 0; i < rows_.size(); ++i)
    (i >= grow.size() || grow[i] ? kept : pausing).push_back(static_cast<int64_t>(i));
  if (pausing.empty()) return;
  for (const int64_t i : pausing) {
    auto own = is_on_device() ? on_device_->copy_of({i}) : state_.row(i);
    paused_.push_back({.row = rows_[static_cast<size_t>(i)], .state = std::move(own)});
  }
  keep_rows(kept);
}

void Scheduler::advance_rows() {
  if (rows_.empty()) return;
  if (is_on_device()) return advance_on_device();
  if (const auto proposed = proposals(); !proposed.empty()) {
    check_proposals(proposed);
    let_rows_leave();
    return;
  }
  std::vector<int64_t> tokens;
  for (const auto& row : rows_) tokens.push_back(output_of(row).ids.back());
  const TokenBatch batch{.ids = indices(tokens, device_).unsqueeze(1)};
  add_tokens(model_.forward(batch, state_).to(torch::kFloat32), rows_from(0));
  let_rows_leave();
}

std::vector<size_t> Scheduler::rows_from(size_t first) const {
  std::vector<size_t> rows(rows_.size() - first);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// ---- on a GPU

/// Appends the state of rows of a request, which are the last ones.
void Scheduler::join_rows(DecodingState state, size_t request) {
  const bool fits =
      !device_.is_cpu() && state_.n_rows() == 0 && !proposes(request) && DeviceRows::take(state);
  if (!fits) return state_.join(std::move(state));
  if (!on_device_) on_device_.emplace(model_, device_, options_.most_rows, n_outputs_);
  on_device_->join(std::move(state));
}

bool Scheduler::proposes(size_t request) const {
  return static_cast<bool>(requests_.at(request).asked.make_proposer);
}

/// Proposed tokens are checked by the host: if the request has any, all rows are where it can.
void Scheduler::leave_device_for(size_t request) {
  if (!is_on_device() || !proposes(request)) return;
  read_all_chosen();
  let_rows_leave();
  state_ = on_device_->copy_of_all();
  on_device_->keep({});
}

void Scheduler::advance_on_device() {
  if (has_complete_row()) {
    read_all_chosen();
    let_rows_leave();
    if (rows_.empty()) return;
  }
  start_new_rows();
  const bool chooses_here = std::ranges::any_of(rows_, &Row::is_chosen_here);
  if (chooses_here) read_all_chosen();
  auto logprobs = TokenLogprobs::none;
  auto& places = unread_.emplace_back();
  for (const auto& row : rows_) {
    places.push_back({.request = row.request, .output = row.output});
    const auto wanted = requests_.at(row.request).asked.logprobs;
    if (!row.is_chosen_here && wanted == TokenLogprobs::wanted) logprobs = wanted;
  }
  on_device_->step(logprobs);
  if (chooses_here) {
    choose_here();
    read_all_chosen();
  } else if (unread_.size() > 1) {
    read_chosen();
  }
  let_rows_leave();
}

/// Whether a row has all its tokens, or as many as the model reads, once what it is computing is read.
bool Scheduler::has_complete_row() const {
  const auto n = std::ssize(unread_);
  return n > 0 && std::ranges::any_of(rows_, [&](const Row& row) {
           const auto& request = requests_.at(row.request);
           return std::ssize(request.outputs[row.output].ids) + n >= request.asked.limits.max_new_tokens ||
                  (model_.continues_prompt() && row.n_seen + n > model_.max_length());
         });
}

/// Tells the device how rows that have joined go on.
void Scheduler::start_new_rows() {
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!on_device_->is_new(i)) continue;
    auto& row = rows_[i];
    const auto& request = requests_.at(row.request);
    const auto& ids = request.outputs[row.output].ids;
    const auto rules = request.asked.n_likeliest > 0 ? std::nullopt : request.asked.rules->of_row();
    row.is_chosen_here = !rules;
    auto draw = request.asked.draws[row.output];
    draw.position = ids.size();
    on_device_->start(i, {.token = ids.back(),
                          .rules = rules ? &*rules : nullptr,
                          .text = {request.asked.prompt, ids},
                          .next = draw});
  }
}

/// Chooses the tokens of rows whose rules look at the text.
void Scheduler::choose_here() {
  std::vector<size_t> rows;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].is_chosen_here) continue;
    rows.push_back(i);
    numbers.push_back(static_cast<int64_t>(i));
  }
  add_tokens(on_device_->logits(numbers), rows);
  for (const size_t i : rows) on_device_->restart(i, output_of(rows_[i]).ids.back());
}

/// Reads the tokens of the earliest step that the host has not seen. Rows that have ended since had no use
/// for them.
void Scheduler::read_chosen() {
  const auto places = std::move(unread_.front());
  unread_.pop_front();
  const auto [tokens, logprobs] = on_device_->read();
  for (size_t i = 0; i < places.size(); ++i) {
    const auto row = std::ranges::find_if(rows_, [&](const Row& candidate) {
      return candidate.request == places[i].request && candidate.output == places[i].output;
    });
    if (row == rows_.end() || row->is_chosen_here || output_of(*row).end) continue;
    for_request(row->request, [&] {
      const bool has_logprob = requests_.at(row->request).asked.logprobs == TokenLogprobs::wanted;
      if (tokens[i] < 0 || (has_logprob && !std::isfinite(logprobs[i]))) fail_not_a_number();
      add_token(*row, tokens[i], logprobs[i], {});
    });
  }
}

void Scheduler::read_all_chosen() {
  while (!unread_.empty()) read_chosen();
}

/// A proposal for each row. The list is empty if no row has any.
std::vector<Proposal> Scheduler::proposals() {
  std::vector<Proposal> result(rows_.size());
  const int64_t share = kMostTokensAtOnce / std::ssize(rows_) - 1;
  bool is_any = false;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const auto& row = rows_[i];
    auto& request = requests_.at(row.request);
    if (request.proposers.empty()) continue;
    auto& output = request.outputs[row.output];
    int64_t most = std::min({share, kMostProposed, request.asked.n_proposed,
                             request.asked.limits.max_new_tokens - std::ssize(output.ids) - 1});
    if (model_.continues_prompt()) most = std::min(most, model_.max_length() - row.n_seen);
    if (most < 1) continue;
    auto draw = request.asked.draws[row.output];
    draw.position = output.ids.size();
    for_request(row.request, [&] {
      result[i] = request.proposers[row.output]->propose({request.asked.prompt, output.ids}, most, draw);
    });
    output.n_proposed += std::ssize(result[i].tokens);
    is_any = is_any || !result[i].tokens.empty();
  }
  return is_any ? std::move(result) : std::vector<Proposal>();
}

/// Every row reads its newest token and those that are proposed for it, and takes back those that are
/// refused.
void Scheduler::check_proposals(const std::vector<Proposal>& proposals) {
  const auto n_rows = std::ssize(rows_);
  std::vector<int64_t> lengths, places, kept = state_.lengths();
  for (const auto& proposal : proposals) lengths.push_back(1 + std::ssize(proposal.tokens));
  const int64_t longest = *std::ranges::max_element(lengths);
  std::vector<int64_t> ids(static_cast<size_t>(n_rows * longest));
  for (int64_t b = 0; b < n_rows; ++b) {
    const auto& row = rows_[static_cast<size_t>(b)];
    auto* const to = ids.data() + b * longest;
    *to = output_of(row).ids.back();
    std::ranges::copy(proposals[static_cast<size_t>(b)].tokens, to + 1);
    for (int64_t t = 0; t < lengths[static_cast<size_t>(b)]; ++t) places.push_back(b * longest + t);
  }
  const bool differ = std::ranges::min(lengths) < longest;
  const TokenBatch batch{.ids = indices(ids, device_).view({n_rows, longest}),
                         .lengths = differ ? indices(lengths, device_) : torch::Tensor()};
  const auto logits =
      model_.forward(batch, state_, LogitsAt::positions(indices(places, device_))).to(torch::kFloat32);

  int64_t first = 0;
  for (size_t b = 0; b < rows_.size(); ++b) {
    auto& row = rows_[b];
    const int64_t before = row.n_seen;
    const auto own = logits.narrow(0, first, lengths[b]);
    first += lengths[b];
    for_request(row.request, [&] { add_accepted(row, proposals[b], own); });
    kept[b] += row.n_seen - before;
  }
  state_.truncate(kept);
}

/// Adds the accepted tokens of a proposal to its row, and one more.
void Scheduler::add_accepted(Row& row, const Proposal& proposal, const torch::Tensor& logits) {
  const auto tokens = checked(row, proposal, logits);
  const auto logprobs = log_probabilities(logits.narrow(0, 0, std::ssize(tokens)), tokens);
  size_t n_added = 0;
  while (n_added < tokens.size() && !output_of(row).end) {
    add_token(row, tokens[n_added], logprobs[n_added], logits.narrow(0, static_cast<int64_t>(n_added), 1));
    ++n_added;
  }
  output_of(row).n_accepted += static_cast<int64_t>(std::min(n_added, tokens.size() - 1));
}

/// The accepted tokens of a proposal, and one more. logits: after the newest token and after each proposed
/// one.
std::vector<int64_t> Scheduler::checked(const Row& row, const Proposal& proposal,
                                        const torch::Tensor& logits) const {
  const auto& request = requests_.at(row.request);
  auto text = request.outputs[row.output].ids;
  const size_t size = text.size();
  text.insert(text.end(), proposal.tokens.begin(), proposal.tokens.end());
  std::vector<SequenceView> views;
  std::vector<Draw> draws;
  for (size_t n = size; n <= text.size(); ++n) {
    views.push_back({request.asked.prompt, std::span(text).first(n)});
    draws.push_back(request.asked.draws[row.output]);
    draws.back().position = n;
  }
  const auto& rules = *request.asked.rules;
  return rules.sampler->check(proposal, process(rules.processors, logits, views), draws);
}

void Scheduler::add_token(Row& row, int64_t token, double logprob, const torch::Tensor& logits) {
  auto& request = requests_.at(row.request);
  auto& output = request.outputs[row.output];
  output.append(token, logprob);
  if (const int64_t n = request.asked.n_likeliest; n > 0)
    output.likeliest.push_back(std::move(likeliest_tokens(logits, n).front()));
  ++row.n_seen;
  auto* const text = request.decoders.empty() ? nullptr : &request.decoders[row.output];
  output.end = request.asked.limits.end_of(request.asked.prompt, output.ids, text);
}

void Scheduler::read_prompts() {
  for (int64_t n_done = 0; n_done < options_.prompt_piece;) {
    if (const int64_t n = read_together(); n > 0) {
      n_done += n;
      continue;
    }
    if (!begin_next()) return;
    if (!reading_->prompt->is_read())
      for_request(reading_->request, [&] { n_done += reading_->prompt->read(); });
    if (!reading_ || !reading_->prompt->is_read()) continue;
    std::list<Waiting> read;
    read.push_back(std::move(*reading_));
    reading_.reset();
    n_done += start_rows(std::move(read));
  }
}

/// Reads prompts that nobody has begun to read in one call, as long as there is room for their outputs.
/// Returns the number of their tokens, or 0 if the next prompt has to be read alone.
int64_t Scheduler::read_together() {
  if (!reads_together_) return 0;
  std::vector<PromptReading*> prompts;
  int64_t longest = 0;
  while (begin_next()) {
    auto& prompt = *reading_->prompt;
    longest = std::max(longest, prompt.size());
    if (!prompt.is_untouched() || (std::ssize(together_) + 1) * longest > kMostPromptTokens) break;
    together_.push_back(std::move(*reading_));
    reading_.reset();
    prompts.push_back(&*together_.back().prompt);
  }
  if (prompts.empty()) return 0;
  try {
    PromptReading::read_together(prompts);
  } catch (...) {
    for (const auto& waiting : std::exchange(together_, {}))
      give_up(waiting.request, std::current_exception());
    return options_.prompt_piece;
  }
  start_rows(std::exchange(together_, {}));
  return std::ssize(prompts) * longest;
}

Scheduler::Places Scheduler::places() const {
  Places result{.are_shared = options_.shared_rows && are_rows_shared()};
  const auto add = [&](size_t request) {
    const std::string_view client = requests_.at(request).asked.client;
    ++result.all;
    ++result.of_client[client];
    if (++result.of_request[request] == 1) ++result.requests_of_client[client];
  };
  for (const auto& row : rows_) add(row.request);
  for (const auto& waiting : outgrown_) add(waiting.request);
  for (const auto& waiting : together_) {
    for (size_t i = 0; i < waiting.outputs.size(); ++i) add(waiting.request);
  }
  if (reading_ && reading_->left_at) add(reading_->request);
  for (const auto& paused : paused_) ++result.of_request[paused.row.request];
  return result;
}

/// How many more outputs of a request may be begun. Those of others pause for its share.
int64_t Scheduler::room_for(size_t request, const Places& places) const {
  const auto count = [](const auto& counts, const auto& key) {
    const auto found = counts.find(key);
    return found == counts.end() ? 0 : found->second;
  };
  const int64_t all = options_.most_rows, own = count(places.of_request, request);
  const std::string_view client = requests_.at(request).asked.client;
  const int64_t of_client = client.empty() ? all : options_.most_of_client.value_or(all);
  const int64_t of_request = options_.most_of_request.value_or(all) - own;
  const int64_t of_both = std::min(of_request, of_client - count(places.of_client, client));
  if (!places.are_shared) return std::min(all - places.all, of_both);

  const int64_t n_requests = std::ssize(places.of_request) + (own == 0 ? 1 : 0);
  if (own == 0 && n_requests <= all && count(places.requests_of_client, client) < of_client) return 1;
  const int64_t shared = std::min(all, *options_.shared_rows);
  return std::min(std::max(shared - places.all, shared / n_requests - own), of_both);
}

/// Sets what is read next, or whose outputs are begun next. Returns false if nothing waits, or if there is no
/// room.
bool Scheduler::begin_next() {
  std::list<Waiting>* from = nullptr;
  std::list<Waiting>::iterator next;
  const auto priority = [&](const Waiting& waiting) { return requests_.at(waiting.request).asked.priority; };
  const auto outgrown = std::ranges::min_element(outgrown_, {}, [&](const Waiting& waiting) {
    return std::tuple(*waiting.left_at >= n_steps_, priority(waiting));
  });
  if (outgrown != outgrown_.end() && *outgrown->left_at < n_steps_) {
    if (reading_ && reading_->left_at) return true;
    if (reading_) {
      waiting_.push_front(std::move(*reading_));
      reading_.reset();
    }
    from = &outgrown_;
    next = outgrown;
  } else if (reading_) {
    return true;
  } else {
    auto places = this->places();
    const auto rank = [&](const Waiting& waiting) {
      const auto& asked = requests_.at(waiting.request).asked;
      return std::tuple(priority(waiting), places.of_client[asked.client], waiting.request);
    };
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      if (room_for(it->request, places) < 1 || (from && rank(*next) <= rank(*it))) continue;
      from = &waiting_;
      next = it;
    }
  }
  if (!from) return false;
  reading_.emplace(std::move(*next));
  from->erase(next);
  if (!reading_->prompt) {
    reading_->prompt.emplace(model_, device_, prefixes_, reading_->tokens,
                             requests_.at(reading_->request).asked.fields, options_.prompt_piece);
  }
  return true;
}

/// Starts as many outputs of prompts that are read as there is room for. Returns how many.
int64_t Scheduler::start_rows(std::list<Waiting> read) {
  // Outputs with proposed tokens come first: those that come to them are not on the device either.
  read.sort([&](const Waiting& a, const Waiting& b) { return proposes(a.request) && !proposes(b.request); });
  for (const auto& waiting : read) leave_device_for(waiting.request);
  const size_t first = rows_.size();
  std::vector<torch::Tensor> logits;
  for (auto& waiting : read) {
    if (auto own = begin_rows(std::move(waiting)); own.defined()) logits.push_back(std::move(own));
  }
  if (logits.empty()) return 0;
  const auto n = static_cast<int64_t>(rows_.size() - first);
  add_tokens(logits.size() == 1 ? logits.front() : torch::cat(logits), rows_from(first));
  let_rows_leave();
  return n;
}

/// Begins the outputs of a prompt: the logits of their first tokens, (n, V), undefined if there is no room.
torch::Tensor Scheduler::begin_rows(Waiting waiting) {
  const size_t request = waiting.request;
  const int64_t room = waiting.left_at ? 1 : room_for(request, places());
  const auto n = std::min(std::ssize(waiting.outputs), room);
  if (n < 1) {
    waiting_.push_back(std::move(waiting));
    return {};
  }
  for (const size_t output : std::span(waiting.outputs).first(static_cast<size_t>(n)))
    rows_.push_back({.request = request, .output = output, .n_seen = std::ssize(waiting.tokens)});
  waiting.outputs.erase(waiting.outputs.begin(), waiting.outputs.begin() + n);
  auto& prompt = *waiting.prompt;
  TORCH_CHECK(!requests_.at(request).asked.make_proposer || prompt.state().keeps_every_token(),
              "proposed tokens need a model that keeps every token");
  auto logits = prompt.logits().expand({n, -1});
  n_outputs_ = logits.size(1);
  auto state = waiting.outputs.empty() ? std::move(prompt.state()) : prompt.state().copy();
  if (!waiting.outputs.empty()) waiting_.push_back(std::move(waiting));
  state.reorder(std::vector<int64_t>(static_cast<size_t>(n), 0));
  join_rows(std::move(state), request);
  return logits;
}

/// Adds a token to each of some rows. logits: of these rows, (n, V) float32.
void Scheduler::add_tokens(const torch::Tensor& logits, const std::vector<size_t>& rows) {
  const auto chosen = choose(logits, rows);
  std::vector<int64_t> tokens;
  for (const auto& token : chosen) tokens.push_back(token.value_or(0));
  const auto logprobs = log_probabilities(logits, tokens);
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    for_request(rows_[rows[i]].request, [&] {
      add_token(rows_[rows[i]], tokens[i], logprobs[i], logits.narrow(0, static_cast<int64_t>(i), 1));
    });
  }
}

/// The next token of each of some rows; nothing for a row whose request has been given up. Rows with the same
/// rules are looked at together, and one by one if that fails.
std::vector<std::optional<int64_t>> Scheduler::choose(const torch::Tensor& logits,
                                                      const std::vector<size_t>& rows) {
  std::map<const TokenRules*, std::vector<int64_t>> groups;
  for (size_t i = 0; i < rows.size(); ++i)
    groups[requests_.at(rows_[rows[i]].request).asked.rules.get()].push_back(static_cast<int64_t>(i));
  std::vector<std::optional<int64_t>> tokens(rows.size());
  const auto choose_for = [&](const std::vector<int64_t>& members) {
    const auto chosen = choose_together(logits, rows, members);
    for (size_t i = 0; i < members.size(); ++i) tokens[static_cast<size_t>(members[i])] = chosen[i];
  };
  for (const auto& [rules, members] : groups) {
    try {
      choose_for(members);
    } catch (...) {
      for (const int64_t i : members)
        for_request(rows_[rows[static_cast<size_t>(i)]].request, [&] { choose_for({i}); });
    }
  }
  return tokens;
}

/// The next tokens of rows with the same rules; members: their places among `rows`.
std::vector<int64_t> Scheduler::choose_together(const torch::Tensor& logits, const std::vector<size_t>& rows,
                                                const std::vector<int64_t>& members) const {
  std::vector<SequenceView> views;
  std::vector<Draw> draws;
  for (const int64_t i : members) {
    const auto& row = rows_[rows[static_cast<size_t>(i)]];
    const auto& request = requests_.at(row.request);
    const auto& ids = request.outputs[row.output].ids;
    views.push_back({request.asked.prompt, ids});
    draws.push_back(request.asked.draws[row.output]);
    draws.back().position = ids.size();
  }
  const auto& rules = *requests_.at(rows_[rows[static_cast<size_t>(members.front())]].request).asked.rules;
  const auto some = std::ssize(members) == logits.size(0)
                        ? logits
                        : logits.index_select(0, indices(members, logits.device()));
  return rules.sampler->sample(process(rules.processors, some, views), draws);
}

/// Rows leave that have ended or outgrow the model, and those of requests that were given up.
void Scheduler::let_rows_leave() {
  std::vector<int64_t> kept;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const auto& row = rows_[i];
    if (requests_.at(row.request).problem) continue;
    if (output_of(row).end) {
      --requests_.at(row.request).n_unfinished;
    } else if (model_.continues_prompt() && row.n_seen > model_.max_length()) {
      outgrown_.push_back(
          {.request = row.request, .outputs = {row.output}, .tokens = end_of_text(row), .left_at = n_steps_});
    } else {
      kept.push_back(static_cast<int64_t>(i));
    }
  }
  keep_rows(kept);
}

void Scheduler::keep_rows(const std::vector<int64_t>& kept) {
  if (kept.size() == rows_.size()) return;
  std::vector<Row> rows;
  for (const int64_t i : kept) rows.push_back(rows_[static_cast<size_t>(i)]);
  if (is_on_device()) {
    rows_ = std::move(rows);
    on_device_->keep(kept);
    if (rows_.empty()) read_all_chosen();
    return;
  }
  rows_ = std::move(rows);
  if (rows_.empty()) {
    state_ = DecodingState();
  } else {
    state_.reorder(kept);
  }
}

/// The tokens from which a row that outgrows the model goes on.
TokenIds Scheduler::end_of_text(const Row& row) const {
  const auto& request = requests_.at(row.request);
  auto text = request.asked.prompt;
  const auto& ids = request.outputs[row.output].ids;
  text.insert(text.end(), ids.begin(), ids.end());
  shorten(text, model_.max_length());
  return text;
}

}  // namespace zoo
