#include "data/structures/backbone_batches.h"

#include <algorithm>

#include <torch/types.h>

#include "base/random.h"
#include "base/residues/residues.h"
#include "data/epoch_plan.h"

namespace zoo {
namespace {

/// Residues `first` … `first` + `count` - 1 of a chain.
struct Crop {
  const Backbone& chain;
  int64_t first, count;
};

Batch batch_of(const std::vector<Crop>& crops, int64_t copies) {
  const auto B = std::ssize(crops);
  int64_t L = 0;
  for (const auto& crop : crops) L = std::max(L, crop.count);
  auto ids = torch::full({B, L}, kUnknownResidue, torch::kInt64);
  auto lengths = torch::empty({B}, torch::kInt64);
  auto positions = torch::zeros({B, L, kBackboneAtoms, 3});
  auto known = torch::zeros({B, L, kBackboneAtoms});
  Batch batch;
  for (int64_t b = 0; b < B; ++b) {
    const auto& [chain, first, count] = crops[static_cast<size_t>(b)];
    const auto part = [&, from = first, n = count](const torch::Tensor& all) {
      return all.narrow(0, from, n);
    };
    const auto mask = part(chain.known).to(torch::kFloat);
    const auto places = part(chain.positions);
    const auto centre = places.select(1, kCaPlace).mean(0);
    ids[b].narrow(0, 0, count).copy_(part(chain.residues));
    lengths[b] = count;
    positions[b].narrow(0, 0, count).copy_((places - centre) * mask.unsqueeze(-1));
    known[b].narrow(0, 0, count).copy_(mask);
    batch.tokens += count * copies;
  }
  const auto repeated = [&](const torch::Tensor& rows) {
    return copies == 1 ? rows : rows.repeat_interleave(copies, 0);
  };
  batch.input = {.ids = repeated(ids), .lengths = repeated(lengths)};
  batch.fields = {{fields::kBackbone, repeated(positions)}, {fields::kKnownAtoms, repeated(known)}};
  return batch;
}

class BackboneBatches final : public PlannedBatches {
 public:
  BackboneBatches(std::shared_ptr<const std::vector<Backbone>> chains, const BackboneBatchOptions& options)
      : PlannedBatches(options.batches),
        chains_(std::move(chains)),
        most_(options.max_residues),
        copies_(shuffled() ? options.copies : 1) {
    for (const auto& chain : *chains_)
      lengths_.push_back(shuffled() ? std::min(chain.length(), most_) : chain.length());
  }

 private:
  EpochPlan make_plan(int64_t epoch) const override { return plan_epoch(lengths_, options(), epoch); }

  Batch make(int64_t epoch, std::span<const int64_t> examples) const override {
    std::vector<Crop> crops;
    for (const int64_t example : examples) {
      const auto& chain = (*chains_)[static_cast<size_t>(example)];
      const int64_t count = lengths_[static_cast<size_t>(example)];
      CounterRandom random(
          {options().seed, kOffsetPurpose, static_cast<uint64_t>(epoch), static_cast<uint64_t>(example)});
      crops.push_back({.chain = chain, .first = random.below(chain.length() - count + 1), .count = count});
    }
    auto batch = batch_of(crops, copies_);
    batch.fields[fields::kChainNumbers] =
        torch::tensor(std::vector<int64_t>(examples.begin(), examples.end()), torch::kInt64)
            .repeat_interleave(copies_, 0);
    return batch;
  }

  std::shared_ptr<const std::vector<Backbone>> chains_;
  int64_t most_, copies_;
  std::vector<int64_t> lengths_;  // of the chains in batches
};

}  // namespace

std::unique_ptr<BatchSource> backbone_batches(std::shared_ptr<const std::vector<Backbone>> chains,
                                              const BackboneBatchOptions& options) {
  return std::make_unique<BackboneBatches>(std::move(chains), options);
}

}  // namespace zoo
