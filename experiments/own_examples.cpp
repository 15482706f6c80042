#include "experiments/own_examples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/stored_model.h"
#include "data/images/image_set.h"
#include "data/images/picture_parts.h"
#include "data/tables.h"
#include "data/usual_columns.h"
#include "experiments/own_labels.h"
#include "io/config/yaml_text.h"
#include "io/files.h"
#include "text/conversations.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// How long a training takes: at most about five minutes on two cores.
struct Effort {
  double passes, most_steps;
  std::string_view optimizer;
};
constexpr Effort kTableEffort{
    .passes = 20, .most_steps = 2000, .optimizer = "{type: adamw, lr: 1.0e-3, weight_decay: 0.05}"};
/// A transformer that sees patches learns slowly from few pictures. Its steps are short, and Muon learns more
/// in each of them (docs/images.md has figures).
constexpr Effort kPictureEffort{.passes = 40,
                                .most_steps = 4000,
                                .optimizer =
                                    "{type: muon, lr: 0.02, betas: [0.9, 0.999], weight_decay: 0.05, muon: "
                                    "{adamw_lr: 1.0e-3, precision: fp32}}"};
constexpr double kFewestSteps = 100;
constexpr int64_t kMostSeconds = 300;

int64_t steps_of_examples(int64_t n_examples, int64_t batch_size, const Effort& effort) {
  const double steps = effort.passes * static_cast<double>(n_examples) / static_cast<double>(batch_size);
  return std::llround(std::clamp(steps, kFewestSteps, effort.most_steps));
}

/// What is said of the data: "in 3 classes (column label)".
std::string answers_text(const Labelling& labelling) {
  const auto column = excerpt(labelling.column);
  switch (labelling.problem) {
    case Problem::single_label:
      return fmt::format("in {} classes{}", labelling.n_labels,
                         column.empty() ? "" : fmt::format(" (column {})", column));
    case Problem::multi_label:
      return fmt::format("with any of {} labels (column {})", labelling.n_labels, column);
    case Problem::regression:
      return fmt::format("with numbers (column {}; --set task.problem=single_label makes classes of them)",
                         column);
  }
  return {};
}

/// The task with its problem, and the keys of data about labels.
std::string task_yaml(std::string_view task, const Labelling& labelling) {
  if (labelling.problem == Problem::single_label) return std::string(task);
  return fmt::format("{{type: {}, problem: {}}}", task, name_of(labelling.problem));
}
std::string labels_yaml(const Labelling& labelling) {
  std::string yaml = fmt::format("  label_column: {}\n", yaml_text(labelling.column));
  if (labelling.problem == Problem::multi_label)
    yaml +=
        fmt::format("  label_separator: {}  # between the labels of a row\n", yaml_text(labelling.separator));
  return yaml;
}

std::string training_yaml(int64_t n_examples, int64_t batch_size, const Effort& effort, Problem problem) {
  const int64_t steps = steps_of_examples(n_examples, batch_size, effort);
  return fmt::format(
      R"(training:
  steps: {steps}
  max_seconds: {seconds}  # on a slow machine the learning rate falls sooner
  batch_size: {batch_size}
  optimizer: {optimizer}
  schedule: {{type: cosine, warmup_steps: {warmup}}}
{smoothing}  best_by: {best}  # the weights of the best evaluation are kept
  evaluate_every: {every}
  checkpoint_every: {every}
  keep_checkpoints: 1
)",
      fmt::arg("steps", steps), fmt::arg("seconds", kMostSeconds), fmt::arg("batch_size", batch_size),
      fmt::arg("optimizer", effort.optimizer), fmt::arg("warmup", steps / 20),
      fmt::arg("every", std::max<int64_t>(steps / 10, 1)),
      fmt::arg("smoothing", problem == Problem::single_label ? "  label_smoothing: 0.1\n" : ""),
      fmt::arg("best", problem == Problem::single_label  ? "accuracy"
                       : problem == Problem::multi_label ? "map"
                                                         : "loss"));
}

// ---- tables

LabelledColumns columns_of(Table& table, const fs::path& file) {
  const auto header = table.columns();
  if (header.size() < 2 && table_form(file) == TableForm::tsv) {
    const bool has_commas = header.front().find_first_of(",;") != std::string::npos;
    throw DataError(fmt::format("{}:1: {}", file.string(),
                                has_commas ? "columns are separated by tabs in a .tsv: call the file .csv if "
                                             "commas or semicolons separate them"
                                           : "a table of texts and their labels has two columns or more, "
                                             "separated by tabs, and a header"));
  }
  if (const auto columns = find_labelled_columns(header)) return *columns;
  if (std::ranges::find(header, "translation") != header.end()) {
    throw DataError(
        fmt::format("{}:1: translations are trained on with task: text_to_text and data.source "
                    "and data.target in a configuration: docs/data.md has one",
                    file.string()));
  }
  const bool has_one = find_text_column(header) || find_label_column(header);
  throw DataError(fmt::format(
      "{}:1: {}; there are: {}: name them with data.text_column and data.label_column in a configuration",
      file.string(),
      has_one ? "no two columns are called as texts and their labels are"
              : "no column is called text or label",
      excerpt(fmt::format("{}", fmt::join(header, ", ")), 60)));
}

/// Throws DataError for classes of which nothing can be learnt: each needs an example to train on and one for
/// validation.
void check_classes(const fs::path& data, std::string_view examples, int64_t n, const Labelling& labelling) {
  if (labelling.problem != Problem::single_label) return;
  const auto column = labelling.column.empty() ? "" : fmt::format(" (column {})", excerpt(labelling.column));
  if (labelling.n_labels < 2)
    throw DataError(fmt::format("{}: all {} are of one class{}: there must be two or more", data.string(),
                                examples, column));
  if (2 * labelling.n_labels > n)
    throw DataError(fmt::format("{}: {} {} in {} classes{}: there must be two or more of each class",
                                data.string(), n, examples, labelling.n_labels, column));
}

TextRecipe recipe_for_table(Table& table, const fs::path& file) {
  const auto columns = columns_of(table, file);
  const bool has_pairs = !columns.second.empty();
  std::vector<std::string> text_columns{columns.text};
  if (has_pairs) text_columns.push_back(columns.second);
  const auto rows = read_labels_and_texts(table, file, text_columns, columns.label);
  const auto labelling = labelling_of(has_pairs ? std::vector<std::string>() : rows.texts, rows.labels);
  if (!labelling.of_words) check_classes(file, "rows", std::ssize(rows.texts), labelling);
  const std::string what = labelling.of_words ? "texts whose words are"
                           : has_pairs        ? "pairs of texts"
                                              : "texts";
  const auto n = std::ssize(rows.texts);
  constexpr int64_t batch_size = 32, smallest = 500, largest = 8000, bytes_per_piece = 50;
  TextRecipe recipe;
  recipe.name = name_of_run(file);
  recipe.bytes = rows.bytes;
  recipe.yaml = fmt::format(
      R"(# Chosen for {n} {what} {answers}. `zoo config` explains the keys.
name: {name}
task: {task}
data:
  train: {file}
  valid_fraction: 0.1  # of each class
  text_column: {text}
{second}{labels}  sequence_length: 128
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
      fmt::arg("n", n), fmt::arg("what", what), fmt::arg("answers", answers_text(labelling)),
      fmt::arg("second", has_pairs ? fmt::format("  pair_column: {}\n", yaml_text(columns.second)) : ""),
      fmt::arg("name", yaml_text(recipe.name)), fmt::arg("file", yaml_text(file.string())),
      fmt::arg("text", yaml_text(columns.text)), fmt::arg("labels", labels_yaml(labelling)),
      fmt::arg("task",
               task_yaml(labelling.of_words ? "token_classification" : "text_classification", labelling)),
      fmt::arg("vocab_size", std::clamp(rows.bytes / bytes_per_piece, smallest, largest)));
  recipe.yaml += training_yaml(n, batch_size, kTableEffort, labelling.problem);
  recipe.summary = fmt::format(
      "{} {} {}, of which 10 % are for validation\n"
      "  model     an encoder of 2 layers, 128 wide\n  training  {} steps of {} texts\n",
      n, what, answers_text(labelling), steps_of_examples(n, batch_size, kTableEffort), batch_size);
  return recipe;
}

// ---- pictures

/// The columns of a list of pictures with labels.
struct PictureColumns {
  std::string picture, label;
};

/// Nothing if the table is no such list. A column `image` says that it is one, other names only if there are
/// no texts.
std::optional<PictureColumns> find_picture_columns(const std::vector<std::string>& header) {
  const auto picture = find_picture_column(header);
  if (!picture || (ascii_lower(*picture) != "image" && find_text_column(header))) return std::nullopt;
  auto label = find_label_column(header);
  if (!label && header.size() == 2) label = header[0] == *picture ? header[1] : header[0];
  if (!label) return std::nullopt;
  return PictureColumns{.picture = *picture, .label = *label};
}

/// The keys of data that say which pictures are for what.
std::string parts_yaml(const fs::path& pictures, const std::optional<PictureParts>& parts) {
  const auto line = [](std::string_view key, const fs::path& path) {
    return fmt::format("  {}: {}\n", key, yaml_text(path.string()));
  };
  auto yaml = line("train", parts ? parts->train : pictures);
  if (parts && parts->valid) yaml += line("valid", *parts->valid);
  if (!parts || !parts->valid) yaml += "  valid_fraction: 0.1  # drawn at random\n";
  if (parts && parts->test) yaml += line("test", *parts->test);
  return yaml;
}

/// `pictures`: a directory with one for each class, or with parts, or a list with these columns, which is
/// `table`.
TextRecipe recipe_for_pictures(const fs::path& pictures, const std::optional<PictureColumns>& columns,
                               Table* table) {
  const auto parts = columns ? std::nullopt : find_picture_parts(pictures);
  DataConfig data;
  Labelling labelling;
  if (columns) {
    const auto rows = read_labels_and_texts(*table, pictures, {columns->picture}, columns->label);
    labelling = labelling_of({}, rows.labels);
    data.label_column = labelling.column;
    data.label_separator = labelling.separator;
  }
  LabelledImages images(data.images.channels, data.images.transparency);
  columns ? images.add_list(*table, pictures, data, labelling.problem)
          : images.add_directory(parts ? parts->train : pictures);
  if (!columns) labelling.n_labels = n_different(images.labels());
  check_classes(pictures, "pictures", images.size(), labelling);
  constexpr int64_t fewest = 10;
  if (images.size() < fewest && (!parts || !parts->valid)) {
    throw DataError(
        fmt::format("{}: {} pictures are too few, of which a tenth is for validation: give {} or "
                    "more",
                    pictures.string(), images.size(), fewest));
  }
  const auto shape = images.image(0).shape;
  constexpr int64_t small = 32, large = 64, batch_size = 32;
  const int64_t size = std::min(shape.height, shape.width) <= small ? small : large;
  TextRecipe recipe;
  recipe.name = name_of_run(pictures);
  recipe.yaml = fmt::format(
      R"(# Chosen for {n} pictures {answers}. `zoo config` explains the keys.
name: {name}
task: {task}
data:
{parts}{labels}  images: {{size: {size}, augment: {{crop_padding: {padding}}}}}
model:
  architecture: {{type: vit, patch_size: {patch}, pooling: mean}}
  d_model: 128
  n_layers: 2
  n_heads: 4
  d_ff: 256
  dropout: 0.0
)",
      fmt::arg("n", images.size()), fmt::arg("answers", answers_text(labelling)),
      fmt::arg("labels", columns ? labels_yaml(labelling) : std::string()),
      fmt::arg("task", task_yaml("image_classification", labelling)),
      fmt::arg("name", yaml_text(recipe.name)), fmt::arg("parts", parts_yaml(pictures, parts)),
      fmt::arg("size", size), fmt::arg("padding", size / 8), fmt::arg("patch", size / 8));
  recipe.yaml += training_yaml(images.size(), batch_size, kPictureEffort, labelling.problem);
  recipe.summary = fmt::format(
      "{} pictures {}{}\n"
      "  model     a vision transformer of 2 layers, 128 wide, on pictures of {} x {} pixels\n"
      "  training  {} steps of {} pictures\n",
      images.size(), answers_text(labelling),
      parts && parts->valid ? "" : ", of which 10 % are for validation", size, size,
      steps_of_examples(images.size(), batch_size, kPictureEffort), batch_size);
  return recipe;
}

}  // namespace

bool is_own_pictures(const fs::path& path) { return has_directory(path) && !is_stored_model(path); }

std::optional<TextRecipe> recipe_for_examples(const fs::path& file, Table* table) {
  if (is_own_pictures(file)) return recipe_for_pictures(file, std::nullopt, nullptr);
  if (!table || own_rows(*table, file)) return std::nullopt;
  if (const auto columns = find_picture_columns(table->columns()))
    return recipe_for_pictures(file, columns, table);
  return recipe_for_table(*table, file);
}

std::optional<OwnRows> own_rows(Table& table, const fs::path& file) {
  if (!is_table(file) || table_form(file) == TableForm::tsv) return std::nullopt;
  const auto header = table.columns();
  if (table_form(file) == TableForm::csv && header.size() > 1) return std::nullopt;
  if (are_conversations(header)) return OwnRows{.conversations = true};
  const auto text = find_text_column(header);
  if (!text || find_label_column(header)) return std::nullopt;
  return OwnRows{.text_column = *text};
}

}  // namespace zoo
