#pragma once
// Vectors of texts and images, from the final hidden states of a trained model.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "checkpoints/run.h"
#include "models/model.h"
#include "tasks/embedding_config.h"
#include "tasks/task_type.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// A dense map with its weights: (out, in), (out) or none.
struct DenseMap {
  torch::Tensor weight, bias;
  DenseActivation activation = DenseActivation::none;
};

struct EmbedOptions {
  TextLayout layout = TextLayout::tokens;
  int64_t max_length = 512;  // tokens of a text, special ones included; texts beyond are cut
  std::vector<EmbeddingPooling> pooling = {EmbeddingPooling::mean};      // one after the other
  std::string prompt = {};                                               // stands before every text
  bool pools_prompt = true;                                              // whether its tokens are pooled
  std::vector<DenseMap> dense = {};                                      // after the pooling
  bool normalize = false;                                                // to a Euclidean norm of 1
  bool lower_case = false;                                               // texts are read in lower case
  std::function<void(int64_t done, int64_t all)> on_progress = nullptr;  // counts texts
};

struct Embeddings {
  torch::Tensor vectors;  // (N, D) float on the CPU, in the order of the texts
  int64_t n_cut = 0;      // texts of which only the beginning was read
};

/// How a run embeds texts: the layout and length of its training, and what its `embedding` says. Without a
/// pooling here and there it is last for a decoder, whose last token alone sees the whole text, and mean for
/// the other families; of an encoder-decoder the hidden states are the encoder's. A model that compares texts
/// with pictures has `pooler`, which stands for its vector of a text in the space of both. `prompt`: a name
/// of embedding.prompts; default: embedding.default_prompt. Throws UsageError if the task has no texts, the
/// model has no pooler, or there is no such prompt.
EmbedOptions embed_options(const Run& run, std::vector<EmbeddingPooling> pooling = {},
                           const std::optional<std::string>& prompt = {});

/// What a model reads for each text.
struct TokensToEmbed {
  std::vector<TokenIds> rows;  // special tokens included
  int64_t n_prompt = 0;        // the first tokens of each row, which are not pooled
  int64_t n_cut = 0;           // texts of which only the beginning is read
};
/// Throws DataError if a text has no tokens or cannot be encoded.
TokensToEmbed tokens_to_embed(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                              const EmbedOptions& options);

/// (N, D) float on the CPU: the vector of each row. The rows go through the model in batches of similar
/// lengths, which changes a vector by rounding alone. Throws CheckpointError if a vector has numbers that are
/// not finite, UsageError if the dense maps do not fit the pooling.
torch::Tensor embed(Model& model, const Tokenizer& tokenizer, const TokensToEmbed& tokens,
                    const EmbedOptions& options);

/// The same for texts. Throws as both.
Embeddings embed(Model& model, const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                 const EmbedOptions& options);

/// The vector of each image file: what a classifier's head reads, the class token or the mean of the places.
/// Only the options `normalize` and `on_progress` count. Throws UsageError if the run does not classify
/// images, DataError if a file cannot be read, CheckpointError as embed().
Embeddings embed_images(const Run& run, const std::vector<std::string>& files, const EmbedOptions& options);

/// (B, n · D) float: n poolings of the hidden states of the rows of batch.input, without their first
/// `n_prompt` tokens.
torch::Tensor pooled_states(Model& model, const Batch& batch, const std::vector<EmbeddingPooling>& poolings,
                            int64_t n_prompt = 0);

}  // namespace zoo
