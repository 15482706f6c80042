#include "generation/fill_mask.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"
#include "generation/prompt.h"
#include "generation/rules/logits_processors.h"
#include "models/inference_scope.h"
#include "models/model.h"

namespace zoo {
namespace {

/// Log-probabilities of every token at `positions` of `ids`: (N, V) on the CPU.
torch::Tensor log_probabilities_at(Model& model, const TokenIds& ids, const std::vector<int64_t>& positions) {
  const InferenceScope scope(model);
  Batch batch;
  batch.input.ids = torch::tensor(ids, torch::kInt64).unsqueeze(0);
  batch.positions = torch::tensor(positions, torch::kInt64);
  batch.targets = torch::zeros_like(batch.positions);  // the values are never read
  batch.tokens = static_cast<int64_t>(ids.size());
  const auto logits = model.logits(model.features(model.on_device(batch))).to(torch::kCPU, torch::kFloat64);
  const auto result = logits.log_softmax(1);
  if (result.isnan().any().item<bool>()) fail_not_a_number();
  return result;
}

/// Whether the first character is a letter or digit of a script from Latin to Arabic. These scripts separate
/// words with blanks.
bool begins_with_letter(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text.front());
  return byte < 0x80 ? std::isalnum(byte) != 0 : byte > 0xC2 && byte < 0xE0;
}

/// The `n` likeliest combinations of one candidate for each mask.
std::vector<Output> combinations(const std::vector<std::vector<MaskCandidate>>& masks, size_t n) {
  std::vector<Output> best(1);
  for (const auto& candidates : masks) {
    std::vector<Output> longer;
    for (size_t i = 0; i < best.size(); ++i) {
      // Both lists are sorted, so (i + 1)(j + 1) combinations are at least as likely as this one.
      for (size_t j = 0; j < candidates.size() && (i + 1) * (j + 1) <= n; ++j) {
        const auto& candidate = candidates[j];
        const double logprob = std::log(candidate.probability);
        auto& output = longer.emplace_back(best[i]);
        output.ids.push_back(candidate.id);
        output.logprobs.push_back(logprob);
        output.score += logprob;
      }
    }
    std::ranges::stable_sort(longer, std::greater<>(), &Output::score);
    longer.resize(std::min(longer.size(), n));
    best = std::move(longer);
  }
  return best;
}

}  // namespace

std::string shown_alone(const Tokenizer& tokenizer, int64_t id) {
  std::string label = tokenizer.label(id);
  const auto text = tokenizer.decode({&id, 1});
  if (label == "▁") return "␣";
  if (text.empty() || excerpt(text) != text) return label;
  // A vocabulary that marks the beginnings of words encodes this text differently if it stands alone.
  const bool goes_on = !label.starts_with("▁") && tokenizer.encode(text) != TokenIds{id};
  return goes_on && begins_with_letter(text) ? "-" + text : text;
}

FilledMasks fill_masks(Model& model, const Tokenizer& tokenizer, const TokenIds& prompt,
                       const FillMaskOptions& options) {
  const auto& special = tokenizer.special();
  check_prompt_ids(prompt, tokenizer, 0);
  TextFrame frame;
  if (special.cls >= 0) frame.before.push_back(special.cls);
  if (special.sep >= 0) frame.after.push_back(special.sep);
  frame = tokenizer.frame().value_or(frame);
  TokenIds ids = framed(frame, prompt);
  const auto offset = std::ssize(frame.before);

  std::vector<int64_t> positions;
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] == special.mask) positions.push_back(offset + static_cast<int64_t>(i));
  }
  if (positions.empty())
    throw DataError("there is no <mask> in the text: write it where a token is to be filled in");
  if (static_cast<int64_t>(ids.size()) > options.max_length) {
    throw TextTooLongError(
        fmt::format("the text has {} tokens with <cls> and <sep>, and the model reads at most {}: shorten it",
                    ids.size(), options.max_length));
  }

  auto forbidden = tokenizer.never_generated();
  for (const int64_t end : end_tokens(special)) forbidden.push_back(end);
  const SuppressTokens suppress(forbidden, tokenizer.vocab_size(), torch::kCPU);
  const auto allowed = suppress.process(log_probabilities_at(model, ids, positions), {});
  const auto [values, tokens] =
      allowed.topk(std::min({options.candidates, tokenizer.vocab_size(), allowed.size(1)}), 1);
  FilledMasks result{.prompt_ids = prompt, .masks = {}, .outputs = {}};
  for (int64_t mask = 0; mask < values.size(0); ++mask) {
    auto& candidates = result.masks.emplace_back();
    for (int64_t i = 0; i < values.size(1); ++i) {
      const double logprob = values[mask][i].item<double>();
      if (!std::isfinite(logprob)) break;
      const auto id = tokens[mask][i].item<int64_t>();
      candidates.push_back({.id = id,
                            .text = tokenizer.decode({&id, 1}),
                            .shown = shown_alone(tokenizer, id),
                            .probability = std::exp(logprob)});
    }
  }
  result.outputs = combinations(result.masks, static_cast<size_t>(options.candidates));
  for (auto& output : result.outputs) {
    for (size_t i = 0; i < positions.size(); ++i) ids[static_cast<size_t>(positions[i])] = output.ids[i];
    output.text = tokenizer.decode(ids);
  }
  return result;
}

FilledMasks fill_masks(Model& model, const Tokenizer& tokenizer, std::string_view text,
                       const FillMaskOptions& options) {
  check_prompt_size(text, options.max_length);
  return fill_masks(model, tokenizer, tokenizer.encode_masked(text), options);
}

}  // namespace zoo
