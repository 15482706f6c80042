#include "serving/model_worker.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/device.h"
#include "base/error.h"
#include "base/stopwatch.h"
#include "base/tensor_memory.h"
#include "generation/text_scores.h"
#include "models/inference_scope.h"
#include "serving/service_error.h"

namespace zoo {
namespace {

/// Ends the process if the device has failed. A GPU that has failed computes nothing any more in the same
/// process, so whoever started the server has to start it again.
void require_device(torch::Device device) {
  try {
    synchronize(device);
  } catch (const c10::Error& error) {
    const std::string_view problem = error.what_without_backtrace();
    std::cerr << fmt::format("zoo: {} has failed ({}): the server ends; start it again\n", device.str(),
                             problem.substr(0, problem.find('\n')))
              << std::flush;
    std::_Exit(EXIT_FAILURE);
  }
}

ServiceError stopping_error() {
  return {ServiceProblem::stopping, "the server is shutting down: ask again when it is back"};
}

std::exception_ptr as_pointer(const ServiceError& error) { return std::make_exception_ptr(error); }

/// The next tokens of an output, without one that ends it.
std::vector<CompletionToken> tokens_from(const Hypothesis& output, size_t first) {
  const size_t n = output.ids.size() - (output.end == OutputEnd::end_token ? 1 : 0);
  std::vector<CompletionToken> result;
  for (size_t i = first; i < n; ++i) {
    result.push_back({.id = output.ids[i], .logprob = output.logprobs[i]});
    if (i < output.likeliest.size()) result.back().likeliest = output.likeliest[i];
  }
  return result;
}

}  // namespace

ModelWorker::ModelWorker(std::shared_ptr<const ServedModel> model, std::shared_ptr<ComputeThread> thread,
                         const WorkerLimits& limits)
    : model_(std::move(model)), limits_(limits), thread_(std::move(thread)) {
  make_scheduler();
  thread_->add(*this);
}

ModelWorker::~ModelWorker() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  thread_->remove(*this);
  end_all(as_pointer(stopping_error()));
}

void ModelWorker::make_scheduler() {
  if (!model_->generator()) return;
  scheduler_.emplace(*model_->model().generative(), model_->model().device(),
                     SchedulerOptions{.most_rows = limits_.most_rows,
                                      .prefix_bytes = limits_.prefix_bytes,
                                      .most_of_request = std::max<int64_t>(1, limits_.most_rows / 2),
                                      .most_of_client = share_of_client(limits_.most_rows),
                                      .shared_rows = model_->model().device().is_cpu() ? kSharedRowsOnCpu
                                                                                       : limits_.most_rows});
}

/// The error of what is done on the model; null: it has none.
template <class Work>
std::exception_ptr ModelWorker::problem_of(const Work& work) const {
  try {
    work();
    return nullptr;
  } catch (...) {
    require_device(model_->model().device());
    return std::current_exception();
  }
}

// ---- from any thread

std::vector<ModelWorker::Part> ModelWorker::parts_of(const CompletionRequest& request) const {
  const auto& generator = *model_->generator();
  std::vector<Part> parts;
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    const auto* const text = std::get_if<std::string>(&request.prompts[i]);
    const auto prompt = text ? generator.encode(*text) : std::get<TokenIds>(request.prompts[i]);
    auto options = request.options;
    const bool only_reads = options.max_new_tokens == 0;
    if (only_reads) options.max_new_tokens = 1;
    Part part{.prompt = i, .asked = generator.request(prompt, options, i, request.parts)};
    if (only_reads) part.asked.limits.max_new_tokens = 0;
    part.asked.n_likeliest = request.n_likeliest;
    part.asked.logprobs = request.logprobs;
    part.asked.priority = request.priority;
    part.asked.client = request.client;
    for (int64_t s = 0; s < options.num_samples; ++s)
      part.outputs.push_back({.decoder = generator.decoder(prompt, options, request.parts.shown)});
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Throws ServiceError if they are not there.
void ModelWorker::take_places(const Running& running) {
  const std::scoped_lock lock(mutex_);
  if (stops_) throw stopping_error();
  const int64_t n = running.n_outputs, most = limits_.most_outputs;
  if (n > most) {
    throw UsageError(
        fmt::format("the request asks for {} outputs, and this server writes {} at once", n, most));
  }
  const auto& client = running.request.client;
  const auto found = places_.find(client);
  const int64_t own = found == places_.end() ? 0 : found->second;
  const bool is_too_much = !client.empty() && own > 0 && own + n > share_of_client(most);
  if (is_too_much || counts_.waiting_or_running + n > most) {
    ++counts_.refused;
    throw ServiceError(
        ServiceProblem::busy,
        fmt::format(
            "{} outputs are under way or wait, {} of this client, and at most {} may: ask again later",
            counts_.waiting_or_running, own, most));
  }
  places_[client] += n;
  counts_.waiting_or_running += n;
}

std::shared_ptr<Cancellation> ModelWorker::complete(CompletionRequest request, CompletionListener listener) {
  model_->require(Ability::completions);
  request.options.beam = 1;
  auto running = std::make_shared<Running>();
  running->n_outputs = std::ssize(request.prompts) * request.options.num_samples;
  running->deadline = Clock::now() + limits_.most_time;
  running->cancellation = std::make_shared<Cancellation>();
  running->listener = std::move(listener);
  running->request = std::move(request);
  take_places(*running);
  if (const auto problem = problem_of([&] { running->parts = parts_of(running->request); })) {
    leave(*running);
    std::rethrow_exception(problem);
  }
  {
    const std::scoped_lock lock(mutex_);
    ++counts_.requests;
    arrived_.push_back(running);
  }
  thread_->wake();
  return running->cancellation;
}

std::shared_ptr<Cancellation> ModelWorker::post(Job job, const std::string& client) {
  auto cancellation = std::make_shared<Cancellation>();
  {
    const std::scoped_lock lock(mutex_);
    if (stops_) throw stopping_error();
    const auto own = std::ranges::count(jobs_, client, &Posted::client);
    const bool is_too_much = !client.empty() && own >= share_of_client(limits_.most_jobs);
    if (is_too_much || std::ssize(jobs_) >= limits_.most_jobs) {
      ++counts_.refused;
      throw ServiceError(ServiceProblem::busy,
                         fmt::format("{} requests wait, {} of this client, and no more may: ask again later",
                                     jobs_.size(), own));
    }
    ++counts_.requests;
    jobs_.push_back({.job = std::move(job), .cancellation = cancellation, .client = client});
  }
  thread_->wake();
  return cancellation;
}

WorkerCounts ModelWorker::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

bool ModelWorker::is_idle() const {
  const std::scoped_lock lock(mutex_);
  return counts_.waiting_or_running == 0 && jobs_.empty() && !is_working_;
}

// ---- on the compute thread

bool ModelWorker::has_work() {
  const std::scoped_lock lock(mutex_);
  return !stops_ && (!running_.empty() || !arrived_.empty() || !jobs_.empty());
}

void ModelWorker::do_part() {
  const InferenceScope scope(model_->model());
  {
    const std::scoped_lock lock(mutex_);
    is_working_ = true;
  }
  const auto problem = problem_of([&] {
    begin_arrived();
    begin_parts();
    if (running_.empty() || seconds_for_texts_ <= 0) do_next_job();
    if (!running_.empty()) step();
  });
  if (problem) {
    // The scheduler may have stopped in the middle of a step.
    make_scheduler();
    end_all(problem);
    free_cached_memory(model_->model().device());
  }
  const std::scoped_lock lock(mutex_);
  is_working_ = false;
}

void ModelWorker::begin_arrived() {
  const std::scoped_lock lock(mutex_);
  for (auto& running : arrived_) running_.push_back(std::move(running));
  arrived_.clear();
}

/// Begins prompts until some tokens were scored for echoes.
void ModelWorker::begin_parts() {
  int64_t n_scored = 0;
  for (auto it = running_.begin(); it != running_.end();) {
    auto& running = **it;
    const auto problem = problem_of([&] {
      for (auto& part : running.parts) {
        if (part.state != PartState::waiting || n_scored >= kTokensAtOnce) continue;
        if (running.request.echo == PromptEcho::text_and_logprobs) n_scored += std::ssize(part.asked.prompt);
        begin(running, part);
      }
    });
    if (problem) end(running, problem);
    it = problem ? running_.erase(it) : std::next(it);
  }
}

/// Of another client than the last one, if there is one; nothing if there is none.
std::optional<ModelWorker::Posted> ModelWorker::next_job() {
  const std::scoped_lock lock(mutex_);
  if (jobs_.empty()) return std::nullopt;
  auto next = std::ranges::find_if(jobs_, [&](const Posted& job) { return job.client != last_client_; });
  if (next == jobs_.end()) next = jobs_.begin();
  auto result = std::move(*next);
  jobs_.erase(next);
  last_client_ = result.client;
  return result;
}

void ModelWorker::do_next_job() {
  auto next = next_job();
  if (!next || next->cancellation->requested()) return;
  auto state = JobState::is_done;
  const Stopwatch watch;
  if (const auto problem = problem_of([&] { state = next->job(nullptr); })) next->job(problem);
  constexpr double times_for_texts = 3;
  seconds_for_texts_ = times_for_texts * watch.seconds();
  if (state == JobState::is_done) return;
  const std::scoped_lock lock(mutex_);
  jobs_.push_back(std::move(*next));
}

void ModelWorker::begin(Running& running, Part& part) {
  running.usage.prompt_tokens += std::ssize(part.asked.prompt);
  if (running.request.echo != PromptEcho::none) echo(running, part);
  part.number = scheduler_->submit(std::move(part.asked));
  part.state = PartState::submitted;
}

void ModelWorker::echo(Running& running, Part& part) {
  const auto& ids = part.asked.prompt;
  CompletionPiece piece{.prompt = part.prompt, .is_echo = true};
  if (part.asked.limits.max_new_tokens == 0) piece.end = OutputEnd::length;
  piece.text = model_->tokenizer().decode(ids);
  for (const int64_t id : ids) piece.tokens.push_back({.id = id});
  if (running.request.echo == PromptEcho::text_and_logprobs && ids.size() > 1) {
    const TokensToScore text{.prompt = {ids.front()}, .ids = {ids.begin() + 1, ids.end()}};
    auto scored = scored_tokens(model_->model(), {text}, running.request.n_likeliest);
    for (size_t i = 0; i < scored[0].size(); ++i) {
      piece.tokens[i + 1].logprob = scored[0][i].logprob;
      piece.tokens[i + 1].likeliest = std::move(scored[0][i].likeliest);
    }
  }
  for (size_t sample = 0; sample < part.outputs.size(); ++sample) {
    auto copy = piece;
    copy.sample = sample;
    part.outputs[sample].has_ended = piece.end.has_value();
    running.listener.on_piece(std::move(copy));
  }
}

void ModelWorker::step() {
  const Stopwatch watch;
  scheduler_->step();
  seconds_for_texts_ -= watch.seconds();
  {
    const std::scoped_lock lock(mutex_);
    ++counts_.steps;
  }
  for (auto it = running_.begin(); it != running_.end();) {
    auto& running = **it;
    bool is_over = true;
    if (const auto problem = problem_of([&] { is_over = deliver(running); })) {
      is_over = true;
      end(running, problem);
    }
    it = is_over ? running_.erase(it) : std::next(it);
  }
}

/// Sends what is new. Returns whether the request is over.
bool ModelWorker::deliver(Running& running) {
  if (running.cancellation->requested()) {
    leave(running);
    const std::scoped_lock lock(mutex_);
    ++counts_.cancelled;
    return true;
  }
  const bool is_late = Clock::now() >= running.deadline;
  bool is_over = true;
  for (auto& part : running.parts) {
    const bool is_submitted = part.state == PartState::submitted;
    if (is_submitted) scheduler_->require(part.number);
    std::optional<OutputEnd> forced;
    if (is_submitted && scheduler_->is_finished(part.number)) {
      forced = OutputEnd::length;  // of an output without a token
    } else if (is_late) {
      forced = OutputEnd::time;
    }
    for (size_t sample = 0; sample < part.outputs.size(); ++sample) send(running, part, sample, forced);
    if (forced && is_submitted) scheduler_->take(part.number);
    if (forced) part.state = PartState::finished;
    is_over = is_over && part.state == PartState::finished;
  }
  if (is_over) end(running, nullptr);
  return is_over;
}

/// Sends the new tokens of an output. forced: how it ends now if it does not end by itself.
void ModelWorker::send(Running& running, Part& part, size_t sample, std::optional<OutputEnd> forced) {
  auto& writing = part.outputs[sample];
  if (writing.has_ended) return;
  CompletionPiece piece{.prompt = part.prompt, .sample = sample, .end = forced};
  if (part.state == PartState::submitted) {
    const auto& output = scheduler_->outputs(part.number)[sample];
    piece.tokens = tokens_from(output, writing.n_sent);
    for (const auto& token : piece.tokens) piece.text += writing.decoder.push(token.id);
    running.usage.output_tokens += std::ssize(output.ids) - static_cast<int64_t>(writing.n_sent);
    writing.n_sent = output.ids.size();
    if (output.end) piece.end = output.end;
  }
  if (piece.end) {
    writing.has_ended = true;
    piece.text += writing.decoder.finish();
  }
  if (piece.tokens.empty() && piece.text.empty() && !piece.end) return;
  running.listener.on_piece(std::move(piece));
}

/// Frees the places of a request.
void ModelWorker::leave(Running& running) {
  for (auto& part : running.parts) {
    if (part.state == PartState::submitted) scheduler_->take(part.number);
    part.state = PartState::finished;
  }
  const std::scoped_lock lock(mutex_);
  const int64_t n = std::exchange(running.n_outputs, 0);
  counts_.waiting_or_running -= n;
  const auto own = places_.find(running.request.client);
  if (own != places_.end() && (own->second -= n) == 0) places_.erase(own);
  counts_.prompt_tokens += running.usage.prompt_tokens;
  counts_.output_tokens += running.usage.output_tokens;
}

void ModelWorker::end(Running& running, const std::exception_ptr& problem) {
  leave(running);
  if (problem) {
    const std::scoped_lock lock(mutex_);
    ++counts_.failed;
  }
  if (running.cancellation->requested()) return;
  try {
    problem ? running.listener.on_error(problem) : running.listener.on_end(running.usage);
  } catch (...) {
    // Nobody is left who could hear of it.
  }
}

/// Ends everything. The scheduler, if it is new, does not know what was under way.
void ModelWorker::end_all(const std::exception_ptr& problem) {
  for (auto& running : std::exchange(running_, {})) {
    for (auto& part : running->parts) part.state = PartState::finished;
    end(*running, problem);
  }
  std::deque<std::shared_ptr<Running>> arrived;
  std::deque<Posted> jobs;
  {
    const std::scoped_lock lock(mutex_);
    if (!stops_) return;
    arrived.swap(arrived_);
    jobs.swap(jobs_);
  }
  for (auto& running : arrived) end(*running, problem);
  for (auto& posted : jobs) posted.job(problem);
}

}  // namespace zoo
