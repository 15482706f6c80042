#include "tasks/structures/folded_chain.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/residues/residues.h"
#include "base/text.h"
#include "layers/folding/confidence.h"
#include "models/folding_model.h"
#include "models/inference_scope.h"
#include "tasks/structures/flow.h"

namespace zoo {
namespace {

/// The atoms of the chain in the order of kAtomNames. positions: (L, A, 3), of the first A atoms of each
/// residue; plddt: (L, 37), 0 to 100, or undefined.
StructureChain chain_of(const torch::Tensor& residues, const torch::Tensor& positions,
                        const torch::Tensor& plddt) {
  StructureChain chain{.name = "A", .residues = {}};
  const auto place = positions.accessor<float, 3>();
  const auto kinds = residues.accessor<int64_t, 1>();
  for (int64_t i = 0; i < residues.size(0); ++i) {
    const std::string name(residue_name(kinds[i]));
    auto& residue = chain.residues.emplace_back(
        StructureResidue{.name = name, .parent = std::string(parent_of(name)), .number = i + 1, .atoms = {}});
    if (kinds[i] == kUnknownResidue) continue;
    const auto& atoms = amino_acids()[static_cast<size_t>(kinds[i])].atoms;
    for (int64_t number = 0; number < std::ssize(kAtomNames); ++number) {
      const auto atom_name = kAtomNames[static_cast<size_t>(number)];
      const auto found = std::ranges::find(atoms, atom_name, &IdealAtom::name);
      if (found == atoms.end() || found - atoms.begin() >= positions.size(1)) continue;
      const auto xyz = place[i][found - atoms.begin()];
      residue.atoms.push_back({.name = std::string(atom_name),
                               .element = std::string(atom_name.substr(0, 1)),
                               .position = {xyz[0], xyz[1], xyz[2]},
                               .b_factor = plddt.defined() ? plddt.accessor<float, 2>()[i][number] : 0.0});
    }
  }
  return chain;
}

torch::Tensor on_cpu(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kFloat).contiguous();
}

void require_numbers(const torch::Tensor& tensor) {
  if (tensor.isnan().any().item<bool>()) fail_not_a_number();
}

[[noreturn]] void fail_to_fold() { throw UsageError("this model does not fold proteins"); }

/// Sets what the model says of its own errors. Returns pLDDT, (L, 37).
torch::Tensor add_confidence(const Folding& output, FoldedChain& result) {
  const auto plddt = on_cpu(100 * expected_lddt(output.lddt_logits[-1][0]));
  require_numbers(plddt);
  const auto of_ca = plddt.select(1, *atom_number("CA")).contiguous();
  result.plddt.assign(of_ca.const_data_ptr<float>(), of_ca.const_data_ptr<float>() + of_ca.numel());
  result.tm_score = predicted_tm_score(output.error_logits[0]).item<double>();
  result.aligned_error = on_cpu(predicted_aligned_error(output.error_logits[0]));
  return plddt;
}

/// The mean of the B factors of all atoms.
double mean_b_factor(const StructureChain& chain) {
  double sum = 0;
  int64_t n_atoms = 0;
  for (const auto& residue : chain.residues) {
    for (const auto& atom : residue.atoms) sum += atom.b_factor;
    n_atoms += std::ssize(residue.atoms);
  }
  return sum / static_cast<double>(std::max<int64_t>(n_atoms, 1));
}

}  // namespace

bool folds(const Experiment& experiment) { return experiment.task == "structure_prediction"; }

torch::Tensor residues_of(std::string_view letters) {
  std::vector<int64_t> residues;
  std::ranges::transform(letters, std::back_inserter(residues), residue_of_letter);
  return torch::tensor(residues, torch::kInt64);
}

torch::Tensor place_backbones(Model& model, const TokenBatch& chains, const PlacingOptions& options) {
  if (auto* const flow = flow_of(model)) {
    if (options.passes)
      throw UsageError(
          "this model folds in steps from noise (model.architecture.steps), and has no recycling");
    std::vector<uint64_t> seeds(options.seeds.begin(), options.seeds.end());
    for (auto b = std::ssize(seeds); b < chains.batch_size(); ++b) seeds.push_back(static_cast<uint64_t>(b));
    return follow_flow(*flow, chains, seeds);
  }
  auto* const folding = folding_of(model);
  if (!folding) fail_to_fold();
  Batch batch;
  batch.input = chains;
  return folding->fold(batch, options.passes)
      .folded.structures.positions[-1]
      .narrow(2, 0, kBackboneAtoms)
      .to(torch::kFloat);
}

FoldedChain fold_chain(Model& model, const NamedSequence& chain, std::optional<int64_t> passes) {
  auto* const folding = folding_of(model);
  if (!folding && !flow_of(model)) fail_to_fold();
  if (std::ssize(chain.letters) > kMostFoldedResidues) {
    throw DataError(fmt::format("{}: has {} residues, and {} are the most that are folded",
                                excerpt(chain.name), chain.letters.size(), kMostFoldedResidues));
  }
  const InferenceScope scope(model);
  const auto residues = residues_of(chain.letters);
  Batch batch;
  batch.input.ids = residues.unsqueeze(0);
  const auto on_device = model.on_device(batch);
  FoldedChain result;
  torch::Tensor positions, plddt;
  if (folding) {
    const auto output = folding->fold(on_device, passes);
    positions = output.folded.structures.positions[-1][0].narrow(1, 0, output.n_places);
    if (output.lddt_logits.defined()) plddt = add_confidence(output, result);
  } else {
    positions = place_backbones(model, on_device.input, {.passes = passes})[0];
  }
  positions = on_cpu(positions);
  require_numbers(positions);
  result.structure.name = chain.name;
  result.structure.models.push_back({.chains = {chain_of(residues, positions, plddt)}});
  if (plddt.defined()) result.mean_plddt = mean_b_factor(result.structure.models.front().chains.front());
  return result;
}

}  // namespace zoo
