#include "analysis/embeddings.h"

#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>

#include "analysis/text_layout.h"
#include "base/error.h"
#include "data/epoch_plan.h"
#include "data/text/batches/padded_rows.h"
#include "generation/prompt.h"
#include "models/families/families.h"
#include "models/inference_scope.h"

namespace zoo {
namespace {

/// What a model reads for each text.
struct EncodedTexts {
  std::vector<TokenIds> rows;
  int64_t n_cut = 0;
};

EncodedTexts encode_all(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                        const EmbedOptions& options) {
  const auto room = static_cast<size_t>(
      std::max<int64_t>(options.max_length - n_special_tokens(tokenizer, options.layout), 0));
  EncodedTexts encoded;
  for (const auto& text : texts) {
    const size_t number = encoded.rows.size() + 1;
    try {
      auto ids = encode_text(tokenizer, beginning_to_read(text, options.max_length), options.layout);
      if (ids.empty()) throw DataError("there are no tokens, so there is no vector: leave the text out");
      if (ids.size() > room) ++encoded.n_cut;
      ids.resize(std::min(ids.size(), room));
      encoded.rows.push_back(with_special_tokens(tokenizer, std::move(ids), options.layout));
    } catch (const DataError& error) {
      throw DataError(fmt::format("text {}: {}", number, error.what()));
    }
  }
  return encoded;
}

/// The mean of the real tokens. hidden: (B, T, D).
torch::Tensor mean_of_tokens(const torch::Tensor& hidden, const torch::Tensor& lengths) {
  if (!lengths.defined()) return hidden.mean(1);
  const auto columns = torch::arange(hidden.size(1), lengths.options()).unsqueeze(0);
  const auto padding = (columns >= lengths.unsqueeze(1)).unsqueeze(2);  // (B, T, 1)
  return hidden.masked_fill(padding, 0).sum(1) / lengths.unsqueeze(1);
}

torch::Tensor last_tokens(const torch::Tensor& hidden, const torch::Tensor& lengths) {
  if (!lengths.defined()) return hidden.select(1, hidden.size(1) - 1);
  return hidden.index({torch::arange(hidden.size(0), lengths.options()), lengths - 1});
}

/// Checks the vectors and scales them as the options say.
void finish(torch::Tensor& vectors, const EmbedOptions& options) {
  if (!vectors.isfinite().all().item<bool>()) {
    throw CheckpointError(
        "the model's hidden states are not numbers: its weights are damaged, or its training diverged; take "
        "an earlier checkpoint");
  }
  if (options.normalize) vectors /= vectors.norm(2, 1, /*keepdim=*/true).clamp_min(1e-12);
}

bool has_pooler(const Run& run) {
  const auto& config = run.experiment().model;
  return config.architecture == Architecture::encoder && config.pooler &&
         predicts_once(run.task().purpose().head);
}

}  // namespace

EmbedOptions embed_options(const Run& run, std::optional<EmbeddingPooling> pooling) {
  const auto& experiment = run.experiment();
  const auto& type = task_type(experiment);
  if (!type.layout)
    throw UsageError(fmt::format("the task {} has no texts: they cannot be embedded", type.name));
  if (pooling == EmbeddingPooling::pooler && !has_pooler(run)) {
    throw UsageError(
        "this model has no pooler, which belongs to an encoder that classifies or has no head, with "
        "model.pooler: take "
        "another pooling");
  }
  const bool decodes = shape_of(experiment.model) == FamilyShape::decoder;
  return {.layout = type.layout(experiment),
          .max_length = experiment.data.sequence_length,
          .pooling = pooling.value_or(decodes ? EmbeddingPooling::last : EmbeddingPooling::mean)};
}

torch::Tensor pooled_states(Model& model, const Batch& batch, EmbeddingPooling pooling) {
  // The head of such a classifier prepares its features with the pooler.
  if (pooling == EmbeddingPooling::pooler) return model.features(batch).to(torch::kFloat);
  const auto hidden = model.hidden_states(batch).to(torch::kFloat);
  switch (pooling) {
    case EmbeddingPooling::cls:
      return hidden.select(1, 0);
    case EmbeddingPooling::last:
      return last_tokens(hidden, batch.input.lengths);
    default:
      return mean_of_tokens(hidden, batch.input.lengths);
  }
}

Embeddings embed(Model& model, const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                 const EmbedOptions& options) {
  constexpr BatchLimits most{.rows = 1024, .tokens = 4096};
  const InferenceScope scope(model);
  const auto encoded = encode_all(tokenizer, texts, options);
  std::vector<int64_t> lengths;
  for (const auto& row : encoded.rows) lengths.push_back(std::ssize(row));
  // Without a <pad>, padding can be any token: a decoder does not look at what follows.
  const int64_t pad = std::max<int64_t>(tokenizer.special().pad, 0);
  Embeddings result{.vectors = torch::empty({0, 0}), .n_cut = encoded.n_cut};
  const auto embed_batch = [&](std::span<const int64_t> examples) {
    Batch batch;
    batch.input = padded(rows_at(encoded.rows, examples), pad);
    const auto vectors = pooled_states(model, batch.to(model.device()), options.pooling).to(torch::kCPU);
    if (result.vectors.numel() == 0) result.vectors = torch::empty({std::ssize(texts), vectors.size(1)});
    result.vectors.index_copy_(0, int64_tensor(examples), vectors);
  };
  for_each_batch(lengths, most, embed_batch, options.on_progress);
  finish(result.vectors, options);
  return result;
}

Embeddings embed_images(const Run& run, const std::vector<std::string>& files, const EmbedOptions& options) {
  constexpr size_t at_once = 32;
  const auto& type = task_type(run.experiment());
  if (type.predicts_from != PredictionInput::image_file || type.finds_objects) {
    throw UsageError(fmt::format("the task {} does not classify images: they cannot be embedded", type.name));
  }
  const InferenceScope scope(run.model());
  std::vector<torch::Tensor> vectors;
  for (size_t begin = 0; begin < files.size(); begin += at_once) {
    const size_t end = std::min(files.size(), begin + at_once);
    const std::vector<std::string> some(files.begin() + static_cast<ptrdiff_t>(begin),
                                        files.begin() + static_cast<ptrdiff_t>(end));
    const auto batch = run.task().read_inputs(some).batch.to(run.model().device());
    vectors.push_back(run.model().features(batch).to(torch::kCPU, torch::kFloat));
    if (options.on_progress) options.on_progress(static_cast<int64_t>(end), std::ssize(files));
  }
  Embeddings result{.vectors = torch::cat(vectors)};
  finish(result.vectors, options);
  return result;
}

}  // namespace zoo
