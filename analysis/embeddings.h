#pragma once
// Vectors of texts and images, from the final hidden states of a trained model.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "checkpoints/run.h"
#include "data/text/tokenizer.h"
#include "models/model.h"
#include "tasks/task_type.h"

namespace zoo {

/// How the hidden states of a text's tokens become one vector. The tokens include the special tokens that the
/// model reads with the text, such as <cls>, <sep> or <eos>, as in sentence-transformers; padding never
/// counts.
enum class EmbeddingPooling {
  mean,    // their mean
  cls,     // the first token: the class token of an encoder. (The first token of a decoder sees only itself.)
  last,    // the last token
  pooler,  // dense and tanh on the class token (BERT): for classifiers with an encoder and `model.pooler:
           // true`
};
constexpr auto config_names(EmbeddingPooling) {
  return std::to_array<std::string_view>({"mean", "cls", "last", "pooler"});
}

struct EmbedOptions {
  TextLayout layout = TextLayout::tokens;
  int64_t max_length = 512;  // tokens of a text, special ones included; texts beyond are cut
  EmbeddingPooling pooling = EmbeddingPooling::mean;
  bool normalize = false;                                                // to a Euclidean norm of 1
  std::function<void(int64_t done, int64_t all)> on_progress = nullptr;  // counts texts
};

struct Embeddings {
  torch::Tensor vectors;  // (N, D) float on the CPU, in the order of the texts
  int64_t n_cut = 0;      // texts of which only the beginning was read
};

/// How a run embeds texts: the layout and length of its training, and a pooling. Without `pooling` it is last
/// for a decoder, whose last token alone sees the whole text, and mean for the other families; of an
/// encoder-decoder the hidden states are the encoder's. Throws UsageError if the task has no texts, or the
/// model has no pooler.
EmbedOptions embed_options(const Run& run, std::optional<EmbeddingPooling> pooling = {});

/// The vector of each text. The texts go through the model in batches of similar lengths, which changes a
/// vector by rounding alone. Throws DataError if a text has no tokens or cannot be encoded, CheckpointError
/// if a vector has numbers that are not finite.
Embeddings embed(Model& model, const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                 const EmbedOptions& options);

/// The vector of each image file: what a classifier's head reads, the class token or the mean of the places.
/// Only the options `normalize` and `on_progress` count. Throws UsageError if the run does not classify
/// images, DataError if a file cannot be read, CheckpointError as embed().
Embeddings embed_images(const Run& run, const std::vector<std::string>& files, const EmbedOptions& options);

/// (B, D) float: the pooled hidden states of the rows of batch.input.
torch::Tensor pooled_states(Model& model, const Batch& batch, EmbeddingPooling pooling);

}  // namespace zoo
