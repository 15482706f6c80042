#pragma once
// A configuration for data of one's own: what `zoo train text.txt` trains, and a table or pictures with
// labels.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/load_experiment.h"
#include "experiments/own_files.h"
#include "tasks/experiment.h"

namespace zoo {

/// A configuration that was chosen for texts, or for examples with labels.
struct TextRecipe {
  std::string name;          // of the run: the first file's name without its extension
  std::string yaml;          // the configuration, which extends no other
  int64_t bytes = 0;         // of all texts
  double tokens = 0;         // about as many tokens has the part to train on
  Experiment experiment;     // what the YAML and the overrides say
  std::string summary = {};  // of a table or of pictures: what was chosen
};

/// The name of the run for a file or a directory.
std::string name_of_run(const std::filesystem::path& file);

/// A GPT for these texts, with a size, a vocabulary and a training that suit their length: a run ends within
/// minutes on two cores. One table of texts and labels or one directory of pictures gets a classifier instead
/// (experiments/own_examples.h). The last part of the texts is for validation. Each override is
/// `dotted.key=value`. With `init_from=RUN` among them, the model, its vocabulary and its task are those of
/// the run, and only the training is chosen. Throws DataError for a file that is missing, empty, too short,
/// or no UTF-8 text, and ConfigError for an override.
TextRecipe recipe_for(const std::vector<std::filesystem::path>& files,
                      const std::vector<std::string>& overrides = {});

/// What was chosen and how long it will take, in a few lines for people.
std::string summary_of(const TextRecipe& recipe);

/// load_experiment() of a configuration, or the experiment of recipe_for() for a text.
Experiment load_experiment_or_text(const std::filesystem::path& path,
                                   const std::vector<std::string>& overrides = {});

}  // namespace zoo
