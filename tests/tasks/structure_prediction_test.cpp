// Models that learn to fold: losses, noise, scores, trainings.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/random.h"
#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "data/structures/backbone_batches.h"
#include "data/structures/ca_trace.h"
#include "data/structures/structure_comparison.h"
#include "layers/folding/rigid.h"
#include "layers/folding/structure_losses.h"
#include "models/inference_scope.h"
#include "tasks/structures/backbone_scores.h"
#include "tasks/structures/flow.h"
#include "tasks/structures/folded_chain.h"
#include "tasks/structures/structure_loss.h"
#include "tasks/task.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

// The first of these replaces the keys of the other family.
const std::vector<std::string> kPairs = {
    "model.architecture=fold_pairs",
    "model.architecture={type: fold_pairs, passes: 2, n_blocks: 1, residue_width: 32, pair_width: 16, "
    "residue_heads: 2, structure: {residue_width: 32, pair_width: 16, n_heads: 2, n_blocks: 3}}"};
const std::vector<std::string> kFlow = {
    "model={architecture: {type: fold_flow, steps: 20, time_width: 32}, d_model: 64, n_layers: 2, n_heads: "
    "4, "
    "d_ff: 128, dropout: 0}"};

const std::string kFastOptimizer =
    "training.optimizer={type: muon, lr: 0.02, muon: {adamw_lr: 0.005, precision: fp32}}";

/// One chain of 24 residues, helices, strands and a turn, for training and validation.
std::vector<std::string> one_chain(const TinyWorld& world, std::vector<std::string> overrides) {
  world.dir().write("data/one/chain.pdb", to_pdb(backbone_structure("AEAKAAEKLVVVVVGGVVVVVAAA")));
  for (const char* const more :
       {"data.train=one", "data.valid=one", "data.structures={max_residues: 24}",
        "training.gradient_accumulation=1", "training.batch_size=1", "training.evaluate_every=1000",
        "training.checkpoint_every=1000", "training.schedule={type: cosine, warmup_steps: 20}"})
    overrides.emplace_back(more);
  return overrides;
}

/// Returns what the model says of its errors.
FoldedChain expect_learnt(const TinyWorld& world, const std::vector<std::string>& overrides) {
  const auto experiment = world.structure_experiment(overrides);
  train(experiment, {.run_dir = world.path("run")});
  const auto run = zoo::Run::open(world.path("run"));
  const auto untrained = initialized_model(experiment, run.task());
  const auto before = run.task().evaluate(*untrained, Split::valid),
             after = run.task().evaluate(run.model(), Split::valid);
  EXPECT_GT(before.at("rmsd"), 3);
  EXPECT_LT(after.at("rmsd"), 1);
  EXPECT_GT(after.at("lddt_ca"), 0.9);
  EXPECT_GT(after.at("tm_score"), 0.6);
  EXPECT_EQ(after.at("clashes"), 0);
  EXPECT_EQ(after.at("chains"), 1);
  // What is evaluated is what is predicted, as a structure that can be compared.
  const NamedSequence sequence{.name = "chain", .letters = "AEAKAAEKLVVVVVGGVVVVVAAA"};
  const auto folded = fold_chain(run.model(), sequence);
  const auto truth = ca_trace(backbone_structure(sequence.letters), "truth");
  const auto compared = superposed(ca_trace(folded.structure, "folded"), "folded", truth, "truth");
  EXPECT_LT(compared.rmsd, 1);
  EXPECT_EQ(folded.structure.models.front().chains.front().residues.front().atoms.size(), 4U);
  return folded;
}

TEST(StructurePrediction, AFlowLearnsAChain) {
  const TinyWorld world;
  auto overrides = one_chain(world, kFlow);
  overrides.insert(overrides.end(), {"model={n_layers: 3}", "model.architecture.steps=30",
                                     "data.structures={max_residues: 24, copies: 32}", "training.steps=900",
                                     kFastOptimizer, "training.ema_decay=0.98"});
  EXPECT_FALSE(expect_learnt(world, overrides).mean_plddt) << "a flow says nothing of its errors";
}

TEST(StructurePrediction, PairsLearnAChain) {
  const TinyWorld world;
  auto overrides = one_chain(world, kPairs);
  overrides.insert(overrides.end(), {"task={type: structure_prediction, frames: {clamp: 40, confidence: 0}}",
                                     "training.steps=500", kFastOptimizer});
  expect_learnt(world, overrides);
  // What a model says of its errors is learnt once they stay.
  overrides.insert(overrides.end(), {"task.frames.confidence=1", "training.steps=300",
                                     "init_from=" + world.path("run").string(),
                                     "training.freeze=[trunk.*, residue_embedding.*, distance_head.*]"});
  train(world.structure_experiment(overrides), {.run_dir = world.path("sure")});
  const auto run = zoo::Run::open(world.path("sure"));
  const auto folded = fold_chain(run.model(), {.name = "chain", .letters = "AEAKAAEKLVVVVVGGVVVVVAAA"});
  EXPECT_NEAR(*folded.mean_plddt / 100, run.task().evaluate(run.model(), Split::valid).at("lddt_ca"), 0.12);
  EXPECT_LT(folded.aligned_error.mean().item<double>(), 3);
  EXPECT_GT(*folded.tm_score, 0.4);
}

// What is learnt of the errors is what they are, and changes nothing of the structure.
TEST(StructurePrediction, ConfidenceChangesNoStructure) {
  const TinyWorld world;
  const auto folded = [&](const std::string& weight) {
    auto overrides = kPairs;
    overrides.insert(
        overrides.end(),
        {"task={type: structure_prediction, frames: {confidence: " + weight + "}}", "training.steps=4",
         "training.optimizer={type: sgd, lr: 0.01}", "training.clip_grad_norm=0"});
    train(world.structure_experiment(overrides), {.run_dir = world.path("confidence-" + weight)});
    return zoo::Run::open(world.path("confidence-" + weight));
  };
  const auto without = folded("0"), with = folded("1");
  const auto all = with.model().named_parameters();
  for (const auto& item : without.model().named_parameters()) {
    const bool is_confidence = item.key().starts_with("lddt_") || item.key().starts_with("error_head");
    EXPECT_EQ(torch::equal(item.value(), all[item.key()]), !is_confidence) << item.key();
  }
}

TEST(StructureLosses, TheLddtOfResiduesIsThatOfTheScore) {
  torch::manual_seed(6);
  const auto truth = 6 * torch::randn({2, 20, 3}), predicted = truth + torch::randn({2, 20, 3});
  auto mask = torch::ones({2, 20});
  mask[1][3] = 0;
  const auto found = residue_lddt(predicted, truth, mask);
  for (int64_t b = 0; b < 2; ++b) {
    const auto expected = lddt(predicted[b], truth[b], mask[b].to(torch::kBool)).residues.nan_to_num(0);
    EXPECT_LT((found[b].to(torch::kDouble) - expected).abs().max().item<double>(), 1e-6);
  }
}

/// The first batch of the validation data of a small experiment.
struct SmallTask {
  explicit SmallTask(const std::vector<std::string>& overrides)
      : task(task_of_new_run(world.structure_experiment(overrides))),
        batch(task->batches(Split::valid).batch(0, 0)) {
    torch::manual_seed(1);
    model = initialized_model(task->experiment(), *task);
    model->eval();
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.normal_(0, 0.3);
  }
  double loss(const Batch& part) const {
    const torch::NoGradGuard no_grad;
    const RandomScope random({7});
    return task->objective()->loss(*model, part).item<double>();
  }

  TinyWorld world;
  std::unique_ptr<Task> task;
  Batch batch;
  std::shared_ptr<Model> model;
};

TEST(StructurePrediction, TheLossOfPairsDoesNotChangeWhenAChainIsMoved) {
  const SmallTask small(kPairs);
  const auto q = torch::tensor({0.5, -0.5, 0.5, 0.5});
  auto moved = small.batch;
  moved.fields[fields::kBackbone] =
      (moved.fields[fields::kBackbone].matmul(rotations_of(q).t()) + 3).contiguous();
  EXPECT_NEAR(small.loss(moved), small.loss(small.batch), 1e-4);
  moved.fields[fields::kBackbone] = -small.batch.field(fields::kBackbone);
  EXPECT_GT(std::abs(small.loss(moved) - small.loss(small.batch)), 1e-3) << "a mirror is another structure";
}

TEST(StructurePrediction, TheLossOfABatchIsThatOfItsRows) {
  for (const auto& overrides : {kPairs, kFlow}) {
    const SmallTask small(overrides);
    ASSERT_GT(small.batch.n_rows(), 1);
    double sum = 0;
    for (int64_t b = 0; b < small.batch.n_rows(); ++b) {
      const RowScope row(b);
      sum += small.loss(take_rows(small.batch, b, 1));
    }
    EXPECT_NEAR(sum, small.loss(small.batch), 1e-3 * sum);
    // Atoms that a file lacks do not count, wherever they are: some N, which frames need, and all O.
    for (const int64_t atom : {0, 3}) {
      const int64_t first = atom == 0 ? 3 : 0;
      auto hidden = small.batch;
      auto& known = hidden.fields[fields::kKnownAtoms];
      known = known.clone();
      known.select(2, atom).narrow(1, first, known.size(1) - first).zero_();
      const double without = small.loss(hidden);
      auto& places = hidden.fields[fields::kBackbone];
      places = places.clone();
      places.select(2, atom).narrow(1, first, known.size(1) - first).add_(torch::tensor({30, -7, 4}));
      EXPECT_NEAR(small.loss(hidden), without, 1e-4 * without) << atom;
    }
  }
}

TEST(Flow, PointsAreOnTheWayFromNoiseToTheTurnedChain) {
  const SmallTask small(kFlow);
  const auto points = flow_points(small.batch, {.seed = 3, .first_row = 0});
  const auto t = points.times.view({-1, 1, 1, 1});
  EXPECT_TRUE(torch::allclose(points.places, t * points.truth + (1 - t) * points.noise, 0, 1e-5));
  const auto& backbone = small.batch.field(fields::kBackbone);
  for (int64_t b = 0; b < backbone.size(0); ++b) {
    const auto n = small.batch.input.row_lengths()[static_cast<size_t>(b)];
    const auto ca = backbone[b].narrow(0, 0, n).select(1, 1),
               turned = FlowModel::kUnit * points.truth[b].narrow(0, 0, n).select(1, 1);
    EXPECT_LT(backbone_scores(turned, ca).rmsd, 1e-3);
    EXPECT_GT((turned - ca).abs().max().item<double>(), 0.1) << "it is turned";
  }
  const auto later = flow_points(take_rows(small.batch, 1, 1), {.seed = 3, .first_row = 1});
  EXPECT_TRUE(torch::equal(later.times[0], points.times[1]));
  const auto n = small.batch.input.row_lengths()[1];
  EXPECT_TRUE(torch::equal(later.noise[0].narrow(0, 0, n), points.noise[1].narrow(0, 0, n)));

  // 98 % from a logistic of N(0.8, 1.7), whose median is 0.98 · 0.69 or a little more.
  Batch many;
  many.input.ids = torch::zeros({4000, 1}, torch::kInt64);
  many.fields = {{fields::kBackbone, torch::zeros({4000, 1, 4, 3})},
                 {fields::kKnownAtoms, torch::ones({4000, 1, 4})}};
  const auto drawn = flow_points(many, {.seed = 4});
  EXPECT_NEAR(drawn.times.median().item<double>(), 0.686, 0.03);
  EXPECT_GE(drawn.times.min().item<double>(), 0);
  EXPECT_LT(drawn.times.max().item<double>(), 1);
  EXPECT_NEAR(drawn.noise.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(drawn.noise.std().item<double>(), 1, 0.02);
}

/// The loss of single chains of a flow with these weights, and their times.
struct FlowLosses {
  torch::Tensor losses, times;

  static FlowLosses of(const SmallTask& small, const FlowLossConfig& config, uint64_t seed) {
    const torch::NoGradGuard no_grad;
    const StructureLoss objective(config, {});
    FlowLosses result{torch::empty({small.batch.n_rows()}, torch::kDouble), {}};
    std::vector<torch::Tensor> times;
    for (int64_t b = 0; b < small.batch.n_rows(); ++b) {
      const auto row = take_rows(small.batch, b, 1);
      const RowScope rows(b);
      {
        const RandomScope random({seed});
        result.losses[b] = objective.loss(*small.model, row).item<double>();
      }
      const RandomScope random({seed});
      times.push_back(flow_points(row, draw_row_seed()).times);
    }
    result.times = torch::cat(times).to(torch::kDouble);
    return result;
  }
};

TEST(Flow, TheLateWeightOfLddtBeginsInTheMiddle) {
  const SmallTask small(kFlow);
  int n_early = 0, n_late = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const auto none = FlowLosses::of(small, {.lddt = 0}, seed), one = FlowLosses::of(small, {}, seed),
               late = FlowLosses::of(small, {.lddt = 0, .late_lddt = 8}, seed);
    const auto lddt = one.losses - none.losses;
    const auto weights = 8 * (one.times - 0.5).clamp_min(0);
    EXPECT_TRUE(torch::allclose(late.losses - none.losses, weights * lddt, 0, 1e-3)) << seed;
    n_early += one.times.lt(0.5).sum().item<int>();
    n_late += one.times.gt(0.5).sum().item<int>();
  }
  EXPECT_GT(n_early, 1);
  EXPECT_GT(n_late, 1);
}

// Near time 1 what is left to go is nearly nothing, and would divide any error of the alignment.
TEST(Flow, TheAlignmentCountsWithALimit) {
  const SmallTask small(kFlow);
  const torch::NoGradGuard no_grad;
  auto& flow = *flow_of(*small.model);
  int n_last = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto found = FlowLosses::of(small, {.lddt = 0}, seed);
    for (int64_t b = 0; b < small.batch.n_rows(); ++b) {
      const double time = found.times[b].item<double>(), left = 1 - time;
      if (left > 0.05 && seed > 0) continue;
      n_last += left < 0.05 ? 1 : 0;
      const auto row = take_rows(small.batch, b, 1);
      const RowScope rows(b);
      const RandomScope random({seed});
      const auto points = flow_points(row, draw_row_seed());
      const auto velocities = flow.velocities(flow.read_chains(row.input), points.places, points.times);
      const auto known = row.field(fields::kKnownAtoms);
      const auto flat = [](const torch::Tensor& places) { return places.flatten(1, 2); };
      const auto laid =
          aligned_onto(flat(points.truth), flat(points.places + left * velocities), known.flatten(1));
      const auto wanted =
          points.truth - points.noise + (laid.view_as(points.truth) - points.truth) / std::max(left, 0.05);
      const auto squares = (velocities - wanted).square().mean(-1);
      const double expected = ((squares * known).sum() / known.sum()).item<double>();
      EXPECT_NEAR(found.losses[b].item<double>(), expected, 1e-3 * expected) << "at time " << time;
    }
  }
  EXPECT_GT(n_last, 2);
}

TEST(Flow, AChainFoldsAsWithoutOthers) {
  const SmallTask small(kFlow);
  const InferenceScope scope(*small.model);
  const std::vector<uint64_t> seeds{8, 9, 10};
  const auto input = small.batch.input;
  const auto together = place_backbones(*small.model, input, {.seeds = seeds});
  const auto alone = take_rows(small.batch, 1, 1);
  const auto n = small.batch.input.row_lengths()[1];
  const TokenBatch cut{.ids = alone.input.ids.narrow(1, 0, n)};
  const auto by_itself = place_backbones(*small.model, cut, {.seeds = std::span(seeds).subspan(1, 1)});
  EXPECT_TRUE(torch::allclose(by_itself[0], together[1].narrow(0, 0, n), 1e-3, 1e-2));
  EXPECT_THAT(message_of<UsageError>([&] { place_backbones(*small.model, cut, {.passes = 2}); }),
              HasSubstr("has no recycling"));
}

TEST(BackboneScores, OfTheTruthOfNoiseAndOfAHeap) {
  const auto truth = ca_trace(backbone_structure("AEAKAAEKLVVVVVGGVVVVVAAA"), "truth").positions;
  const auto perfect = backbone_scores(truth + 5, truth);
  EXPECT_NEAR(perfect.lddt, 1, 1e-9);
  EXPECT_NEAR(perfect.tm_score, 1, 1e-9);
  EXPECT_NEAR(perfect.rmsd, 0, 1e-6);
  EXPECT_EQ(perfect.neighbours, 23);
  EXPECT_EQ(perfect.bonded, 23);
  EXPECT_EQ(perfect.residues, 24);
  EXPECT_EQ(perfect.clashing, 0);
  const auto heap = backbone_scores(0.1 * truth, truth);
  EXPECT_EQ(heap.bonded, 0);
  EXPECT_EQ(heap.clashing, 24);
  // Only the neighbours that are bonded in the truth count.
  auto gap = truth.clone();
  gap.narrow(0, 12, 12).add_(20);
  EXPECT_EQ(backbone_scores(truth, gap).neighbours, 22);
  auto touching = truth.clone();
  touching[20] = touching[2] + 1;
  EXPECT_EQ(backbone_scores(touching, truth).clashing, 2);
  // The next but one residue may be near.
  auto line = torch::zeros({9, 3}, torch::kDouble);
  line.select(1, 0).copy_(3.8 * torch::arange(9, torch::kDouble));
  const auto straight = line.clone();
  line[4] = straight[2] + torch::tensor({0, 2, 0}, torch::kDouble);
  EXPECT_EQ(backbone_scores(line, straight).clashing, 0);
  line[5] = line[4];
  EXPECT_EQ(backbone_scores(line, straight).clashing, 2) << "the third one and the sixth";
}

/// CB as four atoms around CA hold it, of N, CA and C (3) each.
std::array<double, 3> cb_of(const torch::Tensor& n, const torch::Tensor& ca, const torch::Tensor& c) {
  const auto b = ca - n, d = c - ca;
  const auto cb = -0.58273431 * torch::cross(b, d, 0) + 0.56802827 * b - 0.54067466 * d + ca;
  return {cb[0].item<double>(), cb[1].item<double>(), cb[2].item<double>()};
}

/// As long_contact_precision() says, pair by pair.
double written_out_precision(const torch::Tensor& predicted, const torch::Tensor& truth,
                             const std::vector<int64_t>& without) {
  const auto L = truth.size(0);
  const auto distance = [](const torch::Tensor& all, int64_t i, int64_t j) {
    const auto from = cb_of(all[i][0], all[i][1], all[i][2]), to = cb_of(all[j][0], all[j][1], all[j][2]);
    return std::hypot(from[0] - to[0], from[1] - to[1], from[2] - to[2]);
  };
  std::vector<std::pair<double, bool>> pairs;
  for (int64_t i = 0; i < L; ++i) {
    for (int64_t j = i + 24; j < L; ++j) {
      if (std::ranges::count(without, i) + std::ranges::count(without, j) > 0) continue;
      pairs.emplace_back(distance(predicted, i, j), distance(truth, i, j) < 8);
    }
  }
  std::ranges::sort(pairs);
  const auto n = static_cast<size_t>(L / 5);
  return static_cast<double>(std::count_if(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(n),
                                           [](const auto& pair) { return pair.second; })) /
         static_cast<double>(n);
}

TEST(BackboneScores, LongContactsAreThoseOfAWrittenOutComputation) {
  // Heaps of residues that look in all directions, of which some touch.
  torch::manual_seed(2);
  const auto heap = [](int64_t length) {
    return 9 * torch::randn({length, 1, 3}, torch::kDouble) + torch::randn({length, 4, 3}, torch::kDouble);
  };
  for (const int64_t length : {60, 41}) {
    const auto truth = heap(length), predicted = truth + 2 * torch::randn({length, 1, 3}, torch::kDouble);
    auto known = torch::ones({length, 4});
    const auto expected = written_out_precision(predicted, truth, {});
    EXPECT_GT(expected, 0);
    EXPECT_LT(expected, 1);
    EXPECT_NEAR(*long_contact_precision(predicted, truth, known), expected, 1e-12);
    known[3][0] = known[35][2] = 0;
    EXPECT_NEAR(*long_contact_precision(predicted, truth, known),
                written_out_precision(predicted, truth, {3, 35}), 1e-12);
    known[3][0] = known[35][2] = 1;
    known.select(1, 3).zero_();  // O is not needed
    EXPECT_NEAR(*long_contact_precision(predicted, truth, known), expected, 1e-12);
  }
  const auto shortest = heap(25), too_short = heap(24);
  EXPECT_TRUE(long_contact_precision(shortest, shortest, torch::ones({25, 4})));
  EXPECT_FALSE(long_contact_precision(too_short, too_short, torch::ones({24, 4})));
}

TEST(StructurePrediction, AnEvaluationIsTheSameInOtherBatches) {
  for (const auto& overrides : {kPairs, kFlow}) {
    const SmallTask small(overrides);
    auto other = overrides;
    other.emplace_back("training.batch_size=1");
    const auto task = task_of_new_run(small.world.structure_experiment(other));
    const auto metrics = small.task->evaluate(*small.model, Split::valid),
               single = task->evaluate(*small.model, Split::valid);
    for (const auto& [key, value] : metrics)
      EXPECT_NEAR(single.at(key), value, 1e-2 + 1e-2 * std::abs(value)) << key;
    EXPECT_EQ(metrics.at("chains"), 3);
  }
}

TEST(StructurePrediction, LongChainsAreLeftOutOfEvaluations) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.structure_experiment(
      {"data.valid=folds", "data.structures={max_residues: 12, longest_scored: 10}"}));
  task->batches(Split::valid);
  EXPECT_THAT(task->notes(),
              ::testing::ElementsAre(HasSubstr("8 chains for valid with more than 10 residues")));
  const auto none = task_of_new_run(
      world.structure_experiment({"data.valid=folds", "data.structures={longest_scored: 4}"}));
  EXPECT_THAT(message_of<DataError>([&] { none->batches(Split::valid); }),
              HasSubstr("every chain has more than 4"));
}

TEST(StructurePrediction, TheHashOfTheDataIsThatOfTheFiles) {
  const TinyWorld world;
  const auto hash = [&] {
    const auto task = task_of_new_run(world.structure_experiment());
    task->batches(Split::train);
    task->batches(Split::valid);
    return task->hash_of_data();
  };
  const auto before = hash();
  EXPECT_EQ(hash(), before);
  world.dir().write("data/folds/0.pdb", to_pdb(backbone_structure("AVGLAVVKV")));
  EXPECT_NE(hash(), before);
}

TEST(StructurePrediction, BadConfigurationsGetOneLine) {
  const TinyWorld world;
  const auto problem = [&](const std::vector<std::string>& overrides) {
    return message_of<Error>([&] {
      const auto task = task_of_new_run(world.structure_experiment(overrides));
      initialized_model(task->experiment(), *task);
    });
  };
  EXPECT_EQ(problem({}), "no error");
  EXPECT_EQ(problem(kPairs), "no error");
  EXPECT_THAT(problem({"model={architecture: encoder}"}),
              HasSubstr("must be fold_flow, fold_pairs or esmfold"));
  EXPECT_THAT(problem({"model.position=alibi"}), HasSubstr("of a fold_flow must be rotary, not alibi"));
  EXPECT_THAT(problem({"model.architecture.time_width=7"}), HasSubstr("must be even"));
  EXPECT_THAT(problem({"model.layer_scale=0.1"}), HasSubstr("is not for a fold_flow: leave layer_scale out"));
  EXPECT_THAT(problem({"training.objective=cross_entropy"}), HasSubstr("does not understand structures"));
  EXPECT_THAT(problem({"training.label_smoothing=0.1"}), HasSubstr("is not for structure_prediction"));
  EXPECT_THAT(problem({"training.activation_checkpointing=every_layer"}),
              HasSubstr("is not for structure_prediction"));
  EXPECT_THAT(problem({"model.architecture=fold_pairs",
                       "model.architecture={type: fold_pairs, pair_width: 9, pair_heads: 3}"}),
              HasSubstr("must be even"));
}

}  // namespace
}  // namespace zoo::testing
