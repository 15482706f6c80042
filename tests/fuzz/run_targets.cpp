// Runs: what training, evaluation and comparisons read back.

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include <torch/types.h>

#include "base/error.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "comparison/kept_results.h"
#include "comparison/planning/comparison_directory.h"
#include "comparison/planning/kept_json.h"
#include "experiments/load_experiment.h"
#include "io/config/config_file.h"
#include "io/file_lock.h"
#include "io/files.h"
#include "io/json_document.h"
#include "io/metrics_log.h"
#include "io/safetensors.h"
#include "pages/tables/report_document.h"
#include "tasks/experiment.h"
#include "tasks/task_type.h"
#include "tests/fuzz/targets.h"

namespace zoo::fuzz {
namespace {

namespace fs = std::filesystem;

/// Reads the curves, and drops the rows after some step as a resumed training does.
void read_metrics(const testing::TempDir& work, const std::string& input) {
  const auto dir = work / "metrics";
  fs::remove_all(dir);
  work.write("metrics/metrics.jsonl", input);
  const auto curves = read_curves(dir, {.key = "loss", .label = "loss"});
  if (curves.valid.size() + curves.train.size() > input.size()) throw std::runtime_error("too many rows");
  MetricsLog log(dir, 10);
  log.write(11, 100, 1.5, {{"train_loss", 2.5}});
}

/// Reads the results of a comparison in each way that some command reads them.
void read_results(const testing::TempDir& work, const std::string& input) {
  const auto dir = work / "results";
  const auto path = work.write("results/results.json", input);
  read_kept(path, nullptr);
  const auto json = ordered_json_or_null(read_json_text(path));
  const Json& kept = member(json, "value");
  metrics_in(kept);
  speed_in(kept);
  scaling_in(kept);
  confusion_matrix(kept);
  remove_comparison(dir, {});
  check_results(json);
}

/// Asks who holds a lock that somebody else holds.
void read_lock(const testing::TempDir& work, const std::string& input) {
  const auto path = work.write("lock", input);
  const int other = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ::flock(other, LOCK_EX);
  const FileLock lock(path);
  lock.holder();
  ::close(other);
  if (lock.held()) throw std::runtime_error("took a lock that was held");
}

/// Small runs of several kinds, with random weights: their configuration, vocabulary and labels are fuzzed,
/// and their weights stay.
class Runs {
 public:
  explicit Runs(const testing::TempDir& work) : work_(work) {
    work.write("data/text.txt", "to be or not to be\nthat is the question\n");
    add("language_modeling", "architecture: decoder", "tokenizer: {type: char}");
    add("language_modeling",
        "architecture: decoder, position: rotary, norm: rms_norm, activation: swiglu, n_kv_heads: 1",
        "tokenizer: {type: byte}");
    add("masked_language_modeling", "architecture: encoder, n_segments: 2, embedding_norm: true",
        "tokenizer: {type: char}");
    add("text_classification", "architecture: encoder, position: t5", "tokenizer: {type: byte}");
    add("token_classification", "architecture: decoder, position: rotary", "tokenizer: {type: char}");
    add("text_to_text", "architecture: encoder_decoder, position: shaw", "tokenizer: {type: char}");
  }

  const Seeds& seeds() const { return seeds_; }

  /// Opens the run, and runs its model once.
  void open(const std::string& input) const {
    const auto files = split(input, 4);
    const auto dir = work_ / "run";
    fs::remove_all(dir);
    work_.write("run/config.yaml", files[0]);
    work_.write("run/tokenizer.json", files[1]);
    if (!files[2].empty()) work_.write("run/labels.json", files[2]);
    fs::copy_file(weights_of(files[3]), dir / "model.safetensors");
    const auto run = Run::open(dir);
    run.task().samples(run.model(), {"to be"});
  }

 private:
  void add(const std::string& task, const std::string& model, const std::string& tokenizer) {
    const auto name = std::to_string(seeds_.size());
    const auto experiment =
        parse_experiment("task: " + task + "\ndata: {train: text.txt, sequence_length: 12, " + tokenizer +
                             "}\nmodel: {" + model +
                             ", d_model: 8, n_layers: 1, n_heads: 2, d_ff: 16, max_positions: "
                             "16}\ngeneration: {max_new_tokens: 4}\n",
                         "fuzzed.yaml");
    Vocabulary vocabulary;
    TokenizerConfig tokens = experiment.data.tokenizer;
    vocabulary.tokenizer = make_tokenizer(tokens, SpecialTokenSet::all, [](const auto& sink) {
      sink("to be or not to be\nthat is the question");
    });
    if (task == "token_classification") vocabulary.labels = {"O", "B-X", "I-X"};
    if (task == "text_classification") vocabulary.labels = {"blue", "green", "red"};
    const auto opened = task_with_vocabulary(experiment, vocabulary);
    torch::manual_seed(1);
    const auto model_of_task = initialized_model(experiment, *opened);
    fs::create_directories(work_ / name);
    write_run_vocabulary(work_ / name, vocabulary);
    save_weights(work_ / name / "model.safetensors", *model_of_task);
    const auto labels = work_ / name / "labels.json";
    seeds_.push_back(join({dump_config(experiment), read_file(work_ / name / "tokenizer.json"),
                           fs::exists(labels) ? read_file(labels) : "", name}));
  }

  /// The weights of the run of this name; of the first one for a name that was fuzzed.
  fs::path weights_of(const std::string& name) const {
    const bool is_known =
        name.size() == 1 && name[0] >= '0' && static_cast<size_t>(name[0] - '0') < seeds_.size();
    return work_ / (is_known ? name : "0") / "model.safetensors";
  }

  const testing::TempDir& work_;
  Seeds seeds_;
};

}  // namespace

std::vector<Target> run_targets(const testing::TempDir& work) {
  std::vector<Target> targets;
  targets.push_back({"state", "state.json of a checkpoint", mutate_text, [&work](const std::string& input) {
                       work.write("checkpoint/state.json", input);
                       read_training_state(work / "checkpoint");
                     }});
  targets.push_back({"metrics",
                     "metrics.jsonl of a run",
                     mutate_text,
                     [&work](const std::string& input) { read_metrics(work, input); },
                     // Found by fuzzing: a million lines that are no rows took six seconds.
                     {"{\"step\": 5}\n" + std::string(1 << 20, '\n')}});
  targets.push_back({"results", "results.json of a comparison, and what it keeps", mutate_text,
                     [&work](const std::string& input) { read_results(work, input); }});
  targets.push_back({"lock",
                     ".lock of a run",
                     mutate_bytes,
                     [&work](const std::string& input) { read_lock(work, input); },
                     {"4711", ""}});
  const auto runs = std::make_shared<Runs>(work);
  targets.push_back({"run", "configuration, tokenizer and labels of a run, opened and used", mutate_files,
                     [runs](const std::string& input) { runs->open(input); }, runs->seeds()});
  return targets;
}

}  // namespace zoo::fuzz
