#include "serving/model_worker.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/device.h"
#include "base/error.h"
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

/// The next tokens of an output.
std::vector<CompletionToken> tokens_from(const Hypothesis& output, size_t first) {
  std::vector<CompletionToken> result;
  for (size_t i = first; i < output.ids.size(); ++i) {
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
                     SchedulerOptions{.most_rows = limits_.most_rows, .prefix_bytes = limits_.prefix_bytes});
}

// ---- from any thread

std::vector<ModelWorker::Part> ModelWorker::parts_of(const CompletionRequest& request) const {
  const auto& generator = *model_->generator();
  std::vector<Part> parts;
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    Part part{.prompt = i};
    part.asked = generator.request(request.prompts[i], request.options,
                                   {.prompt = i,
                                    .n_likeliest = request.n_likeliest,
                                    .biased_tokens = request.biased_tokens,
                                    .biases = request.biases});
    part.asked.priority = request.priority;
    part.ids = part.asked.prompt;
    for (int64_t s = 0; s < request.options.num_samples; ++s)
      part.outputs.push_back({.decoder = generator.decoder(request.prompts[i], request.options)});
    parts.push_back(std::move(part));
  }
  return parts;
}

std::shared_ptr<Cancellation> ModelWorker::complete(CompletionRequest request, CompletionListener listener) {
  model_->require(Ability::completions);
  request.options.beam = 1;
  request.options.max_new_tokens = std::max<int64_t>(request.max_tokens, 1);
  auto running = std::make_shared<Running>();
  running->n_outputs = std::ssize(request.prompts) * request.options.num_samples;
  running->deadline = Clock::now() + limits_.most_time;
  running->cancellation = std::make_shared<Cancellation>();
  running->listener = std::move(listener);
  {
    const std::scoped_lock lock(mutex_);
    if (stops_) throw stopping_error();
    if (running->n_outputs > limits_.most_outputs) {
      throw UsageError(fmt::format("the request asks for {} outputs, and this server writes {} at once",
                                   running->n_outputs, limits_.most_outputs));
    }
    if (counts_.waiting_or_running + running->n_outputs > limits_.most_outputs) {
      ++counts_.refused;
      throw ServiceError(ServiceProblem::busy,
                         fmt::format("{} outputs are under way or wait, and at most {} may: ask again later",
                                     counts_.waiting_or_running, limits_.most_outputs));
    }
    counts_.waiting_or_running += running->n_outputs;
  }
  try {
    running->parts = parts_of(request);
  } catch (...) {
    require_device(model_->model().device());
    const std::scoped_lock lock(mutex_);
    counts_.waiting_or_running -= running->n_outputs;
    throw;
  }
  running->request = std::move(request);
  {
    const std::scoped_lock lock(mutex_);
    ++counts_.requests;
    arrived_.push_back(running);
  }
  thread_->wake();
  return running->cancellation;
}

std::shared_ptr<Cancellation> ModelWorker::post(Job job) {
  auto cancellation = std::make_shared<Cancellation>();
  {
    const std::scoped_lock lock(mutex_);
    if (stops_) throw stopping_error();
    if (std::ssize(jobs_) >= limits_.most_jobs) {
      ++counts_.refused;
      throw ServiceError(ServiceProblem::busy,
                         fmt::format("{} requests wait, and no more may: ask again later", jobs_.size()));
    }
    ++counts_.requests;
    jobs_.push_back({.job = std::move(job), .cancellation = cancellation});
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
  try {
    begin_arrived();
    do_next_job();
    if (!running_.empty()) step();
  } catch (...) {
    // The scheduler may have stopped in the middle of a step.
    const auto problem = std::current_exception();
    require_device(model_->model().device());
    make_scheduler();
    end_all(problem);
    free_cached_memory(model_->model().device());
  }
  const std::scoped_lock lock(mutex_);
  is_working_ = false;
}

void ModelWorker::begin_arrived() {
  for (;;) {
    std::shared_ptr<Running> next;
    {
      const std::scoped_lock lock(mutex_);
      if (arrived_.empty()) return;
      next = std::move(arrived_.front());
      arrived_.pop_front();
    }
    running_.push_back(std::move(next));
    auto& running = *running_.back();
    try {
      begin(running);
    } catch (...) {
      require_device(model_->model().device());
      end(running, std::current_exception());
      running_.pop_back();
    }
  }
}

void ModelWorker::do_next_job() {
  Posted next;
  {
    const std::scoped_lock lock(mutex_);
    if (jobs_.empty()) return;
    next = std::move(jobs_.front());
    jobs_.pop_front();
  }
  if (next.cancellation->requested()) return;
  auto state = JobState::is_done;
  try {
    state = next.job(nullptr);
  } catch (...) {
    require_device(model_->model().device());
    next.job(std::current_exception());
  }
  if (state == JobState::is_done) return;
  const std::scoped_lock lock(mutex_);
  jobs_.push_back(std::move(next));
}

void ModelWorker::begin(Running& running) {
  for (auto& part : running.parts) {
    running.usage.prompt_tokens += std::ssize(part.ids);
    if (running.request.echo != PromptEcho::none) echo(running, part);
    if (running.request.max_tokens == 0) part.asked.limits.max_new_tokens = 0;
    auto asked = part.asked;
    part.number = scheduler_->submit(std::move(asked));
    part.is_submitted = true;
  }
}

void ModelWorker::echo(Running& running, Part& part) {
  CompletionPiece piece{.prompt = part.prompt, .is_echo = true};
  if (running.request.max_tokens == 0) piece.end = CompletionEnd::length;
  piece.text = model_->tokenizer().decode(part.ids);
  for (const int64_t id : part.ids) piece.tokens.push_back({.id = id});
  if (running.request.echo == PromptEcho::text_and_logprobs && part.ids.size() > 1) {
    const TokensToScore text{.prompt = {part.ids.front()}, .ids = {part.ids.begin() + 1, part.ids.end()}};
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
  scheduler_->step();
  {
    const std::scoped_lock lock(mutex_);
    ++counts_.steps;
  }
  for (auto it = running_.begin(); it != running_.end();) {
    auto& running = **it;
    bool is_over = true;
    try {
      is_over = deliver(running);
    } catch (...) {
      end(running, std::current_exception());
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
    if (part.is_finished) continue;
    if (scheduler_->problem(part.number)) require_device(model_->model().device());
    scheduler_->require(part.number);
    part.is_finished = is_late || scheduler_->is_finished(part.number);
    std::optional<CompletionEnd> forced;
    if (part.is_finished)
      forced = is_late && !scheduler_->is_finished(part.number) ? CompletionEnd::time : CompletionEnd::length;
    for (size_t sample = 0; sample < part.outputs.size(); ++sample) send(running, part, sample, forced);
    if (part.is_finished) scheduler_->take(part.number);
    is_over = is_over && part.is_finished;
  }
  if (is_over) end(running, nullptr);
  return is_over;
}

/// Sends the new tokens of an output. forced: how it ends now if it does not end by itself.
void ModelWorker::send(Running& running, Part& part, size_t sample, std::optional<CompletionEnd> forced) {
  auto& writing = part.outputs[sample];
  if (writing.has_ended) return;
  const auto& output = scheduler_->outputs(part.number)[sample];
  CompletionPiece piece{.prompt = part.prompt, .sample = sample};
  piece.tokens = tokens_from(output, writing.n_sent);
  for (const auto& token : piece.tokens) piece.text += writing.decoder.push(token.id);
  running.usage.output_tokens += std::ssize(piece.tokens);
  writing.n_sent = output.ids.size();
  piece.end = end_of(part, writing, output.ids);
  if (!piece.end) piece.end = forced;
  if (piece.end) {
    writing.has_ended = true;
    piece.text += writing.decoder.finish();
  }
  std::erase_if(piece.tokens,
                [&](const CompletionToken& token) { return part.asked.limits.is_end(token.id); });
  if (piece.tokens.empty() && piece.text.empty() && !piece.end) return;
  running.listener.on_piece(std::move(piece));
}

/// How an output ends that has ended by itself.
std::optional<CompletionEnd> ModelWorker::end_of(const Part& part, const Writing& writing,
                                                 const TokenIds& ids) const {
  const auto& limits = part.asked.limits;
  if (writing.decoder.stopped()) return CompletionEnd::stop;
  if (ids.empty()) return std::nullopt;
  if (limits.ends_with(part.ids, ids)) return CompletionEnd::stop;
  if (std::ssize(ids) >= limits.max_new_tokens) return CompletionEnd::length;
  return std::nullopt;
}

/// Frees the places of a request.
void ModelWorker::leave(Running& running) {
  for (auto& part : running.parts) {
    if (part.is_submitted && !part.is_finished && scheduler_) scheduler_->take(part.number);
    part.is_finished = true;
  }
  const std::scoped_lock lock(mutex_);
  counts_.waiting_or_running -= std::exchange(running.n_outputs, 0);
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
    for (auto& part : running->parts) part.is_finished = true;
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
