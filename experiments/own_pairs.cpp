#include "experiments/own_pairs.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "data/file_lines.h"
#include "data/tables.h"
#include "data/text_files.h"
#include "io/config/yaml_text.h"
#include "io/file_kind.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct Side {
  int64_t lines = 0, bytes = 0;
};

Side read_side(const fs::path& file) {
  Side side;
  for (FileLines lines(file); lines.next(); ++side.lines) side.bytes += std::ssize(lines.line());
  return side;
}

bool is_pair(const std::vector<fs::path>& files) {
  if (files.size() != 2) return false;
  auto first = files[0], second = files[1];
  const auto is_side = [](const fs::path& file) {
    return file.extension().string().size() > 1 && !is_table(file) &&
           !has_extension(file, {".txt", ".text", ".md", ".log", ".tex", ".html", ".xml"});
  };
  return is_side(first) && is_side(second) && first.extension() != second.extension() &&
         first.replace_extension() == second.replace_extension();
}

}  // namespace

std::optional<TextRecipe> recipe_for_pairs(const std::vector<fs::path>& files) {
  if (!is_pair(files)) return std::nullopt;
  const auto source = read_side(files[0]), target = read_side(files[1]);
  constexpr int64_t fewest = 20;
  if (source.lines != target.lines)
    throw DataError(
        fmt::format("{} has {} lines, but {} has {}: lines of a translator's files belong together",
                    files[0].string(), source.lines, files[1].string(), target.lines));
  if (source.lines < fewest)
    throw DataError(fmt::format("{}: {} lines are too few to learn to translate from: give {} or more",
                                files[0].string(), source.lines, fewest));
  auto prefix = files[0];
  prefix.replace_extension();
  const int64_t n = source.lines, batch_size = 32, bytes = source.bytes + target.bytes;
  const int64_t steps = std::clamp<int64_t>(10 * n / batch_size, 100, 2000);
  const auto name_of = [](const fs::path& file) { return file.extension().string().substr(1); };
  TextRecipe recipe;
  recipe.name = name_of_run(files[0]);
  recipe.bytes = bytes;
  recipe.yaml = fmt::format(
      R"(# Chosen for {n} pairs of lines. `zoo config` explains the keys.
name: {name}
task: text_to_text
data:
  train: {prefix}  # {prefix}.{source} and {prefix}.{target}
  valid_fraction: 0.1  # the last lines
  source: {source}
  target: {target}
  sequence_length: 64
  tokenizer: {{type: sentencepiece, vocab_size: {vocab_size}}}
model:
  architecture: encoder_decoder
  d_model: 128
  n_layers: 2  # in the encoder and in the decoder
  n_heads: 4
  activation: swiglu
  gate: fused
  norm: rms_norm
  position: sinusoidal
  bias: false
  max_positions: 128
  tie_embeddings: true
  share_embeddings: true
  dropout: 0.1
training:
  steps: {steps}
  max_seconds: 300  # on a slow machine the learning rate falls sooner
  batch_size: {batch_size}
  label_smoothing: 0.1
  optimizer: {{type: muon, lr: 0.02, betas: [0.9, 0.95], weight_decay: 0.01, muon: {{adamw_lr: 3.0e-3, precision: fp32}}}}
  schedule: {{type: linear, warmup_steps: {warmup}}}
  evaluate_every: {every}  # the weights of the best evaluation are kept
  checkpoint_every: {every}
  keep_checkpoints: 1
generation: {{beam: 4, temperature: 0, max_new_tokens: 64}}
)",
      fmt::arg("n", n), fmt::arg("name", yaml_text(recipe.name)),
      fmt::arg("prefix", yaml_text(prefix.string())), fmt::arg("source", yaml_text(name_of(files[0]))),
      fmt::arg("target", yaml_text(name_of(files[1]))),
      fmt::arg("vocab_size", std::clamp<int64_t>(bytes / 50, 300, 8000)), fmt::arg("steps", steps),
      fmt::arg("batch_size", batch_size), fmt::arg("warmup", steps / 20),
      fmt::arg("every", std::max<int64_t>(steps / 5, 1)));
  recipe.summary = fmt::format(
      "{} pairs of lines, from {} to {}, of which the last 10 % are for validation\n"
      "  model     an encoder and a decoder of 2 layers, 128 wide\n  training  {} steps of {} pairs\n",
      n, name_of(files[0]), name_of(files[1]), steps, batch_size);
  return recipe;
}

}  // namespace zoo
