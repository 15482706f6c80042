#include "tasks/examples.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "base/error.h"
#include "data/tables.h"
#include "io/json_document.h"
#include "text/batches/padded_rows.h"

namespace zoo {

std::string to_json_lines(const std::vector<ExampleScore>& examples) {
  std::string lines;
  for (const auto& example : examples) {
    nlohmann::ordered_json line{{"input", example.input}};
    if (example.document) line["document"] = *example.document;
    if (example.target) line["target"] = *example.target;
    if (example.prediction) line["prediction"] = *example.prediction;
    line["loss"] = example.loss;
    line["targets"] = example.targets;
    if (example.bytes > 0) line["bytes"] = example.bytes;
    if (example.right) line["right"] = *example.right;
    if (example.n_answers > 1) line["n_right"] = example.n_right, line["n_answers"] = example.n_answers;
    if (const auto& choice = example.choice) {
      line["answer"] = choice->answer;
      line["chosen"] = choice->chosen;
      line["chosen_norm"] = choice->chosen_by_length;
      line["log_likelihoods"] = choice->log_likelihoods;
    }
    lines += json_text(line) + "\n";
  }
  return lines;
}

void name_documents(const DataConfig& config, Split split, std::vector<ExampleScore>& examples) {
  if (config.document_column.empty()) return;
  std::vector<std::string> names;
  for (const auto& file : files_to_read(config, split)) {
    if (!is_table(file.text)) {
      throw DataError(
          fmt::format("data.document_column: '{}' is no table (NAME.tsv, NAME.csv, NAME.jsonl, "
                      "NAME.parquet), so it has no column {}",
                      file.text, config.document_column));
    }
    read_table(data_path(file), {{config.document_column}},
               [&](TableRow row) { names.push_back(std::move(row.fields[0])); });
  }
  if (names.size() != examples.size()) {
    throw DataError(
        fmt::format("data.document_column: {} has {} rows, of which {} are examples: remove the "
                    "rows that are not",
                    corpus_name(config, split), names.size(), examples.size()));
  }
  for (size_t i = 0; i < names.size(); ++i) examples[i].document = std::move(names[i]);
}

void TargetLosses::add(const Batch& batch, const torch::Tensor& batch_losses) {
  const auto values = batch_losses.to(torch::kCPU, torch::kDouble).contiguous();
  const std::span list(values.const_data_ptr<double>(), static_cast<size_t>(values.numel()));
  losses.insert(losses.end(), list.begin(), list.end());
  if (batch.positions.defined()) {
    const int64_t length = (batch.decoder.defined() ? batch.decoder : batch.input).length();
    for (const int64_t position : int64_values(batch.positions)) rows.push_back(n_rows + position / length);
  } else {
    const int64_t per_row = std::ssize(list) / std::max<int64_t>(1, batch.n_rows());
    for (int64_t i = 0; i < std::ssize(list); ++i) rows.push_back(n_rows + i / per_row);
  }
  n_rows += batch.n_rows();
}

std::vector<ExampleScore> examples_by_row(const TargetLosses& each) {
  std::vector<ExampleScore> examples(static_cast<size_t>(each.n_rows));
  for (size_t i = 0; i < each.losses.size(); ++i) {
    auto& example = examples[static_cast<size_t>(each.rows[i])];
    example.loss += each.losses[i];
    ++example.targets;
  }
  return examples;
}

ExampleRecorder::ExampleRecorder(const EvaluationOptions& options)
    : examples_(options.examples), options_(options) {
  if (!examples_) return;
  TORCH_CHECK(!options.processes, "the scores of examples are collected by one process");
  options_.losses = &losses_;
}

ClassName named_by(const std::vector<std::string>& labels) {
  return [&labels](int64_t number) { return labels[static_cast<size_t>(number)]; };
}

void ExampleRecorder::add_classes(const torch::Tensor& predicted, const torch::Tensor& actual,
                                  const ClassName& name) {
  if (!is_wanted()) return;
  const auto guesses = int64_values(predicted.to(torch::kInt64)), right = int64_values(actual);
  for (size_t i = 0; i < guesses.size(); ++i) add_words(name(guesses[i]), name(right[i]));
  add_answers(predicted == actual);
}

void ExampleRecorder::add_words(std::string predicted, std::string actual) {
  if (!is_wanted()) return;
  predicted_.push_back(std::move(predicted));
  actual_.push_back(std::move(actual));
}

void ExampleRecorder::add_answers(const torch::Tensor& right) {
  if (!is_wanted()) return;
  const auto more = int64_values(right.to(torch::kInt64));
  right_.insert(right_.end(), more.begin(), more.end());
}

void ExampleRecorder::finish_rows() {
  if (!is_wanted()) return;
  *examples_ = examples_by_row(losses_);
  const auto add = [](std::optional<std::string>& text, const std::string& more) {
    text = text ? *text + " " + more : more;
  };
  const auto example_of = [&](size_t target) -> ExampleScore& {
    return (*examples_)[static_cast<size_t>(losses_.rows[target])];
  };
  for (size_t i = 0; i < right_.size(); ++i) {
    auto& example = example_of(i);
    ++example.n_answers;
    example.n_right += right_[i];
    example.right = example.n_right == example.n_answers;
  }
  for (size_t i = 0; i < predicted_.size(); ++i) {
    add(example_of(i).prediction, predicted_[i]);
    add(example_of(i).target, actual_[i]);
  }
}

void ExampleRecorder::finish(std::vector<ExampleScore> examples) {
  if (is_wanted()) *examples_ = std::move(examples);
}

void name_inputs(ExampleRecorder& recorder, BatchSource& source, const Tokenizer& tokenizer) {
  if (!recorder.is_wanted()) return;
  size_t n = 0;
  for_each_own_batch(source, recorder.options(), [&](const Batch& batch) {
    const auto lengths = batch.input.row_lengths();
    for (int64_t row = 0; row < batch.n_rows(); ++row) {
      const auto ids = batch.input.ids[row].narrow(0, 0, lengths[static_cast<size_t>(row)]);
      recorder.examples().at(n++).input = tokenizer.decode(int64_values(ids));
    }
  });
}

}  // namespace zoo
