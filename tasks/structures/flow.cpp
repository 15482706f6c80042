#include "tasks/structures/flow.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "base/residues/residues.h"
#include "data/structures/backbone_batches.h"
#include "layers/folding/rigid.h"

namespace zoo {
namespace {

constexpr int64_t kNumbers = 3 * kBackboneAtoms;

/// A normal number (Box & Muller 1958).
double normal(CounterRandom& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

/// Fills the first `length` residues of a row (L, 4, 3) with normal numbers.
void draw_noise(CounterRandom& random, int64_t length, torch::Tensor row) {
  auto* const to = row.mutable_data_ptr<float>();
  for (int64_t i = 0; i < length * kNumbers; ++i) to[i] = static_cast<float>(normal(random));
}

double draw_time(CounterRandom& random) {
  constexpr double mean = 0.8, deviation = 1.7, uniform_share = 0.02;
  const double logistic = 1 / (1 + std::exp(-(mean + deviation * normal(random))));
  return (1 - uniform_share) * logistic + uniform_share * random.uniform();
}

}  // namespace

FlowPoints flow_points(const Batch& batch, const RowSeed& seed) {
  const auto& backbone = batch.field(fields::kBackbone);
  const auto lengths = batch.input.row_lengths();
  const auto B = backbone.size(0);
  auto noise = torch::zeros(backbone.sizes()), times = torch::empty({B}), quaternions = torch::empty({B, 4});
  for (int64_t b = 0; b < B; ++b) {
    CounterRandom random({seed.seed, static_cast<uint64_t>(seed.first_row + b)});
    times[b] = draw_time(random);
    for (int64_t i = 0; i < 4; ++i) quaternions[b][i] = normal(random);
    draw_noise(random, lengths[static_cast<size_t>(b)], noise[b]);
  }
  const auto turns = rotations_of(quaternions / quaternions.norm(2, -1, true)).to(backbone.device());
  FlowPoints points{.truth = (backbone / FlowModel::kUnit).matmul(turns.transpose(1, 2).unsqueeze(1)),
                    .noise = noise.to(backbone.device()),
                    .places = {},
                    .times = times.to(backbone.device())};
  const auto t = points.times.view({B, 1, 1, 1});
  points.places =
      (t * points.truth + (1 - t) * points.noise) * batch.field(fields::kKnownAtoms).unsqueeze(-1);
  return points;
}

torch::Tensor follow_flow(FlowModel& model, const TokenBatch& chains, std::span<const uint64_t> seeds) {
  const auto lengths = chains.row_lengths();
  const auto B = chains.batch_size();
  auto noise = torch::zeros({B, chains.length(), kBackboneAtoms, 3});
  for (int64_t b = 0; b < B; ++b) {
    CounterRandom random({seeds[static_cast<size_t>(b)]});
    draw_noise(random, lengths[static_cast<size_t>(b)], noise[b]);
  }
  auto places = noise.to(chains.ids.device());
  const auto mask = residue_mask(chains, places.options()).unsqueeze(-1).unsqueeze(-1);
  const auto n = static_cast<double>(model.n_steps());
  const auto known = model.read_chains(chains);
  for (int64_t step = 0; step < model.n_steps(); ++step) {
    const auto times = torch::full({B}, static_cast<double>(step) / n, places.options());
    places = places + model.velocities(known, places, times).to(torch::kFloat) * mask / n;
  }
  return places * FlowModel::kUnit;
}

}  // namespace zoo
