#include "checkpoints/stored_model.h"

#include <algorithm>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/run.h"
#include "data/directory.h"
#include "interop/foreign_files.h"
#include "interop/foreign_model.h"
#include "io/config/find_config.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "io/joined_tensors.h"
#include "io/progress.h"
#include "models/families/model_cost.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// Throws CheckpointError if the run lacks what a classifier needs, or if that does not fit its images.
void check_labels(const fs::path& dir, const Experiment& experiment, const Vocabulary& vocabulary) {
  const auto& type = task_type(experiment);
  if (type.needs_labels() && vocabulary.labels.empty()) {
    throw CheckpointError(fmt::format("{}: missing: a classifier cannot be used without its labels",
                                      (dir / "labels.json").string()));
  }
  auto sorted = vocabulary.labels;
  std::ranges::sort(sorted);
  // Where the numbers of classes have gaps, as those of COCO, several have the name that stands for none.
  const auto twice =
      std::ranges::adjacent_find(sorted, [](const auto& a, const auto& b) { return a == b && a != "N/A"; });
  if (twice != sorted.end()) {
    throw CheckpointError(fmt::format("{}: damaged: two classes have the name '{}'",
                                      (dir / "labels.json").string(), excerpt(*twice)));
  }
  if (!type.needs_pixels()) return;
  const auto path = dir / "pixels.json";
  if (!vocabulary.pixels)
    throw CheckpointError(fmt::format("{}: missing: images cannot be normalised without it", path.string()));
  const int64_t n_channels = experiment.data.images.channels;
  if (!can_normalize(*vocabulary.pixels, n_channels)) {
    throw CheckpointError(
        fmt::format("{}: damaged: not a mean and a positive deviation for each of {} channels", path.string(),
                    n_channels));
  }
}

/// Throws CheckpointError if the vocabulary lacks a special token that stands in every text of the task.
void check_special_tokens(const fs::path& dir, const Task& task) {
  const auto& type = task_type(task.experiment());
  if (!type.layout || !task.vocabulary().tokenizer) return;
  const auto& special = task.tokenizer().special();
  // A vocabulary of the Hub says itself what stands around a text. What lacks a token can do all that needs
  // no text.
  const bool says_itself = task.tokenizer().frame().has_value();
  const auto require = [&](int64_t id, std::string_view name) {
    if (id >= 0) return;
    throw CheckpointError(fmt::format("{}: the vocabulary has no {}, which the task {} needs",
                                      (dir / "tokenizer.json").string(), name, type.name));
  };
  switch (type.layout(task.experiment())) {
    case TextLayout::tokens:
      break;
    case TextLayout::source_and_target:
      require(decoder_start(special), "<bos>");
      [[fallthrough]];
    case TextLayout::tokens_eos:
    case TextLayout::question_and_answer:
      if (says_itself) break;
      require(special.pad, "<pad>");
      require(special.eos, "<eos>");
      break;
    case TextLayout::cls_tokens_sep:
      if (says_itself) break;
      require(special.cls, "<cls>");
      require(special.sep, "<sep>");
      break;
  }
}

/// `checkpoint`: of the run, whose weights are used; none: the run's own.
StoredModel open_run_files(const fs::path& dir, const std::optional<fs::path>& checkpoint = std::nullopt) {
  const auto experiment = read_run_experiment(dir);
  auto vocabulary = read_run_vocabulary(dir, task_type(experiment));
  check_labels(dir, experiment, vocabulary);
  StoredModel model{.task = task_with_vocabulary(experiment, std::move(vocabulary)), .tensors = nullptr};
  check_special_tokens(dir, *model.task);
  const auto path = checkpoint ? weights_in(*checkpoint) : run_weights(dir);
  model.tensors = std::make_shared<SafetensorsFile>(path);
  if (experiment.training.lora) {
    const auto base = std::make_shared<SafetensorsFile>(dir / kBaseFile);
    check_belongs_to(path, hash_of_base(*base));
    model.tensors = std::make_shared<JoinedTensors>(
        path.string(), std::vector<std::shared_ptr<const TensorSource>>{base, model.tensors});
  }
  check_model_size(*model.tensors, *model.task);
  return model;
}

}  // namespace

void check_model_size(const TensorSource& source, const Task& task) {
  const auto& experiment = task.experiment();
  // A model that is little larger than its file is built, and then the first tensor that differs is named.
  constexpr double spare = 1e6;
  constexpr int64_t spare_layers = 64;
  const auto stored = static_cast<double>(n_elements(source));
  const double wanted = parameter_count(experiment.model, task.purpose());
  const auto n_layers = std::max(experiment.model.n_layers, experiment.model.decoder_layers());
  if (wanted <= 2 * stored + spare && n_layers <= std::ssize(source.names()) + spare_layers) return;
  throw CheckpointError(
      fmt::format("{}: of another architecture: the configuration describes a model with {} layers and "
                  "{:.3g} parameters, but the file has {} tensors with {:.3g}",
                  source.place(), n_layers, wanted, std::ssize(source.names()), stored));
}

namespace {

/// The bytes of the files with weights; 0 if there are none.
int64_t bytes_of_weights(const fs::path& dir) {
  std::vector<fs::path> files;
  std::error_code error;
  if (is_file_of_weights(dir)) {
    files = {dir};
  } else if (is_run(dir)) {
    files = {run_weights(dir), dir / kBaseFile};
  } else if (const auto run = run_of_checkpoint(dir)) {
    files = {weights_in(dir), *run / kBaseFile};
  } else {
    // The first kind that is there is read.
    for (const char* const kind : {".safetensors", ".bin"}) {
      for (const auto& name : names_in(dir))
        if (has_extension(name, {kind})) files.push_back(dir / name);
      if (!files.empty()) break;
    }
  }
  int64_t bytes = 0;
  for (const auto& file : files) {
    const auto size = fs::file_size(file, error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

}  // namespace

std::optional<std::string> weights_note(const fs::path& dir, int64_t least_bytes) {
  try {
    const int64_t bytes = bytes_of_weights(dir);
    if (bytes < least_bytes) return std::nullopt;
    return fmt::format("reading {} of weights from {}", bytes_text(bytes), dir.string());
  } catch (const Error&) {  // who opens the model will say it
    return std::nullopt;
  }
}

namespace {

bool is_ascii_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// The name on the Hub, with its owner, of a model whose configuration comes with the program.
std::optional<std::string> published_as(const std::string& name) {
  constexpr std::string_view before = "# Published as ";
  const auto wanted = ascii_lower(name);
  for (const auto& file : list_shipped_configs()) {
    const auto text = read_file(file);
    size_t begin = text.find(before);
    if (begin == text.npos) continue;
    begin += before.size();
    const auto line = std::string_view(text).substr(begin, text.find('\n', begin) - begin);
    for (const auto part :
         std::views::split(line.substr(0, line.find_last_not_of('.') + 1), std::string_view(", "))) {
      const std::string id(part.begin(), part.end());
      const auto lower = ascii_lower(id);
      if (lower == wanted || lower.ends_with("/" + wanted)) return id;
    }
  }
  return std::nullopt;
}

}  // namespace

bool names_stored_model(const fs::path& path) { return has_directory(path) || is_file_of_weights(path); }

std::string how_to_get_model(const fs::path& name) {
  auto text = name.string();
  if (text.ends_with('/')) text.pop_back();
  const auto is_plain = [](char c) {
    return is_ascii_alnum(c) || c == '-' || c == '_' || c == '.' || c == '/';
  };
  const auto n_slashes = std::ranges::count(text, '/');
  const bool may_be_of_hub = !text.empty() && is_ascii_alnum(text.front()) && n_slashes <= 1 &&
                             !text.starts_with("runs/") && std::ranges::all_of(text, is_plain);
  const auto published = may_be_of_hub ? published_as(text) : std::nullopt;
  if (!published && (!may_be_of_hub || n_slashes == 0)) return "zoo train makes one";
  const auto id = published.value_or(text);
  return fmt::format(
      "zoo train makes a run; hf download {0} --local-dir {1} gets the model of the Hub, and so does "
      "git clone https://huggingface.co/{0} {1}",
      id, text);
}

std::optional<fs::path> run_of_checkpoint(const fs::path& dir) {
  const auto path = dir.has_filename() ? dir : dir.parent_path();
  const bool is_named_so = path.filename() == "last" || step_of(path);
  if (!is_named_so || path.parent_path().filename() != "checkpoints" || !has_directory(path))
    return std::nullopt;
  const auto run = path.parent_path().parent_path();
  return is_run(run.empty() ? "." : run) ? std::optional(run.empty() ? "." : run) : std::nullopt;
}

bool is_stored_model(const fs::path& dir) { return is_run(dir) || is_foreign(dir) || run_of_checkpoint(dir); }

Experiment read_stored_experiment(const fs::path& dir) {
  return is_foreign(dir) ? read_foreign_experiment(dir)
                         : read_run_experiment(run_of_checkpoint(dir).value_or(dir));
}

namespace {

/// The checkpoint of `run` that `dir` names. Throws CheckpointError if it is a link to somewhere else.
fs::path checkpoint_of(const fs::path& run, const fs::path& dir) {
  const auto name = dir.has_filename() ? dir.filename() : dir.parent_path().filename();
  const auto all = checkpoints_of(run);
  const auto found = name == "last" ? all.begin() : std::ranges::find(all, name, &fs::path::filename);
  if (found == all.end()) throw CheckpointError(fmt::format("{}: there is no such checkpoint", dir.string()));
  return *found;
}

}  // namespace

StoredModel open_stored_model(const fs::path& dir, const fs::path& base) {
  if (!is_foreign(dir)) {
    if (!base.empty())
      throw UsageError(fmt::format("{}: is no adapter of PEFT, so it has no base", dir.string()));
    if (const auto run = run_of_checkpoint(dir)) return open_run_files(*run, checkpoint_of(*run, dir));
    return open_run_files(dir);
  }
  auto foreign = open_foreign(dir, base);
  return {.task = std::move(foreign.task), .tensors = std::move(foreign.tensors)};
}

}  // namespace zoo
