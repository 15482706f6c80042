#pragma once
// The requests for a model. Those for texts grow together (continuous batching), and other work on the model
// is done between two steps.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "generation/scheduler.h"
#include "serving/completion.h"
#include "serving/compute_thread.h"
#include "serving/served_model.h"

namespace zoo {

struct WorkerLimits {
  int64_t most_rows = 64;       // outputs that grow together: half of one request, 3/4 of one client at most
  int64_t most_outputs = 1024;  // outputs that are under way or wait; more are refused
  int64_t most_jobs = 256;      // other work that waits; more is refused
  std::chrono::seconds most_time = std::chrono::minutes(10);  // for a request, from its arrival
  int64_t prefix_bytes = 256 << 20;                           // for what several prompts begin with
};

/// Counts since the model was loaded.
struct WorkerCounts {
  int64_t requests = 0, cancelled = 0, refused = 0, failed = 0;
  int64_t prompt_tokens = 0, output_tokens = 0;
  int64_t steps = 0;               // of the scheduler
  int64_t waiting_or_running = 0;  // outputs
};

/// How many tokens other work reads between two steps of a model, if its texts are not longer.
inline constexpr int64_t kTokensAtOnce = 2048;

/// SchedulerOptions::shared_rows on a CPU, where a step of more rows takes longer and gives little more.
inline constexpr int64_t kSharedRowsOnCpu = 16;

/// The most of `places` that one client may take, so that others find some.
constexpr int64_t share_of_client(int64_t places) { return std::max<int64_t>(1, places * 3 / 4); }

/// Whether a job has to be called again.
enum class JobState { has_more, is_done };

class ModelWorker : private Workload {
 public:
  /// A part of other work than writing texts.
  using Job = std::function<JobState(const std::exception_ptr& problem)>;

  /// Everything on the model is done by `thread`.
  ModelWorker(std::shared_ptr<const ServedModel> model, std::shared_ptr<ComputeThread> thread,
              const WorkerLimits& limits);
  /// Waits for the part that is being done. What is under way or waits ends with a ServiceError (stopping).
  ~ModelWorker() override;
  ModelWorker(const ModelWorker&) = delete;
  ModelWorker& operator=(const ModelWorker&) = delete;

  const ServedModel& model() const { return *model_; }
  std::shared_ptr<const ServedModel> shared_model() const { return model_; }

  /// Begins a request for texts; may be called from any thread, except that the listener must not call it.
  /// Checks the request and prepares its rules here, on the caller's thread. Throws as Generator::encode()
  /// and Generator::request(), and ServiceError if too much is under way, of this client or of all.
  std::shared_ptr<Cancellation> complete(CompletionRequest request, CompletionListener listener);

  /// Calls `job` on the compute thread until it is done. Between two calls the model takes steps for texts,
  /// as long as there are some for three times the time of the call, and other jobs have their turns. A job
  /// whose cancellation is requested is dropped. A job gets null; if it cannot be done, or has thrown, it is
  /// called with the error instead, for the last time, and must not throw then. Clients have turns. Throws
  /// ServiceError if too much waits.
  std::shared_ptr<Cancellation> post(Job job, const std::string& client = {});

  WorkerCounts counts() const;
  bool is_idle() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// An output of a request.
  struct Writing {
    ContinuationDecoder decoder;
    size_t n_sent = 0;  // tokens
    bool has_ended = false;
  };
  enum class PartState { waiting, submitted, finished };
  /// The outputs for one prompt of a request.
  struct Part {
    size_t prompt = 0;
    GenerationRequest asked = {};  // until it is submitted
    size_t number = 0;             // of the scheduler's request
    std::vector<Writing> outputs = {};
    PartState state = PartState::waiting;
  };
  struct Running {
    CompletionRequest request;
    CompletionListener listener;
    std::shared_ptr<Cancellation> cancellation;
    std::vector<Part> parts = {};
    Clock::time_point deadline = {};
    CompletionUsage usage = {};
    int64_t n_outputs = 0;
  };
  struct Posted {
    Job job;
    std::shared_ptr<Cancellation> cancellation;
    std::string client;
  };

  void take_places(const Running& running);
  std::vector<Part> parts_of(const CompletionRequest& request) const;
  template <class Work>
  std::exception_ptr problem_of(const Work& work) const;
  bool has_work() override;
  void do_part() override;
  void make_scheduler();
  void begin_arrived();
  void begin_parts();
  std::optional<Posted> next_job();
  void do_next_job();
  void begin(Running& running, Part& part);
  void echo(Running& running, Part& part);
  void step();
  bool deliver(Running& running);
  void send(Running& running, Part& part, size_t sample, std::optional<OutputEnd> forced);
  void leave(Running& running);
  void end(Running& running, const std::exception_ptr& problem);
  void end_all(const std::exception_ptr& problem);

  std::shared_ptr<const ServedModel> model_;
  WorkerLimits limits_;

  mutable std::mutex mutex_;  // guards what follows
  std::deque<std::shared_ptr<Running>> arrived_;
  std::deque<Posted> jobs_;
  std::map<std::string, int64_t> places_;  // that a client has taken
  WorkerCounts counts_;
  bool stops_ = false;
  bool is_working_ = false;

  // Only the compute thread uses these.
  std::optional<Scheduler> scheduler_;
  std::list<std::shared_ptr<Running>> running_;
  std::string last_client_;       // for whom a job was done
  double seconds_for_texts_ = 0;  // that texts have before the next job

  std::shared_ptr<ComputeThread> thread_;
};

}  // namespace zoo
