#include "tasks/structures/folded_chain.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/residues/residues.h"
#include "base/text.h"
#include "layers/folding/confidence.h"
#include "models/folding_model.h"
#include "models/inference_scope.h"

namespace zoo {
namespace {

/// The atoms of the chain in the order of kAtomNames. positions: (L, 14, 3); plddt: (L, 37), 0 to 100.
StructureChain chain_of(const torch::Tensor& residues, const torch::Tensor& positions,
                        const torch::Tensor& plddt) {
  StructureChain chain{.name = "A", .residues = {}};
  const auto place = positions.accessor<float, 3>();
  const auto sure = plddt.accessor<float, 2>();
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
      if (found == atoms.end()) continue;
      const auto xyz = place[i][found - atoms.begin()];
      residue.atoms.push_back({.name = std::string(atom_name),
                               .element = std::string(atom_name.substr(0, 1)),
                               .position = {xyz[0], xyz[1], xyz[2]},
                               .b_factor = sure[i][number]});
    }
  }
  return chain;
}

}  // namespace

bool folds(const Experiment& experiment) { return experiment.task == "structure_prediction"; }

torch::Tensor residues_of(std::string_view letters) {
  std::vector<int64_t> residues;
  std::ranges::transform(letters, std::back_inserter(residues), residue_of_letter);
  return torch::tensor(residues, torch::kInt64);
}

FoldedChain fold_chain(Model& model, const NamedSequence& chain, std::optional<int64_t> passes) {
  auto* const folding = folding_of(model);
  if (!folding) throw UsageError("this model does not fold proteins");
  if (std::ssize(chain.letters) > kMostFoldedResidues) {
    throw DataError(fmt::format("{}: has {} residues, and {} are the most that are folded",
                                excerpt(chain.name), chain.letters.size(), kMostFoldedResidues));
  }
  const InferenceScope scope(model);
  const auto residues = residues_of(chain.letters);
  Batch batch;
  batch.input.ids = residues.unsqueeze(0);
  const auto output = folding->fold(model.on_device(batch), passes);
  const auto on_cpu = [](const torch::Tensor& tensor) {
    return tensor.to(torch::kCPU, torch::kFloat).contiguous();
  };
  const auto positions = on_cpu(output.folded.structures.positions[-1][0]);
  const auto plddt = on_cpu(100 * expected_lddt(output.lddt_logits[-1][0]));
  if (positions.isnan().any().item<bool>() || plddt.isnan().any().item<bool>()) fail_not_a_number();

  FoldedChain result;
  result.structure.name = chain.name;
  result.structure.models.push_back({.chains = {chain_of(residues, positions, plddt)}});
  int64_t n_atoms = 0;
  for (const auto& residue : result.structure.models.front().chains.front().residues) {
    for (const auto& atom : residue.atoms) result.mean_plddt += atom.b_factor;
    n_atoms += std::ssize(residue.atoms);
  }
  result.mean_plddt /= static_cast<double>(std::max<int64_t>(n_atoms, 1));
  const auto of_ca = plddt.select(1, *atom_number("CA")).contiguous();
  result.plddt.assign(of_ca.const_data_ptr<float>(), of_ca.const_data_ptr<float>() + of_ca.numel());
  result.tm_score = predicted_tm_score(output.error_logits[0]).item<double>();
  result.aligned_error = on_cpu(predicted_aligned_error(output.error_logits[0]));
  return result;
}

}  // namespace zoo
