#pragma once
// `embedding:`, how the hidden states of a text become its vector: what sentence-transformers keeps in
// modules.json and the files beside it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"

namespace zoo {

/// How the hidden states of a text's tokens become one vector. The tokens include the special tokens that the
/// model reads with the text, such as <cls>, <sep> or <eos>, as in sentence-transformers; padding never
/// counts.
enum class EmbeddingPooling {
  mean,           // their mean
  cls,            // the first token: the class token of an encoder. (That of a decoder sees only itself.)
  last,           // the last token
  max,            // the largest number of each dimension
  weighted_mean,  // their mean, token t (from 1) with weight t (Muennighoff 2022)
  mean_sqrt_len,  // their sum, divided by the square root of their number
  pooler,         // dense and tanh on the class token (BERT): for encoders with `model.pooler: true`
};
constexpr auto config_names(EmbeddingPooling) {
  return std::to_array<std::string_view>(
      {"mean", "cls", "last", "max", "weighted_mean", "mean_sqrt_len", "pooler"});
}

enum class DenseActivation { none, tanh, relu, gelu, gelu_tanh, sigmoid, silu };
constexpr auto config_names(DenseActivation) {
  return std::to_array<std::string_view>({"none", "tanh", "relu", "gelu", "gelu_tanh", "sigmoid", "silu"});
}

/// A dense map of a vector, whose weights are in RUN/dense.safetensors.
struct DenseConfig {
  int64_t in_features = 1, out_features = 1;
  bool bias = true;
  DenseActivation activation = DenseActivation::tanh;
};
void describe(ConfigVisitor& v, DenseConfig& c);

/// A text that stands before every text of a kind, such as "query: ".
struct PromptConfig {
  std::string name, text;
};
void describe(ConfigVisitor& v, PromptConfig& c);

struct EmbeddingConfig {
  /// Several are put one after the other. Empty: `last` for a decoder, whose last token alone sees the whole
  /// text, and `mean` for the other families.
  std::vector<EmbeddingPooling> pooling = {};
  bool include_prompt = true;           // whether the tokens of the prompt are pooled
  std::vector<DenseConfig> dense = {};  // after pooling, in this order
  bool normalize = false;               // to a Euclidean norm of 1, at the end
  bool lower_case = false;              // texts are read in lower case
  std::vector<PromptConfig> prompts = {};
  std::optional<std::string> default_prompt = {};  // a name of `prompts`; default: none

  /// Null if there is none of this name.
  const PromptConfig* find_prompt(std::string_view name) const;
};
/// Throws ConfigError for a pooling that is not known.
void describe(ConfigVisitor& v, EmbeddingConfig& c);
/// "cls and mean, dense 768 to 256 (tanh), norm 1, behind the prompt query"; empty if no key is set.
std::string to_text(const EmbeddingConfig& c);
/// Checks across keys.
void validate(const EmbeddingConfig& c, const Complain& complain);

}  // namespace zoo
