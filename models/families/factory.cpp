#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>

#include "models/families/decoder.h"
#include "models/families/encoder.h"
#include "models/families/encoder_decoder.h"
#include "models/initialize.h"
#include "models/model.h"
#include "models/stack.h"

namespace zoo {
namespace {

template <class Family>
std::shared_ptr<Model> make(const ModelConfig& config, const ModelPurpose& purpose) {
  return std::make_shared<Family>(config, purpose);
}

// What a family is and can end in. A new family is a line here.
struct FamilyEntry {
  Architecture architecture;
  std::vector<Head> heads;
  std::shared_ptr<Model> (*make)(const ModelConfig&, const ModelPurpose&);
};

const std::vector<FamilyEntry>& families() {
  static const std::vector<FamilyEntry> entries{
      {Architecture::encoder, {Head::masked_language_modeling, Head::classification}, make<EncoderModel>},
      {Architecture::decoder, {Head::language_modeling, Head::classification}, make<DecoderModel>},
      {Architecture::encoder_decoder, {Head::language_modeling}, make<EncoderDecoderModel>},
  };
  return entries;
}

std::string_view purpose_name(Head head) {
  switch (head) {
    case Head::language_modeling:
      return "generate text";
    case Head::masked_language_modeling:
      return "fill masks";
    case Head::classification:
      return "classify by a head of its own";
  }
  return "";
}

const FamilyEntry& family_of(const ModelConfig& config) {
  for (const auto& family : families()) {
    if (family.architecture == config.architecture) return family;
  }
  throw ConfigError(fmt::format("model.architecture: {} is not in this build", name_of(config.architecture)));
}

}  // namespace

torch::Device Model::device() const { return parameters().front().device(); }

void Model::checkpoint_activations(ActivationCheckpointing what) {
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* const stack = module->as<StackImpl>()) stack->checkpoint_activations(what);
  }
}

void DecodingState::reorder(const torch::Tensor& rows) {
  cache.reorder(rows);
  if (starts.defined()) starts = starts.index_select(0, rows);
  if (memory.defined()) memory = memory.index_select(0, rows);
  if (memory_lengths.defined()) memory_lengths = memory_lengths.index_select(0, rows);
}

void check_model(const ModelConfig& config, const ModelPurpose& purpose) {
  const auto& family = family_of(config);
  validate(config, [](std::string_view key, std::string_view problem) {
    throw ConfigError(fmt::format("model.{}: {}", key, problem));
  });
  if (std::find(family.heads.begin(), family.heads.end(), purpose.head) == family.heads.end()) {
    throw ConfigError(fmt::format("model.architecture: {} {} cannot {}: choose another architecture or task",
                                  config.architecture == Architecture::decoder ? "a" : "an",
                                  name_of(config.architecture), purpose_name(purpose.head)));
  }
  const int64_t vocab_size = config.vocab_size.value_or(purpose.vocab_size);
  if (vocab_size < 1)
    throw ConfigError("model.vocab_size: not given, and there is no tokenizer to take it from");
  if (vocab_size < purpose.vocab_size) {
    throw ConfigError(
        fmt::format("model.vocab_size: {} is less than the {} tokens of the tokenizer: leave the key out",
                    vocab_size, purpose.vocab_size));
  }
  if (purpose.head == Head::classification && purpose.n_classes < 1) {
    throw ConfigError("a classifier needs at least one class");
  }
}

std::shared_ptr<Model> make_model(const ModelConfig& config, const ModelPurpose& purpose) {
  check_model(config, purpose);
  auto model = family_of(config).make(config, purpose);
  initialize(*model, config);
  return model;
}

}  // namespace zoo
