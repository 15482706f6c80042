#include "data/structures/structure.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/residues/residues.h"
#include "base/text.h"
#include "data/gzip_reader.h"
#include "data/structures/formats.h"

namespace zoo {
namespace {

struct Altered {
  std::string_view name, parent;
};

// Those that are frequent in the Protein Data Bank.
constexpr auto kAltered = std::to_array<Altered>(
    {{"MSE", "MET"}, {"SEP", "SER"}, {"TPO", "THR"}, {"PTR", "TYR"}, {"CSO", "CYS"}, {"CME", "CYS"},
     {"OCS", "CYS"}, {"CSD", "CYS"}, {"CSX", "CYS"}, {"CAS", "CYS"}, {"SEC", "CYS"}, {"KCX", "LYS"},
     {"MLY", "LYS"}, {"M3L", "LYS"}, {"ALY", "LYS"}, {"LLP", "LYS"}, {"PYL", "LYS"}, {"HYP", "PRO"},
     {"PCA", "GLN"}, {"CGU", "GLU"}, {"NEP", "HIS"}, {"HIC", "HIS"}, {"TYS", "TYR"}, {"FME", "MET"},
     {"MHO", "MET"}, {"DAL", "ALA"}, {"ASX", "ASN"}, {"GLX", "GLN"}});

}  // namespace

const Atom* StructureResidue::atom(std::string_view atom_name) const {
  const auto found = std::ranges::find(atoms, atom_name, &Atom::name);
  return found == atoms.end() ? nullptr : &*found;
}

std::string_view parent_of(std::string_view residue_name) {
  if (const auto residue = residue_of_name(residue_name)) return zoo::residue_name(*residue);
  const auto* const found = std::ranges::find(kAltered, residue_name, &Altered::name);
  return found == kAltered.end() ? std::string_view() : found->parent;
}

std::string letters_of(const StructureChain& chain) {
  if (!chain.sequence.empty()) return chain.sequence;
  std::string letters;
  for (const auto& residue : chain.residues) {
    if (const auto number = residue_of_name(residue.parent)) {
      letters += residue_letter(*number);
    } else if (residue.atom("N") && residue.atom("CA") && residue.atom("C")) {
      letters += 'X';
    }
  }
  return letters;
}

bool is_structure_file(const std::filesystem::path& path) {
  auto name = path;
  if (ascii_lower(name.extension().string()) == ".gz") name = name.stem();
  const auto kind = ascii_lower(name.extension().string());
  return kind == ".pdb" || kind == ".ent" || kind == ".cif" || kind == ".mmcif";
}

Structure read_structure(const std::filesystem::path& path) {
  return parse_structure(read_unpacked(path, kMostStructureBytes), path.string());
}

Structure parse_structure(std::string_view text, std::string_view name) {
  text = without_byte_order_mark(text);
  // A file of mmCIF begins with comments, blank lines and the name of a block; one of PDB with neither.
  for (size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = text.substr(begin, end - begin);
    const auto first = line.find_first_not_of(" \t\r");
    if (first != line.npos && line[first] != '#')
      return ascii_lower(line.substr(first, 5)) == "data_" ? parse_mmcif(text, name) : parse_pdb(text, name);
    begin = end + 1;
  }
  throw DataError(fmt::format("{}: the file is empty", name));
}

void StructureBuilder::begin_model() {
  structure_.models.emplace_back();
  places_.clear();
}

StructureChain& StructureBuilder::chain(std::string_view chain_name) {
  if (structure_.models.empty()) begin_model();
  auto& chains = structure_.models.back().chains;
  const auto known = places_.find(chain_name);
  if (known != places_.end()) return chains[known->second];
  places_.emplace(chain_name, chains.size());
  return chains.emplace_back(StructureChain{.name = std::string(chain_name), .residues = {}});
}

void StructureBuilder::add(const Place& place, Atom atom) {
  if (++n_atoms_ > kMostAtoms)
    throw DataError(fmt::format("{}: has more than {} atoms, the most that are read", name_, kMostAtoms));
  auto& residues = chain(place.chain).residues;
  const bool is_same_place = !residues.empty() && residues.back().number == place.number &&
                             residues.back().insertion == place.insertion;
  if (is_same_place && residues.back().name != place.residue && place.is_altered)
    return;  // another residue in its place
  if (!is_same_place || residues.back().name != place.residue) {
    residues.push_back({.name = std::string(place.residue),
                        .parent = std::string(parent_of(place.residue)),
                        .number = place.number,
                        .insertion = place.insertion,
                        .atoms = {}});
  }
  auto& atoms = residues.back().atoms;
  if (std::ssize(atoms) >= kMostAtomsOfResidue) {
    throw DataError(fmt::format("{}: residue {} {} has more than {} atoms, the most that are read", name_,
                                excerpt(place.residue, 40), place.number, kMostAtomsOfResidue));
  }
  const auto known = place.is_altered ? std::ranges::find(atoms, atom.name, &Atom::name) : atoms.end();
  if (known == atoms.end()) {
    atoms.push_back(std::move(atom));
  } else if (atom.occupancy > known->occupancy) {
    *known = std::move(atom);
  }
}

Structure StructureBuilder::finish() {
  std::erase_if(structure_.models, [](const StructureModel& model) { return model.chains.empty(); });
  if (structure_.models.empty()) throw DataError(fmt::format("{}: has no atoms", name_));
  return std::move(structure_);
}

namespace {

template <class Number>
Number parse_number(std::string_view text, const std::string& place, std::string_view what) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw DataError(fmt::format("{}: '{}' is not {}", place, excerpt(text, 40), what));
  return value;
}

}  // namespace

double parse_coordinate(std::string_view text, const std::string& place) {
  const auto value = parse_number<double>(text, place, "a number");
  constexpr double farthest = 1e6;
  if (!(std::abs(value) <= farthest))
    throw DataError(fmt::format("{}: {} is out of range", place, excerpt(text, 40)));
  return value;
}

int64_t parse_residue_number(std::string_view text, const std::string& place) {
  return parse_number<int32_t>(text, place, "a whole number");
}

}  // namespace zoo
