#pragma once
// Tiny experiments over texts that the test itself writes, and processes to train them in.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "experiments/load_experiment.h"
#include "io/files.h"
#include "tasks/experiment.h"
#include "tests/support/environment.h"
#include "tests/support/errors.h"
#include "tests/support/small_images.h"
#include "tests/support/small_recordings.h"
#include "tests/support/small_structures.h"
#include "tests/support/temp_dir.h"
#include "training/trainer.h"

namespace zoo::testing {

/// Corpora for every task in a directory of their own, and experiments on them that train in a blink.
class TinyWorld {
 public:
  TinyWorld() : data_("ZOO_DATA", (dir_ / "data").string()), cache_("ZOO_CACHE", (dir_ / "cache").string()) {
    static constexpr const char* words[] = {"sun", "moon", "star", "sea", "wind", "rain", "tree", "bird"};
    std::string text, german, english, table = "sentence\tlabel\n", tagged = "sentence\tlabel\n";
    uint32_t random = 7;
    const auto word = [&] {
      random = random * 1664525u + 1013904223u;
      return std::string(words[random >> 29]);
    };
    for (int i = 0; i < 120; ++i) {
      std::string line = word(), reversed = line;
      const int length = 1 + i % 4;
      for (int j = 0; j < length; ++j) {
        const auto next = word();
        line += " " + next;
        reversed = next + " " + reversed;
      }
      text += line + ".\n";
      german += line + "\n";
      english += reversed + "\n";
      table += fmt::format("{}\t{}\n", line, i % 3 == 0 ? "blue" : i % 3 == 1 ? "red" : "dark green");
      tagged += fmt::format("{}\t{}\n", line, sky_labels(line));
    }
    dir_.write("data/text.txt", text);
    dir_.write("data/pairs.de", german);
    dir_.write("data/pairs.en", english);
    dir_.write("data/table.tsv", table);
    dir_.write("data/tagged.tsv", tagged);
    write_image_classes(dir_, "data/");
    write_marked_pictures(dir_, "data/");
    write_recordings(dir_, "data/");
    write_structures(dir_, "data/");
  }

  std::filesystem::path path(std::string_view name) const { return dir_ / name; }
  const TempDir& dir() const { return dir_; }

  /// An experiment on images of 8 × 8 pixels in three classes, with random changes of the images.
  Experiment image_experiment(const std::vector<std::string>& overrides = {}) const {
    return parse_experiment(R"(
name: tiny
task: image_classification
data: {train: train-images-idx3, images: {size: 8, channels: 1, label_names: [bars, columns, noise],
       augment: {crop_padding: 1, flip: 0.5, erasing: 0.3, mixup: 0.4, cutmix: 1}}}
model: {architecture: {type: vit, patch_size: 4}, d_model: 16, n_layers: 2, n_heads: 2, dropout: 0.1,
        stochastic_depth: 0.2}
training:
  {steps: 20, batch_size: 4, gradient_accumulation: 2, optimizer: {lr: 0.01}, schedule: {warmup_steps: 3},
   log_every: 3, evaluate_every: 7, checkpoint_every: 4, threads: 1}
)",
                            "tiny.yaml", overrides);
  }

  /// An experiment on pictures of several sizes with bright and dark squares, with random changes.
  Experiment detection_experiment(const std::vector<std::string>& overrides = {}) const {
    return parse_experiment(R"(
name: tiny
task: object_detection
data: {train: pictures.json, images: {size: 16, channels: 1, augment: {min_crop_area: 0.5, min_scale: 0.7, flip: 0.5}}}
model: {architecture: {type: detr, n_queries: 5, backbone: {depth: 18, width: 4, stem_stride: 1, norm: group}},
        d_model: 16, n_layers: 1, n_heads: 2, position: sinusoidal, dropout: 0.1}
training:
  {steps: 20, batch_size: 4, gradient_accumulation: 2, optimizer: {lr: 0.01}, schedule: {warmup_steps: 3},
   log_every: 3, evaluate_every: 7, checkpoint_every: 4, threads: 1}
)",
                            "tiny.yaml", overrides);
  }

  /// An experiment on recordings of two words, with random changes of the recordings.
  Experiment speech_experiment(const std::vector<std::string>& overrides = {}) const {
    return parse_experiment(R"(
name: tiny
task: speech_recognition
data:
  train: recordings.tsv
  tokenizer: {type: char}
  audio: {sample_rate: 8000, n_mels: 12, n_fft: 200, hop: 80, max_seconds: 2, normalization: recording,
          augment: {speed: 0.1, shift: 0.02, gain: 3, spec_augment: {frequency_width: 2, time_width: 4}}}
model: {architecture: {type: speech_encoder, max_frames: 300}, d_model: 16, n_layers: 1, n_heads: 2,
        position: sinusoidal, dropout: 0.1}
training:
  {steps: 20, batch_size: 4, gradient_accumulation: 2, optimizer: {lr: 0.01}, schedule: {warmup_steps: 3},
   log_every: 3, evaluate_every: 7, checkpoint_every: 4, threads: 1}
generation: {max_new_tokens: 12}
)",
                            "tiny.yaml", overrides);
  }

  /// The same recordings, read as samples, of which training hides parts. The padding token is CTC's blank.
  Experiment wave_experiment(const std::vector<std::string>& overrides = {}) const {
    return parse_experiment(R"(
name: tiny
task: speech_recognition
data:
  train: recordings.tsv
  tokenizer: {type: char}
  audio: {sample_rate: 8000, max_seconds: 2, augment: {speed: 0.1, shift: 0.02, gain: 3}}
model:
  architecture: {type: wave_encoder, conv_widths: [6, 8], conv_kernels: [12, 5], conv_strides: [10, 4],
                 masks: {time_share: 0.2, time_length: 3, feature_share: 0.1, feature_length: 2}}
  position: {type: convolution, kernel_size: 6, groups: 2}
  ctc_blank: padding
  d_model: 16
  n_layers: 1
  n_heads: 2
  dropout: 0.1
training:
  {steps: 20, batch_size: 4, gradient_accumulation: 2, optimizer: {lr: 0.01}, schedule: {warmup_steps: 3},
   log_every: 3, evaluate_every: 7, checkpoint_every: 4, threads: 1}
)",
                            "tiny.yaml", overrides);
  }

  /// An experiment on ten small chains, of which training reads parts.
  Experiment structure_experiment(const std::vector<std::string>& overrides = {}) const {
    return parse_experiment(R"(
name: tiny
task: structure_prediction
data: {train: folds, valid_fraction: 0.3, structures: {max_residues: 12, copies: 2}}
model: {architecture: {type: fold_flow, steps: 3, time_width: 8}, d_model: 16, n_layers: 1, n_heads: 2, dropout: 0.1}
training:
  {steps: 20, batch_size: 2, gradient_accumulation: 2, optimizer: {lr: 0.01}, schedule: {warmup_steps: 3},
   log_every: 3, evaluate_every: 7, checkpoint_every: 4, threads: 1}
)",
                            "tiny.yaml", overrides);
  }

  /// An experiment on one of the tasks; `task` may also be encoder-decoder classification by an override.
  Experiment experiment(std::string_view task, const std::vector<std::string>& overrides = {}) const {
    if (task == "image_classification") return image_experiment(overrides);
    if (task == "object_detection") return detection_experiment(overrides);
    if (task == "speech_recognition") return speech_experiment(overrides);
    if (task == "speech_recognition_of_samples") return wave_experiment(overrides);
    if (task == "structure_prediction") return structure_experiment(overrides);
    const bool pairs = task == "text_to_text", table = task == "text_classification",
               tagged = task == "token_classification";
    const char* const architecture = task == "language_modeling" ? "decoder"
                                     : pairs                     ? "encoder_decoder"
                                                                 : "encoder";
    return parse_experiment(fmt::format(R"(
name: tiny
task: {}
data: {{train: {}, sequence_length: 24, tokenizer: {{type: char}}}}
model: {{architecture: {}, d_model: 16, n_layers: 1, n_heads: 2, max_positions: 32, dropout: 0.1}}
training:
  {{steps: 20, batch_size: 4, gradient_accumulation: 2, optimizer: {{lr: 0.01}}, schedule: {{warmup_steps: 3}},
   log_every: 3, evaluate_every: 7, checkpoint_every: 4, threads: 1}}
generation: {{max_new_tokens: 12, temperature: 0.8}}
)",
                                        task,
                                        pairs    ? "pairs"
                                        : table  ? "table.tsv"
                                        : tagged ? "tagged.tsv"
                                                 : "text.txt",
                                        architecture),
                            "tiny.yaml", overrides);
  }

  /// Words of the sky are entities: the labels of a line. Rain is not counted.
  static std::string sky_labels(const std::string& line) {
    std::istringstream words(line);
    std::string labels;
    bool in_sky = false;
    for (std::string word; words >> word;) {
      const bool is_sky = word == "sun" || word == "moon" || word == "star";
      const std::string label = is_sky ? (in_sky ? "I-SKY" : "B-SKY") : word == "rain" ? "-" : "O";
      labels += (labels.empty() ? "" : " ") + label;
      in_sky = is_sky;
    }
    return labels;
  }

 private:
  TempDir dir_;
  ScopedEnvironment data_, cache_;
};

/// Runs `body` in a child process, so that it may be killed.
class Child {
 public:
  /// `body` runs in a new thread of the child. A child has only the thread that forked, but OpenMP does not
  /// know that the other threads of its team are gone, and would wait for them forever. A new thread has a
  /// team of its own.
  explicit Child(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ == 0) std::thread([&] { ::_exit(exit_code_of(body)); }).join();
  }
  ~Child() {
    if (pid_ > 0) wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// The exit code, or minus the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
  pid_t pid() const { return pid_; }

 private:
  static int exit_code_of(const std::function<int()>& body) {
    try {
      return body();
    } catch (const Error& error) {
      std::cerr << error.what() << std::endl;
      return error.exit_code();
    } catch (const std::exception& error) {
      std::cerr << "unexpected: " << error.what() << std::endl;
      return 99;
    }
  }

  pid_t pid_;
};

/// The rows of metrics.jsonl.
inline std::vector<nlohmann::json> metrics(const std::filesystem::path& run) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

/// The rows of metrics.jsonl without what depends on the clock.
inline std::vector<nlohmann::json> timeless_metrics(const std::filesystem::path& run) {
  auto rows = metrics(run);
  for (auto& row : rows) {
    row.erase("seconds");
    row.erase("tokens_per_second");
    // Another thread makes batches, and its memory does not count. Which batches it makes depends on the
    // time.
    row.erase("peak_memory_bytes");
  }
  return rows;
}

}  // namespace zoo::testing
