#pragma once
// A trained model that is open for requests, and what can be asked of it.

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <c10/core/Device.h>

#include "analysis/causes/trained_lens.h"
#include "checkpoints/run.h"
#include "generation/generator.h"
#include "text/chat_template.h"

namespace zoo {

/// What can be asked of a model.
enum class Ability {
  completions,        // texts that continue or answer a prompt
  chat,               // answers in a conversation
  embeddings,         // vectors of texts
  predict_text,       // labels of texts or of their words
  predict_image,      // labels of pictures, or objects in them
  translate,          // answers with their alignment
  fill,               // masks in texts
  attention,          // where it looks
  transcribe,         // what is said in recordings
  predict_recording,  // labels of recordings, or what is said in them
  fold,               // structures of proteins
  causes,             // which parts of it, and of its input, an answer rests on
  trained_lens        // what each layer would say by maps that were trained for it
};
constexpr auto config_names(Ability) {
  return std::to_array<std::string_view>({"completions", "chat", "embeddings", "predict_text",
                                          "predict_image", "translate", "fill", "attention", "transcribe",
                                          "predict_recording", "fold", "causes", "trained_lens"});
}

/// Where a model is, and how it is opened.
struct ModelSource {
  std::string id;                   // its name in requests
  std::filesystem::path path;       // a run, a directory of the Hub, or a GGUF file
  std::filesystem::path base = {};  // of an adapter of PEFT; default: what its adapter_config.json names
  /// A smaller run with the same vocabulary, which proposes tokens (Generator::use_draft()); default: none.
  std::filesystem::path draft = {};
  std::filesystem::path lens = {};           // a file of save_lens() for this model; default: none
  std::optional<WeightFormat> weights = {};  // default: AutomaticWeights::fastest
  std::optional<CacheFormat> cache = {};     // default: the run's generation.cache
  c10::Device device = c10::kCPU;
};

/// What a client may know of a model.
struct ModelCard {
  std::string id = {}, task = {}, family = {};
  int64_t created = 0;     // when its weights were written, in seconds since 1970
  int64_t parameters = 0;  // numbers in its weights
  int64_t bytes = 0;       // that the weights take in memory
  WeightFormat weights = WeightFormat::fp32;
  std::optional<int64_t> max_length = {};  // tokens that it reads; nothing for a model that reads no text
  std::optional<double> max_seconds = {};  // of a recording that it reads; nothing for other models
  std::set<Ability> can = {};
  GenerationConfig generation = {};  // what requests leave out
};

/// A model with what its requests need, in evaluation mode. Its functions may be called from several threads;
/// the model itself must be used by one thread at a time (ModelWorker).
class ServedModel {
 public:
  /// Throws as Run::open(), Generator::use_draft() and load_lens(), and UsageError for a draft of another
  /// vocabulary.
  explicit ServedModel(const ModelSource& source);

  const ModelCard& card() const { return card_; }
  const Run& run() const { return run_; }
  Model& model() const { return run_.model(); }
  const Tokenizer& tokenizer() const { return run_.tokenizer(); }
  /// Null if the model does not write texts about prompts; one that reads recordings has none.
  const Generator* generator() const { return generator_ ? &*generator_ : nullptr; }
  /// Null if the model has none.
  const ChatTemplate* chat_template() const { return chat_template_ ? &*chat_template_ : nullptr; }
  /// Empty if the model has none.
  const TrainedLens& lens() const { return lens_; }
  /// Throws ServiceError if the model cannot do this.
  void require(Ability ability) const;

 private:
  void open_draft(const ModelSource& source);
  ModelCard read_card(const ModelSource& source) const;

  Run run_;
  std::optional<Run> draft_;
  std::optional<Generator> generator_;
  std::optional<ChatTemplate> chat_template_;
  TrainedLens lens_;
  ModelCard card_;
};

}  // namespace zoo
