#pragma once
// A task without its data, to measure a model that cannot be trained here: its texts are random tokens, and
// its images random pixels.

#include <memory>
#include <optional>
#include <string>

#include "io/temporary_directory.h"
#include "tasks/task.h"

namespace zoo {

/// Why the training data of an experiment cannot be read: no files are named, or one does not exist. Nothing
/// if all are there, or if the task reads neither texts nor images.
std::optional<std::string> missing_data(const Experiment& experiment);

/// An experiment's task on random texts or images: every sequence has data.sequence_length
/// (data.target_length) tokens, all of them equally likely. They go through the task's own batches, so a step
/// costs what it costs with real texts of this length.
class RandomTask {
 public:
  /// `known`: the parts of the vocabulary that are known, for a run. Otherwise the number of tokens is
  /// model.vocab_size, else data.tokenizer.vocab_size; for bytes and characters, 256 and the special tokens.
  /// There are two classes of texts if their names are not known, and as many classes of images as the task's
  /// keys say, or ten. Throws SystemError.
  explicit RandomTask(const Experiment& experiment, const Vocabulary& known = {});

  Task& task() { return *task_; }
  /// "random tokens" or "random images"
  const std::string& kind() const { return kind_; }
  /// The same with their sizes.
  std::string description() const;

 private:
  TemporaryDirectory dir_{"zoo-random"};  // of the texts or images
  std::unique_ptr<Task> task_;
  std::string kind_;
};

}  // namespace zoo
