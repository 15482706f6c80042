#pragma once
// The trained model that a subcommand uses.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoints/run.h"
#include "kernels/cache_format.h"
#include "models/config/model_config.h"

namespace CLI {
class App;
}

namespace zoo {

struct RunArguments {
  std::filesystem::path dir;
  std::filesystem::path base = {};      // of an adapter of PEFT; default: what adapter_config.json names
  std::optional<WeightFormat> weights;  // default: `automatic`
  AutomaticWeights automatic = AutomaticWeights::stored;
  std::optional<CacheFormat> cache = {};  // default: the run's generation.cache
  std::string device = "auto";
  std::string checkpoint = {};  // see add_checkpoint(); empty: the run's best weights
};

/// Declares --checkpoint, the weights of a run that are used.
void add_checkpoint(CLI::App& command, std::string& checkpoint);

/// The run, or its checkpoint of this name. Throws UsageError if it has none of this name.
std::filesystem::path with_checkpoint(const std::filesystem::path& run, const std::string& checkpoint);

/// Says on stderr that nobody but a GPU chose how weights are stored, unless it chose what the model has.
/// `beginning`: of the sentence, such as "the weights are stored".
void note_chosen_weights(std::string_view beginning, WeightFormat chosen, WeightFormat own);

/// Opens the run on the device, and says before if that takes long, with its weights and its cache in the
/// chosen formats. Throws like Run::open().
Run open_run(const RunArguments& arguments);

/// Says on stderr that reading these weights takes long, if it does.
void note_large_weights(const std::filesystem::path& model);

/// Throws UsageError if there is a --base, for what is no trained model.
void require_no_base(const std::filesystem::path& base);

/// Throws UsageError if `option`, --text, --image or --audio, is not for the input that the run reads.
void require_input(const Run& run, PredictionInput input, std::string_view option);

}  // namespace zoo
