#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/residues/residues.h"
#include "base/text.h"
#include "data/structures/formats.h"

namespace zoo {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Columns `first` to `last` of a line, counted from 1, without blanks around them; the line may be shorter.
std::string_view columns(std::string_view line, size_t first, size_t last) {
  return first > line.size() ? std::string_view() : trimmed(line.substr(first - 1, last - first + 1));
}
char column(std::string_view line, size_t place) { return place > line.size() ? ' ' : line[place - 1]; }

/// Reads a file line by line.
class PdbReader {
 public:
  explicit PdbReader(std::string_view name) : name_(name), builder_(name) {}

  void read(std::string_view line) {
    ++number_;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const auto record = columns(line, 1, 6);
    if (record == "ATOM" || record == "HETATM") {
      read_atom(line);
    } else if (record == "MODEL") {
      builder_.begin_model();
    } else if (record == "SEQRES") {
      read_sequence(line);
    } else if (record == "MODRES") {
      parents_[std::string(columns(line, 13, 15))] = columns(line, 25, 27);
    } else if (record == "HEADER") {
      builder_.structure().name = columns(line, 63, 66);
    }
  }

  Structure finish() {
    auto structure = builder_.finish();
    for (auto& model : structure.models) {
      for (auto& chain : model.chains) {
        const auto letters = sequences_.find(chain.name);
        if (letters != sequences_.end() && is_protein(chain)) chain.sequence = letters->second;
        for (auto& residue : chain.residues) {
          const auto parent = parents_.find(residue.name);
          if (residue.parent.empty() && parent != parents_.end()) residue.parent = parent_of(parent->second);
        }
      }
    }
    return structure;
  }

 private:
  std::string place() const { return fmt::format("{}:{}", name_, number_); }

  static bool is_protein(const StructureChain& chain) {
    return std::ranges::any_of(chain.residues, [](const auto& residue) { return !residue.parent.empty(); });
  }

  void read_atom(std::string_view line) {
    constexpr size_t least = 54;  // where the coordinates end
    if (line.size() < least) throw DataError(fmt::format("{}: the line of an atom is too short", place()));
    if (std::ranges::any_of(line, [](unsigned char byte) { return byte < 0x20 || byte > 0x7E; }))
      throw DataError(fmt::format("{}: the line of an atom has characters that are not ASCII", place()));
    Atom atom{.name = std::string(columns(line, 13, 16)), .element = std::string(columns(line, 77, 78))};
    if (atom.name.empty()) throw DataError(fmt::format("{}: the atom has no name", place()));
    // A name of an element with one letter stands one column further right.
    if (atom.element.empty()) atom.element = trimmed(line.substr(12, 2));
    for (size_t axis = 0; axis < 3; ++axis)
      atom.position[axis] = parse_coordinate(columns(line, 31 + 8 * axis, 38 + 8 * axis), place());
    if (const auto text = columns(line, 55, 60); !text.empty())
      atom.occupancy = parse_coordinate(text, place());
    if (const auto text = columns(line, 61, 66); !text.empty())
      atom.b_factor = parse_coordinate(text, place());
    const char chain = column(line, 22);
    builder_.add({.chain = std::string_view(&chain, 1),
                  .residue = columns(line, 18, 20),
                  .number = parse_residue_number(columns(line, 23, 26), place()),
                  .insertion = column(line, 27),
                  .is_altered = column(line, 17) != ' '},
                 std::move(atom));
  }

  void read_sequence(std::string_view line) {
    auto& letters = sequences_[std::string(1, column(line, 12))];
    for (size_t first = 20; first + 2 <= line.size(); first += 4) {
      const auto residue = columns(line, first, first + 2);
      if (residue.empty()) break;
      const auto parent = residue_of_name(parent_of(residue));
      letters += residue_letter(parent.value_or(kUnknownResidue));
    }
  }

  std::string_view name_;
  StructureBuilder builder_;
  std::map<std::string, std::string> sequences_, parents_;  // of chains; of altered residues
  int64_t number_ = 0;
};

/// A number in so many columns.
std::string fixed(double value, int width, int digits) {
  auto text = fmt::format("{:{}.{}f}", value, width, digits);
  if (std::ssize(text) > width)
    throw DataError(fmt::format("{} does not fit into a PDB file: write mmCIF (.cif)", text));
  return text;
}

std::string whole(int64_t value, int width) {
  auto text = fmt::format("{:>{}}", value, width);
  if (std::ssize(text) > width)
    throw DataError(fmt::format("the number {} does not fit into a PDB file: write mmCIF (.cif)", value));
  return text;
}

void check_name(std::string_view name, size_t longest, std::string_view what) {
  if (name.size() <= longest) return;
  throw DataError(fmt::format("the name of {} '{}' does not fit into a PDB file: write mmCIF (.cif)", what,
                              excerpt(name, 40)));
}

void write_chain(const StructureChain& chain, int64_t& serial, std::string& to) {
  check_name(chain.name, 1, "chain");
  const char letter = chain.name.empty() ? ' ' : chain.name.front();
  const auto residue_columns = [&](const StructureResidue& residue) {
    return fmt::format("{:>3} {}{}", residue.name, letter, whole(residue.number, 4));
  };
  for (const auto& residue : chain.residues) {
    check_name(residue.name, 3, "residue");
    const bool is_standard = residue.name == residue.parent || residue.name == "UNK";
    for (const auto& atom : residue.atoms) {
      check_name(atom.name, 4, "atom");
      const bool begins_left = atom.name.size() == 4 || atom.element.size() == 2;
      to += fmt::format("{:<6}{} {:<4} {}{}   {}{}{}{}{}          {:>2}  \n", is_standard ? "ATOM" : "HETATM",
                        whole(serial++, 5), (begins_left ? "" : " ") + atom.name, residue_columns(residue),
                        residue.insertion, fixed(atom.position[0], 8, 3), fixed(atom.position[1], 8, 3),
                        fixed(atom.position[2], 8, 3), fixed(atom.occupancy, 6, 2),
                        fixed(atom.b_factor, 6, 2), atom.element);
    }
  }
  if (chain.residues.empty()) return;
  to += fmt::format("TER   {}      {}\n", whole(serial++, 5), residue_columns(chain.residues.back()));
}

}  // namespace

Structure parse_pdb(std::string_view text, std::string_view name) {
  PdbReader reader(name);
  for (size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    reader.read(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return reader.finish();
}

std::string to_pdb(const Structure& structure) {
  std::string text;
  const bool has_several = structure.models.size() > 1;
  for (size_t i = 0; i < structure.models.size(); ++i) {
    if (has_several) text += fmt::format("MODEL     {}\n", whole(static_cast<int64_t>(i) + 1, 4));
    int64_t serial = 1;
    for (const auto& chain : structure.models[i].chains) write_chain(chain, serial, text);
    if (has_several) text += "ENDMDL\n";
  }
  return text + "END\n";
}

}  // namespace zoo
