#include "pages/structures/predicted_structure.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "base/residues/residues.h"
#include "data/structures/backbone_batches.h"
#include "models/inference_scope.h"

namespace zoo {
namespace {

/// A chain whose residues are numbered from 1. positions: (L, 3), of the CA atoms.
CaTrace trace_of(const torch::Tensor& residues, const torch::Tensor& positions) {
  const auto n = residues.size(0);
  CaTrace trace{.chains = {"A"},
                .chain_of = std::vector<int64_t>(static_cast<size_t>(n), 0),
                .letters = {},
                .numbers = {},
                .positions = positions.to(torch::kCPU, torch::kDouble).contiguous(),
                .b_factors = std::vector<double>(static_cast<size_t>(n), 0)};
  for (int64_t i = 0; i < n; ++i) {
    trace.letters += residue_letter(residues[i].item<int64_t>());
    trace.numbers.push_back(std::to_string(i + 1));
  }
  return trace;
}

}  // namespace

ShownStructure shown_prediction(std::string title, const FoldedChain& folded, CaTrace trace,
                                std::optional<SuperposedTraces> truth, std::string truth_title) {
  std::vector<int64_t> places;  // residues are numbered from 1
  for (const auto& number : trace.numbers) places.push_back(std::stoll(number) - 1);
  const auto chosen = torch::tensor(places);
  return {.title = std::move(title),
          .trace = std::move(trace),
          .origin = folded.mean_plddt ? StructureOrigin::predicted : StructureOrigin::file,
          .predicted_tm_score = folded.tm_score,
          .aligned_error = folded.aligned_error.defined()
                               ? folded.aligned_error.index_select(0, chosen).index_select(1, chosen)
                               : torch::Tensor(),
          .truth = std::move(truth),
          .truth_title = std::move(truth_title)};
}

ShownStructure shown_example(Task& task, Model& model) {
  const InferenceScope scope(model);
  const auto batch = task.batches(Split::valid).batch(0, 0);
  const auto seed = static_cast<uint64_t>(batch.field(fields::kChainNumbers)[0].item<int64_t>());
  const auto length = batch.input.row_lengths().front();
  const TokenBatch chain{.ids = batch.input.ids.narrow(0, 0, 1).narrow(1, 0, length)};
  Batch alone;
  alone.input = chain;
  const auto placed = place_backbones(model, model.on_device(alone).input, {.seeds = std::span(&seed, 1)})[0];
  const auto residues = chain.ids[0];
  const auto truth = batch.field(fields::kBackbone)[0].narrow(0, 0, length);
  auto predicted = trace_of(residues, placed.select(1, kCaPlace));
  auto superposition =
      superposed(predicted, "the prediction", trace_of(residues, truth.select(1, kCaPlace)), "the truth");
  return {.title = "a chain of the validation data",
          .trace = std::move(predicted),
          .truth = std::move(superposition),
          .truth_title = "the truth"};
}

}  // namespace zoo
