#include "io/config/usual_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace zoo {

std::optional<std::string_view> key_called(std::string_view name) {
  // Names in transformers, nanoGPT and PyTorch.
  constexpr auto names = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"learning_rate", "training.optimizer.lr"},
      {"max_steps", "training.steps"},
      {"max_iters", "training.steps"},
      {"n_steps", "training.steps"},
      {"num_epochs", "training.epochs"},
      {"num_train_epochs", "training.epochs"},
      {"per_device_train_batch_size", "training.batch_size"},
      {"gradient_accumulation_steps", "training.gradient_accumulation"},
      {"grad_clip", "training.clip_grad_norm"},
      {"max_grad_norm", "training.clip_grad_norm"},
      {"early_stopping", "training.patience"},
      {"hidden_size", "model.d_model"},
      {"n_embd", "model.d_model"},
      {"embed_dim", "model.d_model"},
      {"num_hidden_layers", "model.n_layers"},
      {"num_layers", "model.n_layers"},
      {"n_layer", "model.n_layers"},
      {"num_attention_heads", "model.n_heads"},
      {"num_heads", "model.n_heads"},
      {"n_head", "model.n_heads"},
      {"num_key_value_heads", "model.n_kv_heads"},
      {"intermediate_size", "model.d_ff"},
      {"ffn_dim", "model.d_ff"},
      {"hidden_act", "model.activation"},
      {"rope_theta", "model.rotary.theta"},
      {"block_size", "data.sequence_length"},
      {"context_length", "data.sequence_length"},
      {"max_seq_len", "data.sequence_length"},
      {"max_tokens", "generation.max_new_tokens"},
      {"num_beams", "generation.beam"},
      {"num_return_sequences", "generation.num_samples"},
  });
  const auto lower = ascii_lower(name);
  const auto* const found =
      std::ranges::find(names, lower, &std::pair<std::string_view, std::string_view>::first);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace zoo
