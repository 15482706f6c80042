#include "training/tasks/experiment.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace zoo {
namespace {

/// Reports what is wrong within a part under the part's name.
Complain within(std::string_view part, const Complain& complain) {
  return [part, &complain](std::string_view key, std::string_view problem) {
    // Where the problem begins with the key, the report does not say the key twice; so it must begin with all
    // of it.
    const auto prefix = problem.starts_with(key) ? fmt::format("{}.", part) : std::string();
    complain(fmt::format("{}.{}", part, key), prefix + std::string(problem));
  };
}

bool is_window_task(TaskKind task) {
  return task == TaskKind::language_modeling || task == TaskKind::masked_language_modeling;
}

void validate_architecture(const Experiment& c, const Complain& complain) {
  const bool is_encoder = c.model.architecture == Architecture::encoder;
  const auto complain_of = [&](std::string_view wanted) {
    complain("model.architecture", fmt::format("must be {} for {}, not {}", wanted, name_of(c.task),
                                               name_of(c.model.architecture)));
  };
  switch (c.task) {
    case TaskKind::language_modeling:
    case TaskKind::text_to_text:
      if (is_encoder) complain_of("decoder or encoder_decoder");
      return;
    case TaskKind::masked_language_modeling:
      if (!is_encoder) complain_of("encoder");
      return;
    case TaskKind::text_classification:
      return;  // each family has its way
  }
}

void validate_lengths(const Experiment& c, const Complain& complain) {
  const auto fits = [&](std::string_view key, int64_t length) {
    if (length <= c.model.max_positions) return;
    complain(key, fmt::format("{} is longer than model.max_positions {}", length, c.model.max_positions));
  };
  fits("data.sequence_length", c.data.sequence_length);
  if (c.data.target_length) fits("data.target_length", *c.data.target_length);
  if (c.task == TaskKind::text_to_text && c.model.architecture == Architecture::decoder) {
    const int64_t both = c.data.sequence_length + c.data.target_length.value_or(c.data.sequence_length);
    if (both > c.model.max_positions) {
      complain("model.max_positions",
               fmt::format("{} is less than {}: a decoder reads source and target in one sequence",
                           c.model.max_positions, both));
    }
  }
}

void validate_best_by(const Experiment& c, const Complain& complain) {
  const auto has = [&](BestBy metric) {
    switch (metric) {
      case BestBy::loss:
        return true;
      case BestBy::accuracy:
        return c.task == TaskKind::text_classification || c.task == TaskKind::masked_language_modeling;
      case BestBy::bleu:
        return c.task == TaskKind::text_to_text;
    }
    return false;
  };
  const auto metric = c.training.best_by;
  if (!has(metric))
    complain("training.best_by",
             fmt::format("cannot be {} for {}, which has none", name_of(metric), name_of(c.task)));
}

}  // namespace

void describe(ConfigVisitor& v, Experiment& c) {
  v.field(
      "name", c.name,
      "Of the run, whose directory is runs/NAME unless --out says otherwise; a file that gives none has its "
      "own name, without .yaml.");
  v.field("task", c.task, "What is learned.");
  v.field(
      "init_from", c.init_from,
      "Directory of a run whose weights a new run starts with, instead of with random ones. Its vocabulary "
      "comes along: data.tokenizer must be as there, and so must the keys of model, but for dropouts, "
      "numbers of layers and the like; `extends:` of its config.yaml sees to that. Layers that it lacks, "
      "such as the head of another task, start as without it. Default none.");
  v.field("data", c.data, "Corpora and tokenizer.");
  v.field("model", c.model, "The architecture.");
  v.field("training", c.training, "How it is trained.");
  v.field("generation", c.generation, "Defaults of zoo generate.");
}

void validate(const Experiment& c, const Complain& complain) {
  validate(c.data, within("data", complain));
  validate(c.model, within("model", complain));
  validate(c.training, within("training", complain));
  validate(c.generation, within("generation", complain));

  const bool has_controls = std::ranges::any_of(c.name, [](unsigned char byte) { return byte < 0x20; });
  if (c.name.empty() || c.name.front() == '.' || c.name.find('/') != c.name.npos || has_controls) {
    complain("name", fmt::format("'{}' cannot be the name of a directory", excerpt(c.name)));
  }
  if (c.init_from && c.init_from->empty()) complain("init_from", "names no run; leave the key out");
  validate_architecture(c, complain);
  validate_lengths(c, complain);
  validate_best_by(c, complain);
  if (c.training.batch_tokens && is_window_task(c.task)) {
    complain(
        "training.batch_tokens",
        fmt::format("is not for {}, whose windows are all data.sequence_length long: use training.batch_size",
                    name_of(c.task)));
  }
  if (c.data.prefix_length && c.task != TaskKind::language_modeling) {
    complain("data.prefix_length", fmt::format("is for language_modeling, not for {}", name_of(c.task)));
  }
  if (c.data.target_length && c.task != TaskKind::text_to_text) {
    complain("data.target_length", fmt::format("is for text_to_text, not for {}", name_of(c.task)));
  }
}

Experiment load_experiment(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  Experiment defaults;
  defaults.name = path.stem().string();
  return read_experiment(ConfigFile::load(path, overrides), std::move(defaults));
}

Experiment parse_experiment(std::string_view text, std::string_view name,
                            const std::vector<std::string>& overrides) {
  return read_experiment(ConfigFile::parse(text, name, overrides));
}

Experiment read_experiment(const ConfigFile& file, Experiment experiment) {
  file.read(experiment);
  validate(experiment, [&](std::string_view key, std::string_view problem) { file.fail(key, problem); });
  return experiment;
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
  bool begin_group(const FieldInfo& field) override {
    starts_.push_back(prefix_.size());
    prefix_ += fmt::format("{}.", field.key);
    return true;
  }
  void end_group() override {
    prefix_.resize(starts_.back());
    starts_.pop_back();
  }
  bool begin_optional(const FieldInfo& field, bool has_value) override {
    if (!has_value) add(field, "null");
    return has_value;
  }
  bool begin_auto(const FieldInfo& field, bool is_auto) override {
    if (is_auto) add(field, "auto");
    return is_auto;
  }

 private:
  void add(const FieldInfo& field, std::string text) {
    values.push_back({prefix_ + std::string(field.key), std::move(text)});
  }
  template <class T>
  void add_list(const FieldInfo& field, const std::vector<T>& list) {
    std::string text;
    for (const auto& item : list) text += fmt::format("{}{}", text.empty() ? "" : ", ", item);
    add(field, "[" + text + "]");
  }

  std::string prefix_;
  std::vector<size_t> starts_;
};

}  // namespace

std::vector<ConfigValue> flatten(Experiment experiment) {
  Flattener flattener;
  describe(flattener, experiment);
  return std::move(flattener.values);
}

}  // namespace zoo
