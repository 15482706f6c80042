#include "tasks/experiment.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "io/config/key_path.h"
#include "io/files.h"
#include "optimizers/optimizer_types.h"
#include "tasks/problem.h"
#include "tasks/task_checks.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

/// Reports problems of a part under the part's name.
Complain within(std::string_view part, const Complain& complain) {
  return [part, &complain](std::string_view key, std::string_view problem) {
    // A report does not repeat the key if the problem begins with it; so the problem must begin with the
    // whole key.
    const auto prefix = problem.starts_with(key) ? fmt::format("{}.", part) : std::string();
    complain(fmt::format("{}.{}", part, key), prefix + std::string(problem));
  };
}

void validate_best_by(const Experiment& c, const TaskType& type, const Complain& complain) {
  const auto& metric = c.training.best_by;
  if (metric == "loss" || c.training.keeps_last() ||
      std::ranges::find(type.best_by, metric, &Metric::key) != type.best_by.end() ||
      std::ranges::find(c.training.metrics, metric, &Selection::type) != c.training.metrics.end())
    return;
  auto names = type.metric_names();
  if (problem_of(c) == Problem::single_label) {
    for (const auto& other : metrics_of_problems()) std::erase(names, other.key);
  }
  complain("training.best_by", fmt::format("cannot be {} for {}, which has {} and last", metric, type.name,
                                           fmt::join(names, ", ")));
}

/// Refuses what does not work where each process has some of the experts.
void validate_divided_experts(const Experiment& c, const Complain& complain) {
  const auto refuse = [&](std::string_view problem) {
    complain("training.parallel.experts", fmt::format("cannot be divided {}", problem));
  };
  if (!c.model.experts) refuse("without experts: set model.experts, or leave it out");
  if (c.training.batch_size.is_auto())
    refuse("with training.batch_size: auto, which each process finds by itself: give a number");
  if (c.training.lora) refuse("with training.lora, whose adapters are small: leave it out");
  if (c.training.parallel.shard_optimizer)
    refuse("with training.parallel.shard_optimizer: choose one of them");
  if (const auto& type = c.training.optimizer.type; optimizer_types().at(type).scope == StepScope::parameter)
    refuse(fmt::format("with training.optimizer {}, whose steps depend on all experts: choose another",
                       type.type));
  if (!c.training.observers.empty()) refuse("with training.observers, which see all weights: leave them out");
}

}  // namespace

void describe(ConfigVisitor& v, Experiment& c) {
  v.field("name", c.name,
          "Name of the run. Its directory is runs/NAME unless another is given. Default: the name of the "
          "file, without .yaml; the name of a file that this one extends is not taken over.");
  v.selection("task", c.task, task_types(), "What the model learns.");
  v.field(
      "init_from", c.init_from,
      "Directory of a run whose weights and vocabulary a new run starts with, instead of random weights; it "
      "is looked for as data.train is. Keys of model, of data.tokenizer and of the task that are not set are "
      "as in that run; dropouts, numbers of layers and the like may be set to other values. Layers that it "
      "lacks, such as the head of another task, start with random weights. Default none.");
  v.field("data", c.data, "Corpora and tokenizer.");
  v.field("model", c.model, "The architecture.");
  v.field("training", c.training, "How it is trained.");
  v.field("generation", c.generation, "Defaults for zoo generate.");
  v.field("embedding", c.embedding, "How zoo embed makes vectors of texts.");
}

void validate(const Experiment& c, const Complain& complain) {
  validate(c.data, within("data", complain));
  validate(c.model, within("model", complain));
  validate(c.training, within("training", complain));
  validate(c.generation, within("generation", complain));
  validate(c.embedding, within("embedding", complain));

  const bool has_controls = std::ranges::any_of(c.name, [](unsigned char byte) { return byte < 0x20; });
  if (c.name.empty() || c.name.front() == '.' || c.name.find('/') != c.name.npos || has_controls) {
    complain("name", fmt::format("'{}' cannot be the name of a directory", excerpt(c.name)));
  }
  if (c.init_from && c.init_from->text.empty()) complain("init_from", "names no run; leave the key out");
  const auto& type = task_type(c);
  validate_best_by(c, type, complain);
  if (type.validate) type.validate(c, complain);
  if (type.requires_special_tokens(c) && c.data.tokenizer.special_tokens == false)
    complain("data.tokenizer.special_tokens", "cannot be false: the task needs them");
  if (c.training.cuda_graphs == CudaGraphs::on && c.model.experts)
    complain("training.cuda_graphs", "cannot record experts, whose work depends on the tokens: leave it out");
  if (c.training.parallel.experts == ExpertPlacement::divided) validate_divided_experts(c, complain);
  if (c.training.batch_tokens && type.rows != BatchRows::examples && !c.data.chat) {
    complain(
        "training.batch_tokens",
        fmt::format("is not for {}, whose windows are all data.sequence_length long: use training.batch_size",
                    type.name));
  }
  if (c.data.label_separator != DataConfig().label_separator && problem_of(c) != Problem::multi_label)
    complain("data.label_separator", "is for task.problem multi_label");
}

void check_experiment(const ConfigFile& file, const Experiment& experiment) {
  validate(experiment, [&](std::string_view key, std::string_view problem) { file.fail(key, problem); });
}

namespace {

Experiment complete_experiment(const ConfigFile& file) {
  Experiment experiment;
  file.read(experiment);
  pin_paths(experiment);
  check_experiment(file, experiment);
  return experiment;
}

}  // namespace

Experiment load_complete_experiment(const std::filesystem::path& path) {
  return complete_experiment(ConfigFile::load_complete(path));
}

Experiment parse_complete_experiment(std::string_view text, std::string_view name) {
  return complete_experiment(ConfigFile::parse_made(text, name));
}

void pin_paths(Experiment& experiment) {
  pin_files(experiment.data);
  if (!experiment.init_from) return;
  experiment.init_from = pinned(*experiment.init_from, has_directory);
}

namespace {

/// Collects every key with its value as text.
class Flattener final : public ConfigVisitor {
 public:
  std::vector<ConfigValue> values;

 protected:
  void leaf(const FieldInfo& field, bool& value) override { add(field, value ? "true" : "false"); }
  void leaf(const FieldInfo& field, int64_t& value) override { add(field, fmt::format("{}", value)); }
  void leaf(const FieldInfo& field, double& value) override { add(field, fmt::format("{}", value)); }
  void leaf(const FieldInfo& field, std::string& value) override { add(field, value); }
  void leaf(const FieldInfo& field, std::vector<int64_t>& value) override { add_list(field, value); }
  void leaf(const FieldInfo& field, std::vector<double>& value) override { add_list(field, value); }
  void leaf(const FieldInfo& field, std::vector<std::string>& value) override { add_list(field, value); }
  void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t& index) override {
    add(field, std::string(names[index]));
  }
  void select(const FieldInfo& field, const TypeList&, Selection& value) override {
    add(field, to_text(value));
  }
  void select(const FieldInfo& field, const TypeList&, std::vector<Selection>& list) override {
    std::vector<std::string> texts;
    for (const auto& value : list) texts.push_back(to_text(value));
    if (texts.size() == 1) return add(field, texts.front());
    add_list(field, texts);
  }
  void structs(const FieldInfo& field, StructList& list) override { add(field, to_text(list)); }
  bool begin_group(const FieldInfo& field) override {
    path_.enter(field);
    return true;
  }
  void end_group() override { path_.leave(); }
  bool begin_optional(const FieldInfo& field, bool has_value) override {
    if (!has_value) add(field, "null");
    return has_value;
  }
  bool begin_auto(const FieldInfo& field, bool is_auto) override {
    if (is_auto) add(field, "auto");
    return is_auto;
  }

 private:
  void add(const FieldInfo& field, std::string text) { values.push_back({path_.of(field), std::move(text)}); }
  template <class T>
  void add_list(const FieldInfo& field, const std::vector<T>& list) {
    std::string text;
    for (const auto& item : list) text += fmt::format("{}{}", text.empty() ? "" : ", ", item);
    add(field, "[" + text + "]");
  }

  KeyPath path_;
};

}  // namespace

std::vector<ConfigValue> flatten(Experiment experiment) {
  Flattener flattener;
  describe(flattener, experiment);
  return std::move(flattener.values);
}

}  // namespace zoo
