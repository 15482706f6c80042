#include "costs/random_data.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/random.h"
#include "io/files.h"
#include "tasks/problem.h"
#include "tasks/task_type.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// A vocabulary in which the text of a token is its id: "17 3 256". Special tokens come first.
class NumberTokenizer final : public Tokenizer {
 public:
  explicit NumberTokenizer(int64_t vocab_size) : vocab_size_(vocab_size) {
    const auto all = special_tokens(SpecialTokenSet::all);
    if (count(all) < vocab_size) special_ = all;
  }

  TokenIds encode(std::string_view text) const override {
    TokenIds ids;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
      int64_t id = 0;
      const auto [rest, error] = std::from_chars(at, end, id);
      if (error == std::errc()) ids.push_back(id);
      at = error == std::errc() ? rest : at + 1;  // blanks and line ends
    }
    return ids;
  }
  std::string decode(std::span<const int64_t> ids) const override {
    return fmt::format("{}", fmt::join(ids, " "));
  }
  std::string label(int64_t id) const override { return std::to_string(id); }
  bool keeps_text() const override { return true; }
  int64_t vocab_size() const override { return vocab_size_; }
  const SpecialTokens& special() const override { return special_; }
  void save(const fs::path& run_dir) const override {
    throw SystemError(fmt::format("{}: random tokens cannot be saved", run_dir.string()));
  }

 private:
  int64_t vocab_size_;
  SpecialTokens special_;
};

/// Random texts of an experiment.
class Texts {
 public:
  Texts(const Experiment& experiment, const Tokenizer& tokenizer)
      : random_({static_cast<uint64_t>(experiment.training.seed)}),
        first_(count(tokenizer.special())),
        vocab_size_(tokenizer.vocab_size()),
        n_rows_(rows_of(experiment)) {}

  int64_t n_rows() const { return n_rows_; }

  std::string row(int64_t n_tokens) {
    std::string text;
    for (int64_t i = 0; i < n_tokens; ++i)
      text += fmt::format("{}{}", i > 0 ? " " : "", first_ + random_.below(vocab_size_ - first_));
    return text;
  }

 private:
  /// Enough for two steps, if that is not too much.
  static int64_t rows_of(const Experiment& experiment) {
    constexpr int64_t most_tokens = 4'000'000;
    const auto& training = experiment.training;
    const int64_t length = experiment.data.sequence_length;
    const int64_t batch =
        training.batch_tokens ? std::max<int64_t>(1, *training.batch_tokens / length) : training.sequences();
    const int64_t step = batch * training.gradient_accumulation;
    return std::max(batch, std::min(2 * step, most_tokens / length)) + 1;
  }

  CounterRandom random_;
  int64_t first_, vocab_size_, n_rows_;
};

int64_t vocab_size_of(const Experiment& experiment) {
  const auto& config = experiment.data.tokenizer;
  if (experiment.model.vocab_size) return *experiment.model.vocab_size;
  if (learns_vocabulary(config.type)) return config.vocab_size;
  if (config.type == TokenizerKind::hub)
    return open_tokenizer(data_file_or_directory(config.path))->vocab_size();
  constexpr int64_t n_bytes = 256;
  return n_bytes + count(special_tokens(SpecialTokenSet::all));
}

std::shared_ptr<const Tokenizer> number_tokenizer(const Experiment& experiment, const Vocabulary& known) {
  if (!known.tokenizer) return std::make_shared<NumberTokenizer>(vocab_size_of(experiment));
  constexpr auto most = std::numeric_limits<int64_t>::max();
  return std::make_shared<NumberTokenizer>(
      std::min(known.tokenizer->vocab_size(), experiment.model.vocab_size.value_or(most)));
}

std::vector<std::string> names_of_classes(const Vocabulary& known, int64_t n_classes) {
  if (!known.labels.empty()) return known.labels;
  std::vector<std::string> names;
  for (int64_t i = 0; i < n_classes; ++i) names.push_back(std::to_string(i));
  std::ranges::sort(names);
  return names;
}

/// Lets `write_row` write each row of a file.
template <class WriteRow>
void write_rows(const fs::path& path, int64_t n_rows, WriteRow write_row) {
  std::ofstream file(path, std::ios::binary);
  for (int64_t i = 0; i < n_rows; ++i) file << write_row(i) << '\n';
  file.close();
  if (!file) throw SystemError(fmt::format("cannot write '{}': is the disk full?", path.string()));
}

/// Writes the files that the task reads. Returns the name for data.train.
std::string write_texts(const fs::path& dir, const Experiment& experiment, const Vocabulary& vocabulary) {
  const auto& data = experiment.data;
  const auto& type = task_type(experiment);
  Texts texts(experiment, *vocabulary.tokenizer);
  const int64_t length = data.sequence_length;
  if (type.predicts == PredictionKind::answers) {
    const int64_t target_length = data.target_length.value_or(length);
    write_rows(dir / ("pairs." + data.source), texts.n_rows(), [&](int64_t) { return texts.row(length); });
    write_rows(dir / ("pairs." + data.target), texts.n_rows(),
               [&](int64_t) { return texts.row(target_length); });
    return (dir / "pairs").string();
  }
  const bool has_labels = type.needs_labels();
  const auto path = dir / (has_labels ? "texts.tsv" : "texts.txt");
  const auto& labels = vocabulary.labels;
  const auto label = [&](int64_t i) {
    if (i == 0) return data.label_column;
    const auto& name = labels[static_cast<size_t>(i) % labels.size()];
    std::string row = name;
    for (int64_t token = 1; type.predicts == PredictionKind::tokens && token < length; ++token)
      row += " " + name;
    return row;
  };
  write_rows(path, texts.n_rows(), [&](int64_t i) {
    if (!has_labels) return texts.row(length);
    return (i == 0 ? data.text_column.front() : texts.row(length)) + "\t" + label(i);
  });
  return path.string();
}

/// The beginning of an IDX file.
std::string idx_header(const std::vector<int64_t>& sizes) {
  std::string header{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const int64_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) header += static_cast<char>(size >> shift);
  return header;
}

/// Writes random images with the first of the labels, enough for two steps. Returns the name for data.train.
std::string write_images(const fs::path& dir, const Experiment& experiment, const Vocabulary& vocabulary) {
  constexpr int64_t most_pixels = 64'000'000, most_labels = 256;
  const int64_t size = experiment.data.images.size, step = experiment.training.sequences();
  const int64_t n = std::max(
      step, std::min(2 * step * experiment.training.gradient_accumulation, most_pixels / (size * size)));
  const int64_t n_labels = std::min(std::ssize(vocabulary.labels), most_labels);
  CounterRandom random({static_cast<uint64_t>(experiment.training.seed)});
  std::string images = idx_header({n, size, size}), labels = idx_header({n});
  for (int64_t i = 0; i < n * size * size; ++i) images += static_cast<char>(random.below(256));
  for (int64_t i = 0; i < n; ++i) labels += static_cast<char>(i % n_labels);
  write_file_atomically(dir / "random-images-idx3", images);
  write_file_atomically(dir / "random-labels-idx1", labels);
  return (dir / "random-images-idx3").string();
}

}  // namespace

std::optional<std::string> missing_data(const Experiment& experiment) {
  const auto& data = experiment.data;
  const auto& type = task_type(experiment);
  const bool has_images = type.predicts_from == PredictionInput::image_file;
  if (!type.layout && !has_images) return std::nullopt;
  if (data.train.empty()) return "data.train names no files";
  try {
    for (const auto& file : data.train) {
      if (has_images) {
        data_file_or_directory(file);
      } else if (type.predicts == PredictionKind::answers) {
        data_path(file + ("." + data.source));
        data_path(file + ("." + data.target));
      } else {
        data_path(file);
      }
    }
    if (!data.tokenizer.path.text.empty()) data_path(data.tokenizer.path);
  } catch (const DataError& error) {
    return error.what();
  }
  return std::nullopt;
}

RandomTask::RandomTask(const Experiment& experiment, const Vocabulary& known) {
  const auto& type = task_type(experiment);
  auto random = experiment;
  if (type.problem) set_problem(random, Problem::single_label);  // for which there are random data
  Vocabulary vocabulary;
  if (type.predicts_from == PredictionInput::image_file) {
    kind_ = "random images";
    constexpr int64_t default_classes = 10;
    const auto purpose = type.purpose(experiment, 0);
    const bool has_classes = purpose && type.labels == LabelSource::vocabulary;
    vocabulary.labels = names_of_classes(known, has_classes ? purpose->n_classes : default_classes);
    if (type.needs_tokenizer()) {  // the labels are the texts
      kind_ = "random images with tokens";
      vocabulary.tokenizer = number_tokenizer(experiment, known);
    }
    random.data.images.label_names.clear();
    random.data.train = {write_images(dir_.path(), experiment, vocabulary)};
  } else {
    kind_ = "random tokens";
    vocabulary = {.tokenizer = number_tokenizer(experiment, known), .labels = names_of_classes(known, 2)};
    random.data.train = {write_texts(dir_.path(), experiment, vocabulary)};
  }
  random.data.valid = random.data.train;
  random.data.label_unit = type.predicts == PredictionKind::tokens ? LabelUnit::word : LabelUnit::automatic;
  if (random.data.documents != DocumentSplit::none) random.data.documents = DocumentSplit::line;
  task_ = task_with_vocabulary(random, vocabulary);
}

std::string RandomTask::description() const {
  const auto& data = task_->experiment().data;
  if (!task_->vocabulary().tokenizer)
    return fmt::format("{} of {} x {} pixels", kind_, data.images.size, data.images.size);
  return fmt::format("{}, {} in a sequence, out of a vocabulary of {}", kind_, data.sequence_length,
                     task_->tokenizer().vocab_size());
}

}  // namespace zoo
