#pragma once
// The language model of proteins inside a model that folds (Lin et al. 2023, ESMFold): the states before,
// between and after its layers are mixed with learnt weights, and become a vector for each residue.

#include <cstdint>
#include <optional>
#include <vector>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "models/embedder.h"
#include "models/families/families.h"
#include "models/stack.h"

namespace zoo {

/// `architecture.language_model:`, an encoder of residues. Its keys are those of `model` that say what such
/// an encoder computes. Dropout is 0, because the model is usually frozen.
struct LanguageModelConfig {
  LanguageModelConfig();
  ModelConfig model;
};
void describe(ConfigVisitor& v, LanguageModelConfig& c);

/// The key `language_model` of a family.
void describe_language_model(ConfigVisitor& v, std::optional<LanguageModelConfig>& c);
/// Checks across its keys; `complain` gets keys relative to `model`.
void validate_language_model(const std::optional<LanguageModelConfig>& c, const Complain& complain);

/// The rows of the table of a language model.
struct ResidueTokens {
  std::vector<int64_t> residues;  // by their kind (base/residues/residues.h)
  int64_t start = 0, padding = 0, end = 0;
  int64_t n_rows = 0;  // where model.vocab_size says nothing
};
/// Whether gradients reach the weights of the language model itself.
enum class LanguageGradients { none, all };

struct ResidueLanguageOptions {
  ResidueLanguageOptions(ModelConfig model, ResidueTokens tokens, int64_t width)
      : model_(std::move(model)), tokens_(std::move(tokens)), width_(width) {}
  TORCH_ARG(ModelConfig, model);
  TORCH_ARG(ResidueTokens, tokens);
  /// C: of the vectors of residues.
  TORCH_ARG(int64_t, width);
  TORCH_ARG(LanguageGradients, gradients) = LanguageGradients::all;
};

class ResidueLanguageImpl : public Cloneable<ResidueLanguageImpl> {
 public:
  explicit ResidueLanguageImpl(const ResidueLanguageOptions& options);
  /// Chains of kinds of residues (B, L) → (B, L, C).
  torch::Tensor forward(const TokenBatch& chains);
  /// The states before, between and after the layers over start, residues and end: (B, L + 2, D) each. The
  /// attention weights of the layers are appended to `maps`, if it is given.
  std::vector<torch::Tensor> states(const TokenBatch& chains, std::vector<torch::Tensor>* maps = nullptr);
  auto arguments() const { return std::tie(options); }

  ResidueLanguageOptions options;
  TokenEmbedder encoder_embedder{nullptr};
  Stack encoder{nullptr};
  torch::Tensor layer_weights;  // (n_layers + 1), before a softmax
  Norm norm{nullptr};
  Linear in{nullptr}, out{nullptr};  // D → C → C
};
TORCH_MODULE(ResidueLanguage);

/// The language model of a model of ours. Its table has rows for the kinds of residues, the start and the
/// end. width: C.
ResidueLanguageOptions language_options(const LanguageModelConfig& config, int64_t width);

/// Adds the cost of such a module with path `name` for B chains of `length` residues.
void count_residue_language(CostAccount& account, const std::string& name,
                            const ResidueLanguageOptions& options, int64_t batch_size, int64_t length);

/// A language model with those of the keys of `found` that it has; nothing if `found` is no encoder.
std::optional<LanguageModelConfig> language_model_like(const ModelConfig& found);

/// It as `init_from` finds it: under the module "language" and the key architecture.language_model.
std::optional<InnerModel> inner_language_model(const std::optional<LanguageModelConfig>& config);

}  // namespace zoo
