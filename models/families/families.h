#pragma once
// The model families, which are the types of `model.architecture`, and functions that make a model from a
// configuration.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"
#include "io/config/registry.h"
#include "models/config/model_config.h"
#include "models/model.h"

namespace zoo {

/// The inputs and outputs of a family.
enum class FamilyShape {
  encoder,          // reads a sequence; each position sees all positions
  decoder,          // reads and continues a sequence; each position sees the past
  encoder_decoder,  // reads one sequence and writes another
  other,            // reads something else
};

/// The shapes of one batch, including padding, because the hardware computes it too.
struct PassShape {
  int64_t batch_size = 1;      // B
  int64_t length = 0;          // T of the encoder's input, or of the input of a model with one stack
  int64_t decoder_length = 0;  // T of the decoder's input in an encoder-decoder
  int64_t n_targets = 0;       // N: number of predictions
  std::map<std::string, std::vector<int64_t>> fields = {};  // sizes of the batch's fields

  /// The sizes of a field; empty if the batch does not have the field.
  std::vector<int64_t> sizes_of(const std::string& field) const {
    const auto found = fields.find(field);
    return found == fields.end() ? std::vector<int64_t>() : found->second;
  }
};

/// A model within the models of a family, with weights of its own that `init_from` may take from a run of
/// such a model.
struct InnerModel {
  ModelConfig config;
  std::string key;                 // of its configuration, relative to `model`
  std::string module;              // that has its parts
  std::vector<std::string> parts;  // what the names of its own parameters begin with there, as in such a run
  /// The table of its tokens. Its rows stand for the letters of `rows`, then for the start and the end of a
  /// text.
  std::string table, rows;
  char unknown = 0;  // the letter that may have no token of its own there
};

/// A family. Programs add their own with model_families().add().
struct ModelFamily : TypeInfo {
  FamilyShape shape = FamilyShape::other;
  /// Whether a family of the shape `other` reads texts, too.
  bool reads_texts = false;
  /// Whether a decoder reads the encoder's output. model.n_decoder_layers is for it.
  bool has_memory = false;
  /// Whether its places see all others, and its embedder adds positions that are found in the vectors
  /// (PositionType::make_found).
  bool adds_found_positions = false;
  /// Whether its models set ModelConfig::grid.
  bool has_grid = false;
  /// The heads that its models can have.
  std::vector<HeadKind> heads;
  /// Builds a model, not yet initialised, on the CPU. Its modules make their tensors with
  /// parameter_options(), or drawn_tensor() for random values (layers/weights/construction.h), so that a
  /// model is counted without memory and loaded without drawing.
  std::function<std::shared_ptr<Model>(const ModelConfig& config, const ModelPurpose& purpose)> make;
  /// Adds the cost of a forward pass.
  std::function<void(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                     const PassShape& shape)>
      count;
  /// The number of vectors that one input becomes, if the configuration fixes it. Default: it does not.
  std::function<int64_t(const ModelConfig& config, const ModelPurpose& purpose)> input_length = nullptr;
  /// Returns a batch of one row with `length` positions on the CPU, with targets everywhere that the model
  /// can predict. Costs are measured over the length with it. Default: they are not measured.
  std::function<Batch(const ModelConfig& config, const ModelPurpose& purpose, int64_t length)> example =
      nullptr;
  /// Why its models have no attention weights to show: "has no attention". Empty: they have some.
  std::string no_maps = {};
  /// Sets the keys of `model` for which the family's authors used other values than ModelConfig has, which
  /// are GPT-2's. They hold where a configuration does not set the key. Default: no keys.
  std::function<void(ModelConfig& config)> set_defaults = nullptr;
  /// The model within a model with these keys; nothing if it has none. Default: none has.
  std::function<std::optional<InnerModel>(const ModelConfig& config)> inner = nullptr;
  /// Gives `config` a model like `found` within, and says whether it can be there. For families with `inner`.
  std::function<bool(const ModelConfig& found, ModelConfig& config)> take_inner = nullptr;
  /// Checks conditions across keys for this family only; keys are relative to `model`. Default: no checks.
  std::function<void(const ModelConfig& config, const Complain& complain)> validate = nullptr;
};

inline std::string_view what_lacks(const ModelFamily& family) {
  return !family.make           ? "make, which builds a model"
         : !family.count        ? "count, which adds its cost"
         : family.heads.empty() ? "heads, which its models can have"
                                : std::string_view();
}

/// Holds encoder, decoder, encoder_decoder, vit, resnet, detr, whisper, speech_encoder, wave_encoder,
/// esmfold, fold_flow, fold_pairs, autoencoder, dual_encoder and added families.
Registry<ModelFamily>& model_families();

/// A ModelFamily::make that constructs an Impl.
template <class Impl>
auto makes() {
  return [](const ModelConfig& config, const ModelPurpose& purpose) -> std::shared_ptr<Model> {
    return std::make_shared<Impl>(config, purpose);
  };
}

/// The shape of the family that the configuration names. Throws ConfigError if there is no such family.
FamilyShape shape_of(const ModelConfig& config);

/// The number of vectors that one input becomes, if the configuration fixes it.
std::optional<int64_t> input_length(const ModelConfig& config, const ModelPurpose& purpose);

/// Why Model::attention_maps() would fail for this configuration, in one line; nullopt: it does not.
std::optional<std::string> why_no_maps(const ModelConfig& config);

/// Throws ConfigError if config and purpose do not fit: a masked language model on a decoder, and all
/// problems that validate() finds (models/families/model_keys.h). A table may have fewer rows than the
/// tokenizer has tokens, as in published models whose tokenizer grew later: a token without a row is an error
/// when it is read.
void check_model(const ModelConfig& config, const ModelPurpose& purpose);

/// Builds and initialises a model on the CPU. Weights are drawn from the default generator
/// (torch::manual_seed). Throws ConfigError as check_model().
std::shared_ptr<Model> initialized_model(const ModelConfig& config, const ModelPurpose& purpose);
/// Builds a model on the CPU for weights that are loaded next: its parameters and buffers have memory, but
/// any values, and no random number is drawn. Throws ConfigError as check_model().
std::shared_ptr<Model> uninitialized_model(const ModelConfig& config, const ModelPurpose& purpose);

}  // namespace zoo
