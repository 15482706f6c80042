#include "experiments/own_examples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/stored_model.h"
#include "data/files/tables.h"
#include "data/images/image_set.h"
#include "data/text/corpus.h"
#include "io/config/yaml_text.h"
#include "io/file_kind.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The passes over the data and the bounds of the steps. The largest training takes about five minutes on two
/// cores.
constexpr double kPasses = 20, kFewestSteps = 100, kMostSteps = 2000;
constexpr int64_t kMostSeconds = 300;

int64_t steps_of_examples(int64_t n_examples, int64_t batch_size) {
  const double steps = kPasses * static_cast<double>(n_examples) / static_cast<double>(batch_size);
  return std::llround(std::clamp(steps, kFewestSteps, kMostSteps));
}

std::string training_yaml(int64_t n_examples, int64_t batch_size) {
  const int64_t steps = steps_of_examples(n_examples, batch_size);
  return fmt::format(
      R"(training:
  steps: {steps}
  max_seconds: {seconds}  # on a slow machine the learning rate falls sooner
  batch_size: {batch_size}
  optimizer: {{type: adamw, lr: 1.0e-3, weight_decay: 0.05}}
  schedule: {{type: cosine, warmup_steps: {warmup}}}
  label_smoothing: 0.1
  best_by: accuracy  # the weights of the best evaluation are kept
  evaluate_every: {every}
  checkpoint_every: {every}
  keep_checkpoints: 1
)",
      fmt::arg("steps", steps), fmt::arg("seconds", kMostSeconds), fmt::arg("batch_size", batch_size),
      fmt::arg("warmup", steps / 20), fmt::arg("every", std::max<int64_t>(steps / 10, 1)));
}

// ---- tables

struct Columns {
  std::string text, label;
};

/// The first of `usual` that the header has, whatever the case of its letters.
std::optional<std::string> find_column(const std::vector<std::string>& header,
                                       std::initializer_list<std::string_view> usual) {
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return text;
  };
  for (const auto name : usual) {
    for (const auto& column : header) {
      if (lower(column) == name) return column;
    }
  }
  return std::nullopt;
}

std::optional<std::string> text_column_of(const std::vector<std::string>& header) {
  return find_column(header, {"text", "sentence", "review", "comment", "content", "message", "title"});
}

std::optional<std::string> label_column_of(const std::vector<std::string>& header) {
  return find_column(header, {"label", "class", "category", "sentiment", "rating", "target"});
}

Columns columns_of(const fs::path& file) {
  const auto header = columns_of_table(file);
  if (header.size() < 2) {
    const bool has_commas = header.front().find_first_of(",;") != std::string::npos;
    throw DataError(fmt::format("{}:1: {}", file.string(),
                                has_commas ? "columns are separated by tabs, not by commas or semicolons"
                                           : "a table of texts and their labels has two columns or more, "
                                             "separated by tabs, and a header"));
  }
  auto text = text_column_of(header);
  auto label = label_column_of(header);
  if (header.size() == 2) {
    if (text && !label) label = header[0] == *text ? header[1] : header[0];
    if (label && !text) text = header[0] == *label ? header[1] : header[0];
  }
  if (text && label) return {*text, *label};
  throw DataError(fmt::format(
      "{}:1: no column is called text or label; there are: {}: name them with data.text_column and "
      "data.label_column in a configuration",
      file.string(), excerpt(fmt::format("{}", fmt::join(header, ", ")), 200)));
}

TextRecipe recipe_for_table(const fs::path& file) {
  const auto columns = columns_of(file);
  DataConfig data;
  data.train = data.valid = {ConfigPath(file.string())};
  data.text_column = {columns.text};
  data.label_column = columns.label;
  const auto rows = read_labelled(data, Split::train);
  const std::set<std::string> labels(rows.labels.begin(), rows.labels.end());
  int64_t bytes = 0;
  for (const auto& text : rows.texts) bytes += std::ssize(text);
  const auto n = std::ssize(rows.texts);
  constexpr int64_t batch_size = 32, smallest = 500, largest = 8000, bytes_per_piece = 50;
  TextRecipe recipe;
  recipe.name = name_of_run(file);
  recipe.bytes = bytes;
  recipe.yaml = fmt::format(
      R"(# Chosen for {n} texts in {labels} classes. `zoo config` explains the keys.
name: {name}
task: text_classification
data:
  train: {file}
  valid_fraction: 0.1  # of each class
  text_column: {text}
  label_column: {label}
  sequence_length: 128
  tokenizer: {{type: sentencepiece, vocab_size: {vocab_size}, lowercase: true}}
model:
  architecture: encoder
  d_model: 128
  n_layers: 2
  n_heads: 4
  position: rotary
  max_positions: 128
  dropout: 0.2
)",
      fmt::arg("n", n), fmt::arg("labels", labels.size()), fmt::arg("name", yaml_text(recipe.name)),
      fmt::arg("file", yaml_text(file.string())), fmt::arg("text", yaml_text(columns.text)),
      fmt::arg("label", yaml_text(columns.label)),
      fmt::arg("vocab_size", std::clamp(bytes / bytes_per_piece, smallest, largest)));
  recipe.yaml += training_yaml(n, batch_size);
  recipe.summary = fmt::format(
      "{} texts in {} classes (column {}), of which 10 % are for validation\n"
      "  model     an encoder of 2 layers, 128 wide\n  training  {} steps of {} texts\n",
      n, labels.size(), excerpt(columns.label), steps_of_examples(n, batch_size), batch_size);
  return recipe;
}

// ---- pictures

TextRecipe recipe_for_pictures(const fs::path& directory) {
  DataConfig data;
  data.train = data.valid = {ConfigPath(directory.string())};
  const auto images = read_images(data, Split::train);
  std::set<std::string> labels;
  for (int64_t i = 0; i < images.size(); ++i) labels.insert(images.label(i));
  const auto shape = images.image(0).shape;
  constexpr int64_t small = 32, large = 64, batch_size = 32;
  const int64_t size = std::min(shape.height, shape.width) <= small ? small : large;
  TextRecipe recipe;
  recipe.name = name_of_run(directory);
  recipe.yaml = fmt::format(
      R"(# Chosen for {n} pictures in {labels} classes. `zoo config` explains the keys.
name: {name}
task: image_classification
data:
  train: {directory}
  valid_fraction: 0.1  # drawn at random
  images: {{size: {size}, augment: {{crop_padding: {padding}}}}}
model:
  architecture: {{type: vit, patch_size: {patch}, pooling: mean, stem: convolutions, stem_blocks: 1}}
  d_model: 128
  n_layers: 2
  n_heads: 4
  d_ff: 256
  dropout: 0.0
)",
      fmt::arg("n", images.size()), fmt::arg("labels", labels.size()),
      fmt::arg("name", yaml_text(recipe.name)), fmt::arg("directory", yaml_text(directory.string())),
      fmt::arg("size", size), fmt::arg("padding", size / 8), fmt::arg("patch", size / 8));
  recipe.yaml += training_yaml(images.size(), batch_size);
  recipe.summary = fmt::format(
      "{} pictures in {} classes, of which 10 % are for validation\n"
      "  model     a vision transformer of 2 layers, 128 wide, on pictures of {} x {} pixels\n"
      "  training  {} steps of {} pictures\n",
      images.size(), labels.size(), size, size, steps_of_examples(images.size(), batch_size), batch_size);
  return recipe;
}

}  // namespace

bool is_own_pictures(const fs::path& path) { return has_directory(path) && !is_stored_model(path); }

bool is_own_table(const fs::path& path) { return is_table(path) || has_extension(path, {".csv"}); }

std::optional<TextRecipe> recipe_for_examples(const std::vector<fs::path>& files) {
  if (files.size() != 1) return std::nullopt;
  const auto& file = files.front();
  if (is_own_pictures(file)) return recipe_for_pictures(file);
  if (!is_own_table(file) || read_own_rows(file)) return std::nullopt;
  return recipe_for_table(file);
}

std::optional<OwnRows> read_own_rows(const fs::path& file) {
  if (!is_table(file) || table_form(file) == TableForm::tsv) return std::nullopt;
  const auto header = columns_of_table(file);
  if (std::ranges::find(header, "messages") != header.end()) return OwnRows{.conversations = true};
  const auto text = text_column_of(header);
  if (!text || label_column_of(header)) return std::nullopt;
  return OwnRows{.text_column = *text};
}

}  // namespace zoo
