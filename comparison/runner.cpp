#include "comparison/runner.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/process.h"
#include "base/stopwatch.h"
#include "checkpoints/run.h"
#include "comparison/planning/comparison_directory.h"
#include "comparison/planning/kept_json.h"
#include "io/files.h"
#include "io/json_document.h"
#include "io/output_file.h"
#include "io/progress.h"
#include "pages/tables/report_document.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// One training to run.
struct Job {
  std::string name;  // for people: "pre-norm, seed 2"
  Experiment experiment;
  fs::path run_dir, config, log;
};

struct Running {
  const Job* job;
  ChildProcess process;
};

/// The last complete line of a log.
std::string last_line(const fs::path& path) {
  std::string text;
  try {
    text = read_file(path, Follow::nothing);
  } catch (const DataError&) {
    return "there is no log";
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.find_last_of("\r\n") + 1);
}

/// The last line of a training's log, without the name of the program in front of an error.
std::string last_words(const fs::path& log) {
  constexpr std::string_view program = "zoo: ";
  const auto line = last_line(log);
  return line.starts_with(program) ? line.substr(program.size()) : line;
}

/// The progress of a run, 0 … 1, and a line about its state, from the last row of its metrics.
struct Advance {
  double fraction = 0;
  std::string status;
};
Advance advance_of(const Job& job) {
  const auto row = last_metrics_row(job.run_dir);
  const auto& training = job.experiment.training;
  Advance advance;
  advance.fraction = training.max_seconds
                         ? number_at(row, "seconds").value_or(0) / *training.max_seconds
                         : number_at(row, "step").value_or(0) / static_cast<double>(training.steps);
  if (const auto loss = number_at(row, "train_loss")) advance.status = fmt::format("loss {:.3f}", *loss);
  return advance;
}

bool is_done(const Job& job) {
  return failure_of(job.run_dir) || is_finished(job.run_dir, job.experiment.training);
}

/// Writes the configuration of a run. A configuration that exists already must be the same.
void write_config(const Job& job) {
  const auto text = dump_config(job.experiment);
  if (is_there(job.config) && read_file(job.config, Follow::nothing) != text) {
    throw UsageError(fmt::format(
        "{} was trained with another configuration: give ExistingRun::replace or another CompareOptions::dir",
        job.run_dir.string()));
  }
  write_file_atomically(job.config, text);
}

fs::path jobs_path(const fs::path& dir) { return dir / "measured" / "jobs.json"; }

std::vector<Job> jobs_of(const ComparisonPlan& plan, const RunnerOptions& options) {
  std::vector<Job> jobs;
  for (const auto& variant : plan.variants) {
    if (!variant.runs.empty() || variant.ablation) continue;
    for (const int64_t seed : variant.seeds) {
      const auto dir = run_dir_of(options.dir, variant, seed);
      jobs.push_back({.name = fmt::format("{}, seed {}", variant.name, seed),
                      .experiment = variant.with_seed(seed),
                      .run_dir = dir,
                      .config = dir.string() + ".yaml",
                      .log = dir.string() + ".log"});
    }
  }
  return jobs;
}

class Runner {
 public:
  Runner(std::vector<Job> jobs, const RunnerOptions& options) : jobs_(std::move(jobs)), options_(options) {}

  RunnerEnd run() {
    make_comparison_directory(options_.dir);
    if (!jobs_.empty()) make_subdirectory(options_.dir / "runs");
    for (const auto& job : jobs_) {
      make_subdirectory(job.run_dir.parent_path());
      has_subdirectory(job.run_dir);  // its training would follow a link, which the user has not named
      write_config(job);
    }
    std::vector<const Job*> waiting;
    for (const auto& job : jobs_) is_done(job) ? ++done_ : (waiting.push_back(&job), 0);
    if (waiting.empty()) return RunnerEnd::all_trained;
    progress_ = std::make_unique<Progress>("training",
                                           ProgressCount{.total = kWhole * static_cast<int64_t>(jobs_.size()),
                                                         .unit = "",
                                                         .first = kWhole * static_cast<int64_t>(done_)});
    size_t next = 0;
    while (true) {
      if (stopped()) return interrupt();
      if (next == waiting.size() && running_.empty()) return RunnerEnd::all_trained;
      while (next < waiting.size() && running_.size() < static_cast<size_t>(options_.jobs))
        start(*waiting[next++]);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      collect();
      show();
      advance();
    }
  }

 private:
  static constexpr int64_t kWhole = 1000;  // units of progress of one training

  bool stopped() const { return options_.should_stop && options_.should_stop(); }

  void start(const Job& job) {
    const OutputFile log(job.log, OutputFile::Mode::kAppend);
    ProcessOptions process{.command = {options_.program.string(), "train", job.config.string(), "--out",
                                       job.run_dir.string(), "--resume", "--device", options_.device},
                           .output = log.descriptor()};
    if (options_.jobs > 1 || options_.threads) {
      const auto cores = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
      const auto threads = options_.threads.value_or(std::max<int64_t>(1, cores / options_.jobs));
      process.environment.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
    }
    running_.push_back({&job, ChildProcess(process)});
    note_jobs(static_cast<int64_t>(running_.size()));
  }

  /// Keeps the largest number of trainings at a time: they slow each other down, and the report of a later
  /// ExistingRun::resume must say so.
  void note_jobs(int64_t n_running) const {
    if (n_running > most_jobs(options_.dir)) keep(jobs_path(options_.dir), nullptr, n_running);
  }

  void collect() {
    for (auto it = running_.begin(); it != running_.end();) {
      const auto code = it->process.exit_code();
      if (!code) {
        ++it;
        continue;
      }
      const Job& job = *it->job;
      it = running_.erase(it);
      finish(job, *code);
    }
  }

  void finish(const Job& job, int code) {
    const auto failure = failure_of(job.run_dir);
    if (!failure && (code != 0 || !is_done(job))) {
      if (stopped()) return;      // Ctrl-C reaches all processes of the terminal; this one ended first
      constexpr int refused = 2;  // what was given is wrong, and would be again
      if (code == refused)
        throw DataError(fmt::format("{}: {}; see {}", job.name, last_words(job.log), job.log.string()));
      throw SystemError(fmt::format("{}: {}{}; see {}; ExistingRun::resume goes on", job.name,
                                    code > 128 ? fmt::format("killed by signal {}: ", code - 128) : "",
                                    last_words(job.log), job.log.string()));
    }
    ++done_;
    if (options_.on_message) {
      progress_->clear();
      options_.on_message(failure ? fmt::format("{}: {}", job.name, *failure)
                                  : fmt::format("{}: trained", job.name));
    }
  }

  /// Tells the caller of what has happened: at once where a training has ended, else every ten seconds, and
  /// more seldom where that takes long.
  void advance() {
    if (!options_.on_advance) return;
    constexpr double every = 10, share = 0.02;  // seconds, of the time
    const bool ended = done_ != done_when_told_;
    if (!ended && since_told_.seconds() < std::max(every, told_in_ / share)) return;
    const Stopwatch watch;
    options_.on_advance();
    told_in_ = watch.seconds();
    since_told_ = {};
    done_when_told_ = done_;
  }

  void show() {
    auto units = static_cast<double>(done_);
    std::string status;
    for (const auto& running : running_) {
      const auto advance = advance_of(*running.job);
      units += std::clamp(advance.fraction, 0.0, 0.999);  // not done before it has saved
      status += fmt::format("{}{} {}", status.empty() ? "" : "; ", running.job->name, advance.status);
    }
    progress_->update(static_cast<int64_t>(units * kWhole), status);
  }

  RunnerEnd interrupt() {
    progress_->clear();
    for (auto& running : running_) running.process.interrupt();
    for (auto& running : running_) running.process.wait();
    return RunnerEnd::interrupted;
  }

  std::vector<Job> jobs_;
  const RunnerOptions& options_;
  std::list<Running> running_;
  size_t done_ = 0, done_when_told_ = 0;
  Stopwatch since_told_;
  double told_in_ = 0;  // seconds
  std::unique_ptr<Progress> progress_;
};

}  // namespace

fs::path run_dir_of(const fs::path& dir, const PlannedVariant& variant, int64_t seed) {
  if (!variant.runs.empty()) {
    const auto place = std::ranges::find(variant.seeds, seed) - variant.seeds.begin();
    return variant.runs.at(place);
  }
  return dir / "runs" / (variant.ablation ? variant.slug_of_runs : variant.slug) /
         fmt::format("seed-{}", seed);
}

int64_t most_jobs(const fs::path& dir) {
  const Json jobs = read_kept(jobs_path(dir), nullptr);
  return jobs.is_number_integer() ? jobs.get<int64_t>() : 1;
}

RunnerEnd train_all(const ComparisonPlan& plan, const RunnerOptions& options) {
  return Runner(jobs_of(plan, options), options).run();
}

}  // namespace zoo
