#include "interop/foreign_problem.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/families/families.h"
#include "tasks/problem.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

struct NamedProblem {
  std::string_view name;
  Problem problem;
};
constexpr auto kProblems = std::to_array<NamedProblem>({
    {"single_label_classification", Problem::single_label},
    {"multi_label_classification", Problem::multi_label},
    {"regression", Problem::regression},
});

/// The name of a class of PyTorch, after what leads to it: "Sigmoid". Nothing: the files do not say it.
std::optional<std::string> activation_in(ForeignConfig& from, std::string_view key, int64_t n_labels) {
  const auto name = from.optional_text(key);
  if (!name) return std::nullopt;
  const auto plain = name->substr(name->find_last_of('.') + 1);
  if (!name->starts_with("torch.nn.") || (plain != "Sigmoid" && plain != "Identity")) {
    if (n_labels > 1 && plain == "Softmax") return std::nullopt;
    from.fail(key, "only Sigmoid and Identity of torch.nn are supported");
  }
  return plain;
}

std::optional<std::string> activation_in(ForeignConfig& from, int64_t n_labels) {
  // Both are read, so that both are accounted for.
  const auto older = activation_in(from, "sbert_ce_default_activation_function", n_labels);
  auto newer = from.object("sentence_transformers");
  if (!newer) return older;
  newer->ignore({"version"});
  const auto found = activation_in(*newer, "activation_fn", n_labels);
  newer->finish();
  return found ? found : older;
}

std::optional<Problem> problem_type_in(ForeignConfig& from) {
  const auto name = from.optional_text("problem_type");
  if (!name) return std::nullopt;
  const auto* const found = std::ranges::find(kProblems, *name, &NamedProblem::name);
  if (found == kProblems.end()) {
    from.fail("problem_type",
              "expected single_label_classification, multi_label_classification or regression");
  }
  return found->problem;
}

}  // namespace

void read_problem(ForeignConfig& from, int64_t n_labels, Experiment& to) {
  if (!task_type(to).problem) {
    from.ignore({"problem_type", "sentence_transformers", "sbert_ce_default_activation_function"});
    return;
  }
  const auto given = problem_type_in(from);
  const auto activation = activation_in(from, n_labels);
  // The softmax of one number is 1, whatever the number is: nobody means that.
  if (given && (n_labels > 1 || *given != Problem::single_label)) return set_problem(to, *given);
  // Several labels with Identity are classes whose scores are not normalised; we say their probabilities.
  if (n_labels > 1)
    return set_problem(to, activation == "Sigmoid" ? Problem::multi_label : Problem::single_label);
  const bool decodes = shape_of(to.model) == FamilyShape::decoder;
  const bool is_sigmoid = activation ? activation == "Sigmoid" : !decodes;
  set_problem(to, is_sigmoid ? Problem::multi_label : Problem::regression);
}

void write_problem(const Experiment& wanted, const Experiment& expressed, nlohmann::json& config) {
  const auto problem = problem_of(wanted);
  const auto labels = config.find("id2label");
  if (problem == Problem::single_label && labels != config.end() && labels->size() == 1)
    throw ConfigError("a classifier of transformers has two classes or more, and this model has one");
  if (problem_of(expressed) == problem) return;
  const auto* const found = std::ranges::find(kProblems, problem, &NamedProblem::problem);
  config["problem_type"] = found->name;
}

}  // namespace zoo
