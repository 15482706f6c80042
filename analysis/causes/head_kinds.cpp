#include "analysis/causes/head_kinds.h"

#include <algorithm>
#include <functional>
#include <random>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/text_layout.h"
#include "base/error.h"
#include "models/families/families.h"
#include "models/inference_scope.h"

namespace zoo {
namespace {

constexpr int64_t kUsualLength = 32;

/// What stands before the tokens of a row.
TokenIds before_text(const Run& run) {
  const auto layout = task_type(run.experiment()).layout(run.experiment());
  if (const auto frame = run.tokenizer().frame()) return frame->before;
  const int64_t cls = run.tokenizer().special().cls;
  return layout == TextLayout::cls_tokens_sep && cls >= 0 ? TokenIds{cls} : TokenIds{};
}

/// The tokens that are no special ones.
TokenIds plain_tokens(const Tokenizer& tokenizer, int64_t n_rows_of_table) {
  const auto& special = tokenizer.special();
  TokenIds without{special.pad,  special.unk, special.bos, special.eos,
                   special.mask, special.cls, special.sep, special.start};
  without.insert(without.end(), special.other_ends.begin(), special.other_ends.end());
  TokenIds plain;
  for (int64_t id = 0; id < std::min(tokenizer.vocab_size(), n_rows_of_table); ++id)
    if (std::ranges::find(without, id) == without.end()) plain.push_back(id);
  return plain;
}

int64_t length_for(const Run& run, const RepeatedTokens& options, int64_t n_before) {
  const int64_t most = (run.experiment().model.max_positions - n_before) / 2;
  const int64_t length = options.length.value_or(std::min(kUsualLength, most));
  if (length < 2 || length > most)
    throw UsageError(fmt::format(
        "{} tokens that are repeated do not fit: the model sees {} tokens; give a length from 2 to {}",
        length, run.experiment().model.max_positions, most));
  return length;
}

/// The mean weight on a key `back` columns before each query from `first` on, for each head: (H).
torch::Tensor weight_on(const torch::Tensor& map, int64_t first, int64_t back) {
  return map.diagonal(-back, -2, -1)
      .narrow(-1, first - back, map.size(-2) - first)
      .mean(torch::IntArrayRef({0, 2}));
}

double weight_of(const HeadKinds& head, HeadRole role) {
  switch (role) {
    case HeadRole::previous_token:
      return head.previous;
    case HeadRole::duplicate_token:
      return head.duplicate;
    case HeadRole::induction:
      return head.induction;
  }
  return 0;
}

}  // namespace

std::vector<AblatedPart> strongest_heads(std::vector<HeadKinds> heads, HeadRole role, int64_t most) {
  std::ranges::stable_sort(heads, std::greater(),
                           [&](const HeadKinds& head) { return weight_of(head, role); });
  std::vector<AblatedPart> parts;
  for (const auto& head : heads) {
    if (std::ssize(parts) == most) break;
    parts.push_back(
        {.place = {.kind = ActivationKind::attention_heads, .layer = head.layer}, .head = head.head});
  }
  return parts;
}

std::vector<HeadKinds> kinds_of_heads(AttentionKind kind, const std::vector<torch::Tensor>& maps,
                                      int64_t n_before, int64_t length) {
  std::vector<HeadKinds> heads;
  const int64_t second = n_before + length;
  for (size_t layer = 0; layer < maps.size(); ++layer) {
    const auto map = maps[layer].to(torch::kCPU, torch::kDouble);
    const auto previous = weight_on(map, n_before + 1, 1), duplicate = weight_on(map, second, length),
               induction = weight_on(map, second, length - 1);
    for (int64_t h = 0; h < map.size(1); ++h) {
      heads.push_back({.kind = kind,
                       .layer = static_cast<int64_t>(layer),
                       .head = h,
                       .previous = previous[h].item<double>(),
                       .duplicate = duplicate[h].item<double>(),
                       .induction = induction[h].item<double>()});
    }
  }
  return heads;
}

Batch repeated_tokens(const Run& run, const RepeatedTokens& options) {
  const auto& experiment = run.experiment();
  if (!task_type(experiment).layout)
    throw UsageError(
        fmt::format("the task {} reads no texts: its heads cannot repeat tokens", experiment.task.type));
  const auto before = before_text(run);
  const int64_t length = length_for(run, options, std::ssize(before));
  const auto plain =
      plain_tokens(run.tokenizer(), experiment.model.vocab_size.value_or(run.tokenizer().vocab_size()));
  if (plain.size() < 2) throw UsageError("the vocabulary has no two tokens that could be drawn");
  std::mt19937_64 random(options.seed);
  std::vector<torch::Tensor> rows, targets, positions;
  const int64_t n_before = std::ssize(before), width = n_before + 2 * length;
  for (int64_t row = 0; row < options.n_rows; ++row) {
    TokenIds ids = before;
    for (int64_t i = 0; i < length; ++i) ids.push_back(plain[random() % plain.size()]);
    ids.insert(ids.end(), ids.begin() + n_before, ids.end());
    rows.push_back(torch::tensor(ids, torch::kInt64));
    targets.push_back(rows.back().narrow(0, n_before + length + 1, length - 1));
    positions.push_back(torch::arange(length - 1, torch::kInt64) + row * width + n_before + length);
  }
  Batch batch;
  batch.input.ids = torch::stack(rows);
  if (run.task().purpose().head != HeadKind::language_modeling || batch.decoder.defined()) return batch;
  batch.targets = torch::cat(targets);
  batch.positions = torch::cat(positions);
  return batch;
}

HeadKindReport head_kinds(const Run& run, const RepeatedTokens& options) {
  const auto& experiment = run.experiment();
  if (const auto problem = why_no_maps(experiment.model)) throw UsageError(*problem + ": choose another run");
  if (shape_of(experiment.model) == FamilyShape::encoder_decoder)
    throw UsageError("detectors of heads are for models with one side: a decoder or an encoder");
  const auto batch = repeated_tokens(run, options);
  auto& model = run.model();
  const InferenceScope inference(model);
  AttentionMaps maps;
  model.attention_maps(model.on_device(batch), maps);
  const bool decodes = maps.encoder.empty();
  const auto n_before = std::ssize(before_text(run));
  HeadKindReport report{.name = experiment.name, .length = (batch.input.length() - n_before) / 2};
  report.heads = kinds_of_heads(decodes ? AttentionKind::decoder : AttentionKind::encoder,
                                decodes ? maps.decoder : maps.encoder, n_before, report.length);
  if (batch.targets.defined()) report.recall = Ablation(model, {batch}, AblationBy::zero).whole().accuracy();
  return report;
}

}  // namespace zoo
