#include "models/families/whisper.h"

#include <torch/types.h>

#include "models/families/model_description.h"
#include "models/families/read_tokens.h"
#include "models/families/recordings.h"

namespace zoo {
namespace {

const WhisperConfig& whisper_config(const ModelConfig& config) {
  return config.architecture.as<WhisperConfig>();
}

/// The encoder has sinusoids where the decoder has learned positions, as published.
AudioEmbedderOptions audio_options(const ModelConfig& config, const ModelPurpose& purpose) {
  const auto& whisper = whisper_config(config);
  return AudioEmbedderOptions(config.d_model, n_mels_of(config, purpose))
      .max_frames(whisper.max_frames)
      .length(whisper.pad_to_max ? RecordingLength::padded : RecordingLength::own)
      .positions(audio_positions_for(config.position))
      .dropout(config.dropout);
}

void count_whisper(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                   const PassShape& shape) {
  const auto spectrograms = shape.fields.find(fields::kSpectrograms);
  const int64_t n_frames =
      spectrograms == shape.fields.end() ? 2 * shape.length : spectrograms->second.back();
  const int64_t n_vectors = n_audio_vectors(n_frames);
  // Without a batch, a token is written for each vector.
  const int64_t n_tokens = shape.decoder_length > 0 ? shape.decoder_length : shape.length;
  const auto n_target = static_cast<double>(shape.batch_size * n_tokens);
  count_table(account, account.path("", "token_embedding"), config.vocab_size.value_or(purpose.vocab_size),
              config.d_model, n_target);
  count_audio_embedder(account, "encoder_embedder", audio_options(config, purpose), shape.batch_size,
                       n_frames);
  count_stack(account, "encoder", config, StackRole::encoder,
              {.batch_size = shape.batch_size, .n_queries = n_vectors, .n_keys = n_vectors});
  count_token_embedder(account, "decoder_embedder", config, n_target);
  count_stack(account, "decoder", config, StackRole::decoder_with_memory,
              {.batch_size = shape.batch_size, .n_queries = n_tokens, .n_keys = n_vectors});
  count_head(account, config, purpose, Pooling::none, static_cast<double>(shape.n_targets));
}

}  // namespace

void describe(ConfigVisitor& v, WhisperConfig& c) {
  v.field("max_frames", c.max_frames,
          "The most frames of a recording; twice the rows of the encoder's table of positions.",
          Limits::between(2, 1 << 20));
  v.field("n_mels", c.n_mels, "Bands of the spectrograms; default: data.audio.n_mels, or 80.",
          Limits::between(1, 1 << 12));
  v.field("pad_to_max", c.pad_to_max,
          "Every recording is padded with silence to max_frames, and the model reads the silence, as the "
          "published ones do; false: a recording is as long as it is.");
}

WhisperModel::WhisperModel(const ModelConfig& config, const ModelPurpose& purpose)
    : config_(config), purpose_(purpose) {
  token_embedding_ = register_module("token_embedding", make_token_embedding(config, purpose.vocab_size));
  encoder_embedder_ = register_module("encoder_embedder", AudioEmbedder(audio_options(config, purpose)));
  encoder_ = register_module("encoder", Stack(config, StackRole::encoder));
  decoder_embedder_ = register_module("decoder_embedder", TokenEmbedder(config, token_embedding_));
  decoder_ = register_module("decoder", Stack(config, StackRole::decoder_with_memory));
  head_ = register_module("head", ModelHead(config, purpose, token_embedding_));
}

WhisperModel::Memory WhisperModel::encode(const Batch& batch, std::vector<torch::Tensor>* maps) {
  const auto embedded = encoder_embedder_->forward(batch);
  const auto vectors =
      encoder_({.x = embedded.vectors, .mask = Mask::lengths(embedded.lengths), .self_maps = maps});
  return {.vectors = vectors, .lengths = embedded.lengths};
}

torch::Tensor WhisperModel::decode(const Batch& batch, AttentionMaps* maps) {
  const auto memory = encode(batch, maps ? &maps->encoder : nullptr);
  // Padding of the text is on the right, where the causal mask hides it, but maps show its rows.
  const auto mask = maps ? Mask::causal() & Mask::lengths(batch.decoder.lengths) : Mask::causal();
  const auto x =
      decoder_embedder_({.ids = batch.decoder.ids, .range = PositionRange(0, batch.decoder.length())});
  return decoder_({.x = x,
                   .mask = mask,
                   .memory = memory.vectors,
                   .memory_mask = Mask::lengths(memory.lengths),
                   .self_maps = maps ? &maps->decoder : nullptr,
                   .cross_maps = maps ? &maps->cross : nullptr});
}

torch::Tensor WhisperModel::features(const Batch& batch) {
  return head_->prepare(select_positions(decode(batch, nullptr), batch.positions));
}

torch::Tensor WhisperModel::hidden_states(const Batch& batch) { return encode(batch, nullptr).vectors; }

void WhisperModel::attention_maps(const Batch& batch, AttentionMaps& maps) { decode(batch, &maps); }

DecodingState WhisperModel::begin(const Batch& sources) {
  const auto memory = encode(sources, nullptr);
  const int64_t n_rows = memory.vectors.size(0);
  DecodingState state(n_rows, memory.vectors.device());
  const TokenBatch rows{.ids = memory.vectors.select(2, 0), .lengths = memory.lengths};
  decoder_->begin(state, memory.vectors, rows.row_lengths());
  return state;
}

TokenBatch WhisperModel::first_tokens(const TokenBatch& prompts) {
  const auto& ids = prompts.ids;
  const auto start = torch::full({ids.size(0), 1}, purpose_.start_token, ids.options());
  return {.ids = torch::cat({start, ids}, 1),
          .lengths = prompts.lengths.defined() ? prompts.lengths + 1 : torch::Tensor()};
}

torch::Tensor WhisperModel::forward(const TokenBatch& tokens, DecodingState& state, const LogitsAt& at) {
  return read_tokens({decoder_embedder_, decoder_, head_}, tokens, state, at);
}

std::shared_ptr<torch::nn::Module> WhisperModel::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<WhisperModel>(config_, purpose_);
}

void WhisperModel::pretty_print(std::ostream& stream) const {
  stream << describe_model("WhisperModel", config_, purpose_);
}

ModelFamily whisper_family() {
  ModelFamily family;
  family.name = "whisper";
  family.doc = "Whisper: an encoder over the spectrogram of a recording, and a decoder over text.";
  family.make_options = options_of<WhisperConfig>();
  family.has_memory = true;
  family.heads = {HeadKind::language_modeling};
  family.make = [](const ModelConfig& config, const ModelPurpose& purpose) -> std::shared_ptr<Model> {
    return std::make_shared<WhisperModel>(config, purpose);
  };
  family.count = count_whisper;
  family.set_defaults = [](ModelConfig& config) {
    config.max_positions = 448;
    config.key_bias = false;
  };
  family.validate = validate_audio_positions;
  return family;
}

}  // namespace zoo
