// Structures of proteins from their sequences. Models learn the backbones of known structures.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/random.h"
#include "base/residues/residues.h"
#include "data/structures/backbone_batches.h"
#include "data/structures/backbones.h"
#include "io/sha256.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "tasks/evaluation.h"
#include "tasks/library_tasks.h"
#include "tasks/structures/backbone_scores.h"
#include "tasks/structures/folded_chain.h"
#include "tasks/structures/structure_loss.h"
#include "tasks/task.h"

namespace zoo {
namespace {

/// The keys of the task, beside `type: structure_prediction`.
struct StructurePredictionConfig {
  FlowLossConfig flow;
  FrameLossConfig frames;
};
void describe(ConfigVisitor& v, StructurePredictionConfig& c) {
  v.field("flow", c.flow, "The loss of a fold_flow.");
  v.field("frames", c.frames, "The loss of a fold_pairs.");
}

/// Models that are opened from the Hub alone.
bool is_published(const Experiment& experiment) { return experiment.model.architecture.type == "esmfold"; }

class StructurePrediction final : public Task {
 public:
  StructurePrediction(const Experiment& experiment, Vocabulary vocabulary)
      : Task(experiment, std::move(vocabulary)), backbones_(backbones_by_split(experiment.data)) {}

  ModelPurpose purpose() const override { return {.head = HeadKind::none}; }

  /// The loss, with the same noise for each chain, and how well the backbones of whole chains are predicted.
  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override;

  /// Of the chains of training and validation, which must be open.
  std::string hash_of_data() const override {
    std::string hashes;
    for (const auto split : {Split::train, Split::valid}) {
      if (const auto& chains = chains_[static_cast<size_t>(split)]) hashes += hash_of_backbones(*chains);
    }
    return sha256(hashes);
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override;

  std::shared_ptr<const Objective> own_objective(const ObjectiveContext&) const override {
    const auto& config = experiment().task.as<StructurePredictionConfig>();
    return std::make_shared<StructureLoss>(config.flow, config.frames);
  }

  RowsBySplit<std::vector<Backbone>> backbones_;
  std::array<std::shared_ptr<const std::vector<Backbone>>, 3> chains_;  // by Split, of those that are open
};

std::unique_ptr<BatchSource> StructurePrediction::open(Split split) {
  if (split == Split::train && is_published(experiment())) {
    throw UsageError(
        "the task structure_prediction does not train an esmfold: choose fold_flow or fold_pairs as "
        "model.architecture");
  }
  const auto& config = experiment().data.structures;
  auto chains = backbones_.take(split);
  if (split != Split::train) {
    const auto n_long =
        std::erase_if(chains, [&](const Backbone& chain) { return chain.length() > config.longest_scored; });
    if (chains.empty()) {
      throw DataError(
          fmt::format("{}: every chain has more than {} residues (data.structures.longest_scored)",
                      corpus_name(experiment().data, split), config.longest_scored));
    }
    if (n_long > 0) {
      add_notes(
          {fmt::format("{} chain{} for {} with more than {} residues left out "
                       "(data.structures.longest_scored)",
                       n_long, n_long == 1 ? "" : "s", name_of(split), config.longest_scored)});
    }
  }
  auto& kept = chains_[static_cast<size_t>(split)];
  kept = std::make_shared<const std::vector<Backbone>>(std::move(chains));
  return backbone_batches(
      kept, {.batches = batch_options(split), .max_residues = config.max_residues, .copies = config.copies});
}

Metrics StructurePrediction::measure(Model& model, Split split, const EvaluationOptions& options) {
  constexpr uint64_t noise_of_losses = 1;
  const InferenceScope scope(model);
  const auto objective = this->objective();
  double loss = 0, n_chains = 0, long_contacts = 0, n_long = 0;
  BackboneScores scores;
  for_each_own_batch(batches(split), options, [&](const Batch& batch) {
    const auto on_device = model.on_device(batch);
    const auto number = batch.field(fields::kChainNumbers).accessor<int64_t, 1>();
    {
      const RandomScope random({noise_of_losses});
      const RowScope rows(number[0]);  // in sequential order the chains of a batch follow each other
      loss += objective->loss(model, on_device).item<double>();
    }
    std::vector<uint64_t> seeds;
    for (int64_t b = 0; b < number.size(0); ++b) seeds.push_back(static_cast<uint64_t>(number[b]));
    const auto placed = place_backbones(model, on_device.input, {.seeds = seeds}).to(torch::kCPU);
    const auto lengths = batch.input.row_lengths();
    for (int64_t b = 0; b < number.size(0); ++b) {
      const auto of_chain = [&, row = b](const torch::Tensor& all) {
        return all[row].narrow(0, 0, lengths[static_cast<size_t>(row)]);
      };
      const auto predicted = of_chain(placed), truth = of_chain(batch.field(fields::kBackbone));
      if (!predicted.isfinite().all().item<bool>()) fail_not_a_number();
      scores.add(backbone_scores(predicted.select(1, kCaPlace), truth.select(1, kCaPlace)));
      if (const auto precision =
              long_contact_precision(predicted, truth, of_chain(batch.field(fields::kKnownAtoms)))) {
        long_contacts += *precision;
        ++n_long;
      }
      ++n_chains;
    }
  });
  const auto sums =
      torch::tensor({loss, n_chains, scores.lddt, scores.tm_score, scores.rmsd, scores.neighbours,
                     scores.bonded, scores.residues, scores.clashing, long_contacts, n_long},
                    torch::kDouble);
  sum_over_processes(options, sums);
  const auto sum = [&](int64_t i) { return sums[i].item<double>(); };
  const double n = sum(1);
  Metrics metrics{{"loss", sum(0) / n},
                  {"lddt_ca", sum(2) / n},
                  {"tm_score", sum(3) / n},
                  {"rmsd", sum(4) / n},
                  {"bonded", sum(6) / std::max(sum(5), 1.0)},
                  {"clashes", sum(8) / sum(7)},
                  {"chains", n}};
  if (sum(10) > 0) metrics["long_contacts"] = sum(9) / sum(10);
  return metrics;
}

void validate_structure_prediction(const Experiment& experiment, const Complain& complain) {
  const auto& architecture = experiment.model.architecture.type;
  const auto& training = experiment.training;
  if (architecture != "fold_flow" && architecture != "fold_pairs" && architecture != "esmfold") {
    complain("model.architecture",
             fmt::format("must be fold_flow, fold_pairs or esmfold for structure_prediction, not {}",
                         architecture));
  }
  if (training.objective.type != "task") {
    complain("training.objective",
             fmt::format("{} does not understand structures: leave it out", training.objective.type));
  }
  if (training.label_smoothing > 0)
    complain("training.label_smoothing", "is not for structure_prediction: leave it out");
  if (training.activation_checkpointing != ActivationCheckpointing::none)
    complain("training.activation_checkpointing", "is not for structure_prediction: leave it out");
  if (training.cuda_graphs == CudaGraphs::on)
    complain("training.cuda_graphs", "cannot record structure_prediction, which draws noise: leave it out");
}

}  // namespace

TaskType structure_prediction() {
  TaskType type;
  type.name = "structure_prediction";
  type.doc = "The atoms of a protein in space from its sequence, with a fold_flow, fold_pairs or esmfold.";
  type.make_options = options_of<StructurePredictionConfig>();
  type.best_by = {{.key = "lddt_ca", .label = "lDDT of CA", .better = Better::higher, .percent = true},
                  {.key = "tm_score", .label = "TM-score", .better = Better::higher},
                  {.key = "rmsd", .label = "RMSD of CA in Å", .better = Better::lower}};
  type.comparison = type.best_by.front();
  type.needs = VocabularyNeeds::nothing;
  type.unit = "residue";
  type.make = [](const Experiment& experiment, Vocabulary vocabulary) -> std::unique_ptr<Task> {
    return std::make_unique<StructurePrediction>(experiment, std::move(vocabulary));
  };
  type.validate = validate_structure_prediction;
  type.purpose = [](const Experiment&, int64_t) -> std::optional<ModelPurpose> {
    return ModelPurpose{.head = HeadKind::none};
  };
  return type;
}

}  // namespace zoo
