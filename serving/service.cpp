#include "serving/service.h"

#include <algorithm>
#include <future>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "serving/service_error.h"

namespace zoo {
namespace {

/// Collects the pieces of a request.
class Collector {
 public:
  Collector(size_t n_prompts, size_t n_samples, PromptEcho echo) : n_samples_(n_samples) {
    result_.outputs.resize(n_prompts * n_samples);
    if (echo != PromptEcho::none) result_.echoes.resize(n_prompts * n_samples);
  }

  void add(CompletionPiece piece) {
    auto& list = piece.is_echo ? result_.echoes : result_.outputs;
    auto& output = list.at(piece.prompt * n_samples_ + piece.sample);
    output.text += piece.text;
    for (auto& token : piece.tokens) output.tokens.push_back(std::move(token));
    if (piece.end) output.end = *piece.end;
  }

  Completed finish(const CompletionUsage& usage) {
    result_.usage = usage;
    return std::move(result_);
  }

 private:
  size_t n_samples_;
  Completed result_;
};

}  // namespace

Service::Service(ServiceOptions options) : options_(std::move(options)) {
  if (options_.models.empty()) throw UsageError("a service needs at least one model");
  for (const auto& source : options_.models) {
    for (const auto& other : entries_) {
      if (other.source.id == source.id)
        throw UsageError(fmt::format("two models are called '{}': give one of them another name", source.id));
    }
    entries_.push_back({.source = source, .card = {.id = source.id}});
  }
  for (const auto& source : options_.models) {
    if (options_.on_open) options_.on_open(source);
    load(source.id);
  }
  loader_ = std::thread([this] { run_loader(); });
}

Service::~Service() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  wake_.notify_all();
  loader_.join();
}

std::vector<ModelStatus> Service::models() const {
  const std::scoped_lock lock(mutex_);
  std::vector<ModelStatus> result;
  for (const auto& entry : entries_) {
    result.push_back({.card = entry.card, .is_loaded = entry.worker != nullptr});
    if (entry.worker) result.back().counts = entry.worker->counts();
  }
  return result;
}

ModelCard Service::card(const std::string& id) const {
  const std::scoped_lock lock(mutex_);
  return entries_[index_of(id)].card;
}

size_t Service::index_of(const std::string& id) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].source.id == id) return i;
    names.push_back(entries_[i].source.id);
  }
  throw ServiceError(ServiceProblem::unknown_model,
                     fmt::format("there is no model '{}': there is {}", excerpt(id), fmt::join(names, ", ")));
}

/// Null if it is not.
std::shared_ptr<ModelWorker> Service::loaded(const std::string& id) {
  const std::scoped_lock lock(mutex_);
  if (stops_) throw ServiceError(ServiceProblem::stopping, "the service ends");
  auto& found = entries_[index_of(id)];
  found.last_used = ++n_uses_;
  return found.worker;
}

void Service::with_model(const std::string& id, std::function<void(const std::shared_ptr<ModelWorker>&)> use,
                         std::function<void(const std::exception_ptr&)> failed) {
  try {
    if (const auto worker = loaded(id)) return use(worker);
  } catch (...) {
    return failed(std::current_exception());
  }
  {
    const std::scoped_lock lock(mutex_);
    orders_.push_back({.id = id, .use = std::move(use), .failed = std::move(failed)});
  }
  wake_.notify_one();
}

/// Opens a model, or returns it if it is open by now. Only one thread calls it at a time.
std::shared_ptr<ModelWorker> Service::load(const std::string& id) {
  ModelSource source;
  int64_t bytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    const auto& found = entries_[index_of(id)];
    if (found.worker) return found.worker;
    source = found.source;
    bytes = found.card.bytes;
  }
  make_room(bytes);  // frees the weights of others before these are read
  // On a thread that ends, because its OpenMP team stays as long as itself (ComputeThread).
  const auto open = [&source] { return std::make_shared<const ServedModel>(source); };
  auto model = std::async(std::launch::async, open).get();
  const auto card = model->card();
  make_room(card.bytes);
  auto worker = std::make_shared<ModelWorker>(std::move(model), compute_thread_, options_.limits);
  const std::scoped_lock lock(mutex_);
  auto& found = entries_[index_of(id)];
  found.card = card;
  found.last_used = ++n_uses_;
  found.worker = worker;
  return worker;
}

/// Closes models that do nothing, the least recently used first, until `bytes` more fit. Waits for models
/// that are in use. Throws ServiceError if they stay in use.
void Service::make_room(int64_t bytes) {
  constexpr std::chrono::milliseconds moment(5);
  const auto deadline = std::chrono::steady_clock::now() + options_.patience;
  const bool never_fits = options_.memory_limit && bytes > *options_.memory_limit;
  while (never_fits || close_one_for(bytes)) {
    if (never_fits || std::chrono::steady_clock::now() >= deadline) {
      throw ServiceError(
          ServiceProblem::too_large,
          fmt::format("the model needs {:.1f} MB beside those that are in use, and all may have {:.1f} MB: "
                      "ask again later, or raise the memory limit",
                      static_cast<double>(bytes) / 1e6, static_cast<double>(*options_.memory_limit) / 1e6));
    }
    std::this_thread::sleep_for(moment);
  }
}

/// Closes the least recently used model that does nothing, if `bytes` more do not fit. Returns whether they
/// did not fit, so that more may have to be closed.
bool Service::close_one_for(int64_t bytes) {
  if (!options_.memory_limit) return false;
  std::shared_ptr<ModelWorker> closed;  // freed after the lock
  const std::scoped_lock lock(mutex_);
  int64_t n_loaded = 0;
  Entry* oldest = nullptr;
  for (auto& entry : entries_) {
    if (!entry.worker) continue;
    n_loaded += entry.card.bytes;
    if (entry.worker.use_count() > 1 || !entry.worker->is_idle()) continue;
    if (!oldest || entry.last_used < oldest->last_used) oldest = &entry;
  }
  if (n_loaded + bytes <= *options_.memory_limit) return false;
  if (oldest) closed = std::move(oldest->worker);
  return true;
}

void Service::run_loader() {
  for (;;) {
    Order order;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stops_ || !orders_.empty(); });
      if (orders_.empty()) return;
      order = std::move(orders_.front());
      orders_.pop_front();
    }
    try {
      order.use(load(order.id));
    } catch (...) {
      order.failed(std::current_exception());
    }
  }
}

Completed Service::complete(const std::string& id, CompletionRequest request) {
  Collector collector(request.prompts.size(), static_cast<size_t>(request.options.num_samples), request.echo);
  std::promise<Completed> promise;
  const CompletionListener listener{
      .on_piece = [&](CompletionPiece piece) { collector.add(std::move(piece)); },
      .on_end = [&](const CompletionUsage& usage) { promise.set_value(collector.finish(usage)); },
      .on_error = [&](const std::exception_ptr& problem) { promise.set_exception(problem); }};
  with_model(
      id, [&](const std::shared_ptr<ModelWorker>& worker) { worker->complete(std::move(request), listener); },
      listener.on_error);
  return promise.get_future().get();
}

}  // namespace zoo
