#include "models/families/families.h"

#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "layers/weights/construction.h"
#include "models/families/model_keys.h"
#include "models/initialize.h"
#include "models/mixers/mixers.h"

namespace zoo {

// The library's families. Each is a function in a file of its own in this folder.
ModelFamily encoder_family();
ModelFamily decoder_family();
ModelFamily encoder_decoder_family();
ModelFamily vit_family();
ModelFamily resnet_family();
ModelFamily autoencoder_family();
ModelFamily detr_family();
ModelFamily whisper_family();
ModelFamily speech_encoder_family();
ModelFamily wave_encoder_family();
ModelFamily esmfold_family();
ModelFamily dual_encoder_family();
ModelFamily fold_flow_family();
ModelFamily fold_pairs_family();

namespace {

std::string_view purpose_name(HeadKind head) {
  switch (head) {
    case HeadKind::language_modeling:
      return "generate text";
    case HeadKind::masked_language_modeling:
      return "fill masks";
    case HeadKind::classification:
      return "have a classification head";
    case HeadKind::token_classification:
      return "classify tokens";
    case HeadKind::regression:
      return "have a regression head";
    case HeadKind::detection:
      return "find objects";
    case HeadKind::ctc:
      return "be trained with CTC";
    case HeadKind::none:
      return "be without a head";
  }
  return "";
}

/// "a decoder", "an encoder".
std::string with_article(const std::string& name) {
  const bool vowel = std::string_view("aeiou").find(name.front()) != std::string_view::npos;
  return fmt::format("{} {}", vowel ? "an" : "a", name);
}

/// A mixer with a fixed number of tokens fits inputs of this length only, if all have one length.
void check_mixers(const ModelConfig& config, const ModelPurpose& purpose) {
  const auto length = input_length(config, purpose);
  const int64_t n = std::min<int64_t>(config.n_layers, std::ssize(config.attention));
  for (int64_t layer = 0; length && layer < n; ++layer) {
    const MixerPlace place{.model = config, .role = StackRole::encoder, .layer = layer};
    const auto& type = mixer_types().at(place.selection());
    if (const int64_t found = type.n_tokens ? type.n_tokens(place) : *length; found != *length) {
      throw ConfigError(fmt::format(
          "model.attention: {} is for {} tokens, but an image has {} (patches, and the class token "
          "if there is one): set length to {}",
          type.name, found, *length, *length));
    }
  }
}

/// Tokens for a family of the library.
Batch example_of_tokens(const ModelConfig& config, const ModelPurpose& purpose, int64_t length) {
  const int64_t vocab_size = config.vocab_size.value_or(purpose.vocab_size);
  const bool once = predicts_once(purpose.head);
  Batch batch;
  batch.input.ids = (torch::arange(length, torch::kInt64) * 31).remainder(vocab_size).unsqueeze(0);
  if (config.architecture == Architecture::encoder_decoder) batch.decoder.ids = batch.input.ids;
  batch.targets = torch::zeros({once ? 1 : length}, torch::kInt64);
  if (once && config.architecture == Architecture::decoder)
    batch.positions = torch::tensor({length - 1}, torch::kInt64);
  return batch;
}

ModelFamily reading_tokens(ModelFamily family) {
  family.example = example_of_tokens;
  return family;
}

}  // namespace

Registry<ModelFamily>& model_families() {
  static Registry<ModelFamily> families(
      "model family",
      {reading_tokens(encoder_family()), reading_tokens(decoder_family()),
       reading_tokens(encoder_decoder_family()), vit_family(), resnet_family(), detr_family(),
       whisper_family(), speech_encoder_family(), wave_encoder_family(), esmfold_family(), fold_flow_family(),
       fold_pairs_family(), reading_tokens(autoencoder_family()), dual_encoder_family()});
  return families;
}

FamilyShape shape_of(const ModelConfig& config) { return model_families().at(config.architecture).shape; }

std::optional<int64_t> input_length(const ModelConfig& config, const ModelPurpose& purpose) {
  const auto& family = model_families().at(config.architecture);
  return family.input_length ? std::optional(family.input_length(config, purpose)) : std::nullopt;
}

std::optional<std::string> why_no_maps(const ModelConfig& config) {
  const auto& family = model_families().at(config.architecture);
  if (!family.no_maps.empty())
    return fmt::format("the model has no attention maps: {} {}", with_article(family.name), family.no_maps);
  const int64_t n_layers = std::max(config.n_layers, config.n_decoder_layers.value_or(0));
  for (int64_t layer = 0; layer < std::min<int64_t>(n_layers, std::ssize(config.attention)); ++layer) {
    const auto& type = mixer_types().at(config.attention_of(layer));
    if (type.no_maps.empty()) continue;
    return fmt::format("the model has no attention maps: layer {} is of the type {}, which {}", layer,
                       type.name, type.no_maps);
  }
  return std::nullopt;
}

void check_model(const ModelConfig& config, const ModelPurpose& purpose) {
  const auto& family = model_families().at(config.architecture);
  validate(config, [](std::string_view key, std::string_view problem) {
    throw ConfigError(fmt::format("model.{}: {}", key, problem));
  });
  if (std::ranges::find(family.heads, purpose.head) == family.heads.end()) {
    throw ConfigError(fmt::format("model.architecture: {} cannot {}: choose another architecture or task",
                                  with_article(family.name), purpose_name(purpose.head)));
  }
  check_mixers(config, purpose);
  const bool reads_tokens =
      family.shape != FamilyShape::other || predicts_tokens(purpose.head) || family.reads_texts;
  const int64_t vocab_size = config.vocab_size.value_or(purpose.vocab_size);
  if (reads_tokens && vocab_size < 1)
    throw ConfigError("model.vocab_size: not given, and there is no tokenizer to take it from");
  if (!predicts_tokens(purpose.head) && purpose.head != HeadKind::none && purpose.n_classes < 1) {
    throw ConfigError(purpose.head == HeadKind::regression ? "a regression model needs at least one output"
                                                           : "a classifier needs at least one class");
  }
}

std::shared_ptr<Model> initialized_model(const ModelConfig& config, const ModelPurpose& purpose) {
  check_model(config, purpose);
  auto model = model_families().at(config.architecture).make(config, purpose);
  initialize(*model, config);
  return model;
}

std::shared_ptr<Model> uninitialized_model(const ModelConfig& config, const ModelPurpose& purpose) {
  check_model(config, purpose);
  const ConstructionScope scope(Construction::uninitialized);
  return model_families().at(config.architecture).make(config, purpose);
}

}  // namespace zoo
