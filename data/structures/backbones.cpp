#include "data/structures/backbones.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "base/residues/residues.h"
#include "base/text.h"
#include "data/directory.h"
#include "data/tables.h"
#include "io/files.h"
#include "io/sha256.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, kBackboneAtoms> kAtoms = {"N", "CA", "C", "O"};

Backbone backbone_of(const StructureChain& chain, std::string name) {
  std::vector<int64_t> kinds;
  std::vector<float> places;
  std::vector<uint8_t> known;
  for (const auto& residue : chain.residues) {
    if (residue.parent.empty() || !residue.atom(kAtoms[kCaPlace])) continue;
    kinds.push_back(residue_of_name(residue.parent).value_or(kUnknownResidue));
    for (const auto atom_name : kAtoms) {
      const auto* const atom = residue.atom(atom_name);
      known.push_back(atom ? 1 : 0);
      for (size_t i = 0; i < 3; ++i) places.push_back(atom ? static_cast<float>(atom->position[i]) : 0);
    }
  }
  const auto L = std::ssize(kinds);
  return {.name = std::move(name),
          .residues = torch::tensor(kinds, torch::kInt64),
          .positions = torch::tensor(places, torch::kFloat).view({L, kBackboneAtoms, 3}),
          .known = torch::tensor(known, torch::kUInt8).view({L, kBackboneAtoms}).to(torch::kBool)};
}

void add_file(const fs::path& file, std::string_view chain, std::vector<Backbone>& chains) {
  const auto structure = read_structure(file);
  auto found = backbones_of(structure, file.string(), chain);
  for (auto& one : found) one.name = file.filename().string() + one.name.substr(file.string().size());
  std::ranges::move(found, std::back_inserter(chains));
}

void add_table(const fs::path& path, std::vector<Backbone>& chains) {
  const auto table = open_table(path);
  const bool has_chains = std::ranges::count(table->columns(), "chain") > 0;
  std::vector<ColumnNames> wanted{{"file"}};
  if (has_chains) wanted.push_back({"chain"});
  table->read(wanted, [&](const TableRow& row) {
    const fs::path file(row.fields[0]);
    if (row.fields[0].empty() || !stays_below(file)) {
      throw DataError(fmt::format("{}:{}: '{}' is no path of a file in the directory of this table",
                                  path.string(), row.number, excerpt(row.fields[0])));
    }
    add_file(path.parent_path() / file, has_chains ? std::string_view(row.fields[1]) : std::string_view(),
             chains);
  });
}

std::vector<Backbone> read_chains(const DataConfig& config, Split split) {
  std::vector<Backbone> chains;
  for (const auto& name : files_to_read(config, split)) {
    const auto path = data_file_or_directory(name);
    if (has_directory(path)) {
      const auto files = list_files(path, is_structure_file).files;
      if (files.empty())
        throw DataError(fmt::format("{}: has no files of structures (.pdb, .ent, .cif or .mmcif, also .gz)",
                                    path.string()));
      for (const auto& file : files) add_file(file, {}, chains);
    } else if (is_structure_file(path)) {
      add_file(path, {}, chains);
    } else if (is_table(path)) {
      add_table(path, chains);
    } else {
      throw DataError(
          fmt::format("{}: structures are read from a folder, from PDB or mmCIF, or from a table with the "
                      "column file",
                      path.string()));
    }
  }
  return chains;
}

}  // namespace

std::vector<Backbone> backbones_of(const Structure& structure, const std::string& name,
                                   std::string_view chain) {
  const auto& all = structure.models.front().chains;
  std::vector<Backbone> backbones;
  for (const auto& one : all) {
    if (!chain.empty() && one.name != chain) continue;
    auto backbone = backbone_of(one, all.size() == 1 ? name : fmt::format("{} {}", name, one.name));
    if (backbone.length() >= kFewestFoldedResidues) backbones.push_back(std::move(backbone));
  }
  if (backbones.empty()) {
    throw DataError(fmt::format("{}: has no chain{} with {} residues of a protein and their CA atoms", name,
                                chain.empty() ? "" : fmt::format(" {}", excerpt(chain, 40)),
                                kFewestFoldedResidues));
  }
  return backbones;
}

RowsBySplit<std::vector<Backbone>> backbones_by_split(const DataConfig& config) {
  const auto read = [config](Split split) { return read_chains(config, split); };
  const auto part = [config](const std::vector<Backbone>& all, Split split) {
    std::vector<Backbone> kept;
    for (const int64_t i : random_share(config, split, std::ssize(all)))
      kept.push_back(all[static_cast<size_t>(i)]);
    return kept;
  };
  const auto check = [config](const std::vector<Backbone>& chains, Split split) {
    if (chains.empty())
      throw DataError(fmt::format("{}: no chains for {}", corpus_name(config, split), name_of(split)));
  };
  return {config, {.read = read, .part = part, .check = check}};
}

std::string hash_of_backbones(const std::vector<Backbone>& chains) {
  std::string hashes;
  const auto add = [&](const torch::Tensor& tensor) {
    const auto numbers = tensor.contiguous();
    hashes += sha256({static_cast<const char*>(numbers.const_data_ptr()), numbers.nbytes()});
  };
  for (const auto& chain : chains) {
    add(chain.residues);
    add(chain.positions);
  }
  return sha256(hashes);
}

}  // namespace zoo
