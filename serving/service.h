#pragma once
// Trained models as a service, without HTTP: a program that embeds it gives requests from any thread, and
// requests for one model share its steps.
//
//   zoo::Service service({.models = {{.id = "shakespeare", .path = "runs/shakespeare-char"}}});
//   const auto answer = service.complete("shakespeare", {.prompts = {"ROMEO:"}, .options = {.seed = 7}});
//   std::cout << answer.outputs[0].text << '\n';

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "serving/completion.h"
#include "serving/model_worker.h"
#include "serving/served_model.h"

namespace zoo {

struct ServiceOptions {
  std::vector<ModelSource> models;  // with different ids
  /// Most bytes of the weights that are loaded; default: no limit. A model that does not fit beside the
  /// others takes the place of those that were not used for longest and do nothing.
  std::optional<int64_t> memory_limit = {};
  /// How long a request waits until a model that is in use makes room for its own.
  std::chrono::milliseconds patience{10'000};
  WorkerLimits limits = {};
  /// Called while the models are opened one after the other, before each.
  std::function<void(const ModelSource& model)> on_open = nullptr;
};

/// A model as it is now.
struct ModelStatus {
  ModelCard card;
  bool is_loaded = false;
  WorkerCounts counts = {};  // since it was loaded
};

/// A finished output.
struct CompletedOutput {
  std::string text;
  std::vector<CompletionToken> tokens;
  OutputEnd end = OutputEnd::length;
};

/// A finished request.
struct Completed {
  /// options.num_samples outputs of the first prompt, then those of the second, …
  std::vector<CompletedOutput> outputs;
  std::vector<CompletedOutput> echoes = {};  // the prompts, likewise; empty without PromptEcho
  CompletionUsage usage = {};
};

class Service {
 public:
  /// Opens each model once, so that every one is known to work; those beyond the memory limit are closed
  /// again and opened on demand. Throws as Run::open(); UsageError for equal ids or a model beyond the limit.
  explicit Service(ServiceOptions options);
  /// Waits for what is under way on the models; see ModelWorker.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// In the order of the options.
  std::vector<ModelStatus> models() const;
  /// Throws ServiceError if there is no such model.
  ModelCard card(const std::string& id) const;

  /// Calls `use` with a model: on this thread if it is loaded, else on the loader's thread once it is. The
  /// model stays loaded as long as somebody holds the pointer. `failed` is called if it cannot be loaded, or
  /// with what `use` throws.
  void with_model(const std::string& id, std::function<void(const std::shared_ptr<ModelWorker>&)> use,
                  std::function<void(const std::exception_ptr&)> failed);

  /// Does a request, and waits for its end. Throws as ModelWorker::complete(), and what ends the request.
  Completed complete(const std::string& id, CompletionRequest request);

 private:
  struct Entry {
    ModelSource source;
    ModelCard card;
    std::shared_ptr<ModelWorker> worker = nullptr;  // null while it is not loaded
    uint64_t last_used = 0;
  };
  struct Order {
    std::string id;
    std::function<void(const std::shared_ptr<ModelWorker>&)> use;
    std::function<void(const std::exception_ptr&)> failed;
  };

  size_t index_of(const std::string& id) const;
  std::shared_ptr<ModelWorker> loaded(const std::string& id);
  std::shared_ptr<ModelWorker> load(const std::string& id);
  void make_room(int64_t bytes);
  bool close_one_for(int64_t bytes);
  void run_loader();

  ServiceOptions options_;
  std::shared_ptr<ComputeThread> compute_thread_ = std::make_shared<ComputeThread>();
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::vector<Entry> entries_;
  std::deque<Order> orders_;
  uint64_t n_uses_ = 0;
  bool stops_ = false;
  std::thread loader_;
};

}  // namespace zoo
