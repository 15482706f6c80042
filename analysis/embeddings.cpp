#include "analysis/embeddings.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>

#include "analysis/text_layout.h"
#include "base/error.h"
#include "base/text.h"
#include "data/epoch_plan.h"
#include "generation/prompt.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "text/batches/padded_rows.h"
#include "tokenizers/unicode/lowercase.h"

namespace zoo {
namespace {

/// The text as it is read: in lower case, behind the prompt.
std::string prepared(const std::string& text, const EmbedOptions& options) {
  auto whole = options.prompt + text;
  return options.lower_case ? lowercase(whole) : whole;
}

/// How many of the first tokens belong to the prompt, special tokens before it included.
int64_t length_of_prompt(const Tokenizer& tokenizer, const EmbedOptions& options) {
  if (options.prompt.empty()) return 0;
  const auto prompt = options.lower_case ? lowercase(options.prompt) : options.prompt;
  const auto ids = encode_text(tokenizer, prompt, options.layout);
  const auto row = with_special_tokens(tokenizer, ids, options.layout);
  const auto begin = std::ranges::search(row, ids).begin() - row.begin();
  return begin + std::ssize(ids);
}

/// (B, T) of the tokens that are pooled: those after the first `n_prompt`, without padding.
torch::Tensor pooled_tokens(const torch::Tensor& hidden, const torch::Tensor& lengths, int64_t n_prompt) {
  const auto options = torch::TensorOptions(torch::kLong).device(hidden.device());
  const auto columns = torch::arange(hidden.size(1), options).unsqueeze(0).expand({hidden.size(0), -1});
  const auto after_prompt = columns >= n_prompt;
  return lengths.defined() ? after_prompt & (columns < lengths.unsqueeze(1)) : after_prompt;
}

/// hidden: (B, T, D). `is_pooled`: (B, T).
torch::Tensor pooled(const torch::Tensor& hidden, const torch::Tensor& is_pooled, EmbeddingPooling pooling) {
  constexpr double least = 1e-9;  // where no token is pooled
  const auto weights = is_pooled.to(torch::kFloat);
  const auto sum_of = [&](const torch::Tensor& w) {
    return hidden.masked_fill(is_pooled.logical_not().unsqueeze(2), 0).mul(w.unsqueeze(2)).sum(1);
  };
  const auto row_at = [&](const torch::Tensor& columns) {
    return hidden.index({torch::arange(hidden.size(0), columns.options()), columns});
  };
  switch (pooling) {
    case EmbeddingPooling::cls:
      return row_at(is_pooled.to(torch::kInt).argmax(1));
    case EmbeddingPooling::last: {
      const auto from_end = is_pooled.flip(1).to(torch::kInt).argmax(1);
      return row_at(hidden.size(1) - 1 - from_end);
    }
    case EmbeddingPooling::max:
      return hidden.masked_fill(is_pooled.logical_not().unsqueeze(2), -std::numeric_limits<float>::infinity())
          .amax(1);
    case EmbeddingPooling::weighted_mean: {
      const auto places = weights * torch::arange(1, hidden.size(1) + 1, weights.options());
      return sum_of(places) / places.sum(1, /*keepdim=*/true).clamp_min(least);
    }
    case EmbeddingPooling::mean_sqrt_len:
      return sum_of(weights) / weights.sum(1, /*keepdim=*/true).clamp_min(least).sqrt();
    default:
      return sum_of(weights) / weights.sum(1, /*keepdim=*/true).clamp_min(least);
  }
}

torch::Tensor activated(const torch::Tensor& x, DenseActivation activation) {
  switch (activation) {
    case DenseActivation::tanh:
      return x.tanh();
    case DenseActivation::relu:
      return x.relu();
    case DenseActivation::gelu:
      return torch::gelu(x);
    case DenseActivation::gelu_tanh:
      return torch::gelu(x, "tanh");
    case DenseActivation::sigmoid:
      return x.sigmoid();
    case DenseActivation::silu:
      return torch::silu(x);
    case DenseActivation::none:
      break;
  }
  return x;
}

/// Checks the vectors, maps and scales them as the options say.
void finish(torch::Tensor& vectors, const EmbedOptions& options) {
  for (const auto& [weight, bias, activation] : options.dense) {
    if (weight.size(1) != vectors.size(1)) {
      throw UsageError(
          fmt::format("the dense map after the pooling reads {} numbers, and this pooling gives {}: "
                      "take the model's own pooling",
                      weight.size(1), vectors.size(1)));
    }
    vectors = activated(torch::linear(vectors, weight, bias), activation);
  }
  if (!vectors.isfinite().all().item<bool>()) {
    throw CheckpointError(
        "the model's hidden states are not numbers: its weights are damaged, or its training diverged; take "
        "an earlier checkpoint");
  }
  if (options.normalize) vectors /= vectors.norm(2, 1, /*keepdim=*/true).clamp_min(1e-12);
}

bool has_pooler(const Run& run) {
  const auto& config = run.experiment().model;
  if (task_type(run.experiment()).labels == LabelSource::options) return true;  // in the common space
  return config.architecture == Architecture::encoder && config.pooler &&
         predicts_once(run.task().purpose().head);
}

}  // namespace

EmbedOptions embed_options(const Run& run, std::vector<EmbeddingPooling> pooling,
                           const std::optional<std::string>& prompt) {
  const auto& experiment = run.experiment();
  const auto& config = experiment.embedding;
  const auto& type = task_type(experiment);
  if (!type.layout)
    throw UsageError(fmt::format("the task {} has no texts: they cannot be embedded", type.name));
  if (pooling.empty()) pooling = config.pooling;
  if (pooling.empty() && type.labels == LabelSource::options) pooling = {EmbeddingPooling::pooler};
  if (pooling.empty()) {
    const bool decodes = shape_of(experiment.model) == FamilyShape::decoder;
    pooling = {decodes ? EmbeddingPooling::last : EmbeddingPooling::mean};
  }
  if (std::ranges::find(pooling, EmbeddingPooling::pooler) != pooling.end() && !has_pooler(run)) {
    throw UsageError(
        "this model has no pooler, which belongs to an encoder that classifies or has no head, with "
        "model.pooler: take "
        "another pooling");
  }
  EmbedOptions options{.layout = type.layout(experiment),
                       .max_length = experiment.data.sequence_length,
                       .pooling = std::move(pooling),
                       .pools_prompt = config.include_prompt,
                       .normalize = config.normalize,
                       .lower_case = config.lower_case};
  if (const auto& name = prompt ? prompt : config.default_prompt) {
    const auto* const found = config.find_prompt(*name);
    if (!found) {
      std::vector<std::string> names;
      for (const auto& known : config.prompts) names.push_back(known.name);
      throw UsageError(fmt::format("the model has no prompt '{}': it has {}", excerpt(*name),
                                   names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
    }
    options.prompt = found->text;
  }
  const auto& maps = run.task().vocabulary().dense;
  for (size_t i = 0; i < config.dense.size(); ++i) {
    const auto tensor = [&](const char* name) {
      const auto found = maps.find(fmt::format("{}.{}", i, name));
      return found == maps.end() ? torch::Tensor() : found->second;
    };
    const auto& dense = config.dense[i];
    options.dense.push_back(
        {.weight = tensor("weight"), .bias = tensor("bias"), .activation = dense.activation});
    const auto& [weight, bias, activation] = options.dense.back();
    const bool fits =
        weight.defined() && weight.sizes() == std::vector{dense.out_features, dense.in_features} &&
        bias.defined() == dense.bias && (!dense.bias || bias.sizes() == std::vector{dense.out_features});
    if (!fits) {
      throw CheckpointError(fmt::format(
          "{}: dense.safetensors has not the maps that embedding.dense describes", run.dir().string()));
    }
  }
  return options;
}

torch::Tensor pooled_states(Model& model, const Batch& batch, const std::vector<EmbeddingPooling>& poolings,
                            int64_t n_prompt) {
  torch::Tensor hidden, is_pooled;
  std::vector<torch::Tensor> parts;
  for (const auto pooling : poolings) {
    if (pooling == EmbeddingPooling::pooler) {
      // The head of such a classifier prepares its features with the pooler. The features of a model that
      // compares texts with pictures are its vectors of texts.
      parts.push_back(model.features(batch).to(torch::kFloat));
      continue;
    }
    if (!hidden.defined()) {
      hidden = model.hidden_states(batch).to(torch::kFloat);
      is_pooled = pooled_tokens(hidden, batch.input.lengths, n_prompt);
    }
    parts.push_back(pooled(hidden, is_pooled, pooling));
  }
  return torch::cat(parts, 1);
}

TokensToEmbed tokens_to_embed(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                              const EmbedOptions& options) {
  const auto room = std::max<int64_t>(options.max_length - n_special_tokens(tokenizer, options.layout), 0);
  const auto frame = tokenizer.frame().value_or(TextFrame{});
  TokensToEmbed tokens;
  if (!options.pools_prompt) tokens.n_prompt = length_of_prompt(tokenizer, options);
  for (const auto& text : texts) {
    const size_t number = tokens.rows.size() + 1;
    try {
      const auto whole = prepared(text, options);
      const auto ids =
          encode_text(tokenizer, part_to_read(whole, options.max_length, frame.cut_at), options.layout);
      if (ids.empty()) throw DataError("there are no tokens, so there is no vector: leave the text out");
      tokens.n_cut += std::ssize(ids) > room ? 1 : 0;
      const auto kept = frame.kept(ids, std::min<int64_t>(std::ssize(ids), room));
      tokens.rows.push_back(with_special_tokens(tokenizer, {kept.begin(), kept.end()}, options.layout));
    } catch (const DataError& error) {
      throw DataError(fmt::format("text {}: {}", number, error.what()));
    }
  }
  return tokens;
}

torch::Tensor embed(Model& model, const Tokenizer& tokenizer, const TokensToEmbed& tokens,
                    const EmbedOptions& options) {
  constexpr BatchLimits most{.rows = 1024, .tokens = 4096};
  const InferenceScope scope(model);
  std::vector<int64_t> lengths;
  for (const auto& row : tokens.rows) lengths.push_back(std::ssize(row));
  // Without a <pad>, padding can be any token: a decoder does not look at what follows.
  const int64_t pad = std::max<int64_t>(tokenizer.special().pad, 0);
  auto result = torch::empty({0, 0});
  const auto embed_batch = [&](std::span<const int64_t> examples) {
    Batch batch;
    batch.input = padded(rows_at(tokens.rows, examples), pad);
    const auto vectors = pooled_states(model, model.on_device(batch), options.pooling, tokens.n_prompt)
                             .to(torch::kCPU, torch::kFloat);
    if (result.numel() == 0) result = torch::empty({std::ssize(tokens.rows), vectors.size(1)});
    result.index_copy_(0, int64_tensor(examples), vectors);
  };
  for_each_batch(lengths, most, embed_batch, options.on_progress);
  finish(result, options);
  return result;
}

Embeddings embed(Model& model, const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                 const EmbedOptions& options) {
  const auto tokens = tokens_to_embed(tokenizer, texts, options);
  return {.vectors = embed(model, tokenizer, tokens, options), .n_cut = tokens.n_cut};
}

Embeddings embed_images(const Run& run, const std::vector<std::string>& files, const EmbedOptions& options) {
  constexpr size_t at_once = 32;
  const auto& type = task_type(run.experiment());
  if (type.predicts_from != PredictionInput::image_file || type.predicts == PredictionKind::objects) {
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
