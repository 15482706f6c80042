#pragma once
// `data.choices:`, questions whose answer is one of a few texts, which a model chooses by their likelihood.

#include <cstdint>
#include <string>
#include <vector>

#include "io/config/config_file.h"
#include "io/config/config_path.h"

namespace zoo {

struct ChoicesConfig {
  /// language_modeling: files of questions that each evaluation asks, too. Default: none. The questions of
  /// the task choices are in data.train, data.valid and data.test.
  std::vector<ConfigPath> files;
  /// Questions with their answers that stand before each question: the first ones of `shots_from`, as by the
  /// sampler first_n of lm-evaluation-harness. A question that is among them is left out of its own.
  int64_t shots = 0;
  std::vector<ConfigPath> shots_from;  // default data.train for the task choices; else it must be set
  std::string delimiter = " ";         // between a context and a choice (the harness' target_delimiter)
  std::string separator = "\n\n";      // between questions (its fewshot_delimiter)
};
void describe(ConfigVisitor& v, ChoicesConfig& c);

}  // namespace zoo
