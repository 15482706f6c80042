#pragma once
// The keys of the task text_classification.

#include <array>
#include <optional>
#include <string_view>

#include "data/labels.h"
#include "io/config/describe.h"
#include "tasks/experiment.h"

namespace zoo {

/// How a model says the class of a text.
///   head  scores of the classes from one vector: the class token's in an encoder, the last token's in a
///   decoder
///         and in an encoder_decoder, both sides of which read the text (BART: Lewis et al. 2020,
///         section 3.1)
///   text  an encoder_decoder writes the name of the class (T5)
enum class ClassAnswer { head, text };
constexpr auto config_names(ClassAnswer) { return std::to_array<std::string_view>({"head", "text"}); }

struct TextClassificationConfig {
  std::optional<ClassAnswer> answer;  // default: text in an encoder_decoder, head in others
  Problem problem = Problem::single_label;
};
void describe(ConfigVisitor& v, TextClassificationConfig& c);

/// How the model of an experiment with this task answers.
ClassAnswer class_answer(const Experiment& experiment);

}  // namespace zoo
