// Files of structures and of sequences.

#include <zlib.h>

#include <chrono>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/residues/residues.h"
#include "data/structures/ca_trace.h"
#include "data/structures/formats.h"
#include "data/structures/sequences.h"
#include "data/structures/structure.h"
#include "io/files.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

/// A structure with all that is special: two models, chains that are interrupted, an altered residue that is
/// known and one that only the file explains, an insertion, a gap, atoms and residues at two places, water.
std::filesystem::path seed(const std::string& name) {
  return std::filesystem::absolute(__FILE__).parent_path() / "../fuzz/seeds" / name;
}

std::string described(const StructureResidue& residue) {
  return fmt::format("{}{}{}:{}:{}", residue.name, residue.number, residue.insertion, residue.parent,
                     residue.atoms.size());
}

std::vector<std::string> described(const StructureChain& chain) {
  std::vector<std::string> residues;
  for (const auto& residue : chain.residues) residues.push_back(described(residue));
  return residues;
}

void expect_small(const Structure& structure) {
  EXPECT_EQ(structure.name, "1ABC");
  ASSERT_EQ(structure.models.size(), 2U);
  for (const auto& model : structure.models) {
    ASSERT_EQ(model.chains.size(), 2U);
    const auto& a = model.chains[0];
    EXPECT_EQ(a.name, "A");
    const auto& glycine = a.residues.front();
    EXPECT_THAT(glycine.atom("N")->position, ElementsAre(1.5, -2.25, 3.125));
    EXPECT_EQ(glycine.atom("N")->b_factor, 11.5);
    EXPECT_EQ(glycine.atom("CA")->position[0], 2.5) << "the place where the atom is more often";
    EXPECT_EQ(glycine.atom("O"), nullptr);
    EXPECT_EQ(a.residues[1].atom("SE")->element, "SE");
    EXPECT_EQ(a.residues[2].name, "SER") << "the first of two residues at one place";
  }
}

std::string gzip(std::string_view text) {
  constexpr int gzip_window = 15 + 16, memory = 8;
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, gzip_window, memory, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST(Structures, PdbAndMmcifSayTheSame) {
  const auto pdb = read_structure(seed("pdb/small.pdb")), cif = read_structure(seed("mmcif/small.cif"));
  expect_small(pdb);
  expect_small(cif);
  EXPECT_THAT(described(pdb.models[0].chains[0]),
              ElementsAre("GLY52 :GLY:3", "MSE52A:MET:3", "SER53 :SER:1", "TYX55 :TYR:1", "HOH201 ::1"));
  EXPECT_THAT(described(pdb.models[1].chains[1]), ElementsAre("ALA-1 :ALA:1", "GLY0 :GLY:1"));
  // Only PDB has a record for it that is read.
  EXPECT_EQ(described(cif.models[0].chains[0])[3], "TYX55 ::1");
  EXPECT_EQ(letters_of(pdb.models[0].chains[0]), "GMAXS");
  EXPECT_EQ(letters_of(cif.models[0].chains[0]), "GMAXS");
  EXPECT_EQ(letters_of(cif.models[0].chains[1]), "AG");
}

TEST(Structures, AreReadAsTheyAreWritten) {
  const auto read = read_structure(seed("pdb/small.pdb"));
  for (const auto& text : {to_pdb(read), to_mmcif(read)}) {
    auto again = parse_structure(text, "again");
    ASSERT_EQ(again.models.size(), 2U);
    for (size_t chain = 0; chain < 2; ++chain) {
      const auto& residues = again.models[1].chains[chain].residues;
      ASSERT_EQ(residues.size(), read.models[1].chains[chain].residues.size());
      for (size_t i = 0; i < residues.size(); ++i) {
        const auto& expected = read.models[1].chains[chain].residues[i];
        EXPECT_EQ(residues[i].name, expected.name);
        EXPECT_EQ(residues[i].number, expected.number);
        EXPECT_EQ(residues[i].insertion, expected.insertion);
        for (const auto& atom : expected.atoms) {
          ASSERT_TRUE(residues[i].atom(atom.name));
          EXPECT_EQ(residues[i].atom(atom.name)->position, atom.position);
          EXPECT_EQ(residues[i].atom(atom.name)->element, atom.element);
        }
      }
    }
  }
}

TEST(Structures, WhatDoesNotFitIntoPdbIsRefused) {
  auto structure = read_structure(seed("mmcif/small.cif"));
  structure.models[0].chains[0].name = "AA";
  EXPECT_THAT(message_of<DataError>([&] { to_pdb(structure); }), HasSubstr("write mmCIF"));
  EXPECT_EQ(parse_structure(to_mmcif(structure), "long").models[0].chains[0].name, "AA");
  structure.models[0].chains[0].name = "A";
  structure.models[0].chains[0].residues[0].atoms[0].position[1] = 123456;
  EXPECT_THAT(message_of<DataError>([&] { to_pdb(structure); }), HasSubstr("write mmCIF"));
}

TEST(Structures, BadFilesGetOneLine) {
  const auto message = [](const std::string& text) {
    return message_of<DataError>([&] { parse_structure(text, "x.pdb"); });
  };
  EXPECT_THAT(message(""), HasSubstr("empty"));
  EXPECT_THAT(message("REMARK nothing\n"), HasSubstr("has no atoms"));
  EXPECT_THAT(message("ATOM      1  N   GLY A  52       1.500\n"),
              HasSubstr("x.pdb:1: the line of an atom is too short"));
  const std::string good =
      "ATOM      1  N   GLY A  52       1.500  -2.250   3.125  1.00 11.50           N  \n";
  EXPECT_EQ(parse_structure(good, "x.pdb").models.size(), 1U);
  for (const auto& [from, to] :
       {std::pair{"  52 ", "  x2 "}, {"   1.500", "     nan"}, {"   1.500", "   1.5.0"}, {" N  ", "    "}}) {
    auto bad = good;
    bad.replace(bad.find(from), std::string(from).size(), to);
    EXPECT_THAT(message(bad), HasSubstr("x.pdb:1: ")) << bad;
  }
  EXPECT_THAT(message("data_x\n_a.b\n"), HasSubstr("has no value"));
  EXPECT_THAT(message("data_x\nloop_\n_a.b\n_a.c\n1 2 3\n"), HasSubstr("not complete"));
  EXPECT_THAT(message("data_x\n_a.b 'c\n"), HasSubstr("has no end"));
  EXPECT_THAT(message("data_x\n_a.b\n;text\n"), HasSubstr("has no end"));
  EXPECT_THAT(message("data_x\nloop_\n_atom_site.id\n1\n"), HasSubstr("have no item label_atom_id"));
}

// 100 chains of 1,000 atoms in all models.
TEST(Structures, LargeFilesTakeSeconds) {
  const auto begin = std::chrono::steady_clock::now();
  Structure large;
  for (int model = 0; model < 10; ++model) {
    auto& chains = large.models.emplace_back().chains;
    for (int chain = 0; chain < 100; ++chain) {
      auto& residues =
          chains.emplace_back(StructureChain{.name = fmt::format("{}", chain), .residues = {}}).residues;
      for (int residue = 0; residue < 20; ++residue) {
        residues.push_back({.name = "GLY", .parent = "GLY", .number = residue, .atoms = {}});
        for (const char* const name : {"N", "CA", "C", "O", "OXT"})
          residues.back().atoms.push_back({.name = name, .element = std::string(1, name[0])});
      }
    }
  }
  const auto read = parse_structure(to_mmcif(large), "large");
  EXPECT_EQ(read.models.size(), 10U);
  EXPECT_EQ(read.models[9].chains[99].residues[19].atoms.size(), 5U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));

  std::string crowded;
  for (int i = 0; i <= kMostAtomsOfResidue; ++i)
    crowded += "HETATM    1  C   XXX A   1       1.000   1.000   1.000\n";
  EXPECT_THAT(message_of<DataError>([&] { parse_structure(crowded, "x"); }),
              HasSubstr("has more than 1000 atoms"));
}

TEST(Structures, CompressedFilesAreUnpacked) {
  TempDir temp;
  const auto text = read_file(seed("pdb/small.pdb"));
  temp.write("small.pdb.gz", gzip(text));
  expect_small(read_structure(temp.path() / "small.pdb.gz"));
  EXPECT_TRUE(is_structure_file("x.CIF.gz"));
  EXPECT_FALSE(is_structure_file("x.fasta"));
  // The gzip of an empty text, cut off.
  temp.write("bad.pdb.gz", std::string("\x1F\x8B\x08\x00", 4));
  EXPECT_THAT(message_of<DataError>([&] { read_structure(temp.path() / "bad.pdb.gz"); }),
              HasSubstr("damaged or truncated"));
}

TEST(Sequences, AreReadFromFastaLinesAndStructures) {
  TempDir temp;
  temp.write("x.fasta", "; a comment\n>first of all\nmktay\nIAK*\n\n> second\nGG\n");
  const auto fasta = read_sequences(temp.path() / "x.fasta");
  ASSERT_EQ(fasta.size(), 2U);
  EXPECT_EQ(fasta[0].name, "first");
  EXPECT_EQ(fasta[0].letters, "MKTAYIAK");
  EXPECT_EQ(fasta[1].name, "second");
  EXPECT_EQ(fasta[1].letters, "GG");
  temp.write("lines.txt", "MKT\n\nAAA\n");
  const auto lines = read_sequences(temp.path() / "lines.txt");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].letters, "AAA");
  const auto chains = read_sequences(seed("pdb/small.pdb"));
  ASSERT_EQ(chains.size(), 2U);
  EXPECT_EQ(chains[0].name, "small_A");
  EXPECT_EQ(chains[1].letters, "AG");
  temp.write("bad.fasta", ">a\nMK1\n");
  EXPECT_THAT(message_of<DataError>([&] { read_sequences(temp.path() / "bad.fasta"); }),
              HasSubstr("a: character 3 of the sequence is no letter"));
  EXPECT_THAT(message_of<DataError>([&] { checked_sequence(" ", "--text"); }),
              HasSubstr("--text: the sequence is empty"));
}

TEST(Residues, HaveTheirAtoms) {
  for (int64_t residue = 0; residue < kAminoAcids; ++residue) {
    EXPECT_EQ(residue_of_letter(residue_letter(residue)), residue);
    EXPECT_EQ(residue_of_name(residue_name(residue)), residue);
    for (const auto& atom : amino_acids()[static_cast<size_t>(residue)].atoms)
      EXPECT_TRUE(!atom.exists() || atom_number(atom.name));
  }
  EXPECT_EQ(residue_of_letter('X'), kUnknownResidue);
  EXPECT_EQ(residue_name(kUnknownResidue), "UNK");
}

// ---- Chains laid onto each other
// ------------------------------------------------------------------------------

TEST(CaTraces, LettersAreAligned) {
  EXPECT_THAT(aligned_letters("MKTAYIAK", "TAYIA"),
              ElementsAre(Pair(2, 0), Pair(3, 1), Pair(4, 2), Pair(5, 3), Pair(6, 4)));
  // One gap in place of several.
  const auto pairs = aligned_letters("MKTAYIAKQRQISFVKS", "MKTAYQISFVKS");
  ASSERT_EQ(pairs.size(), 12U);
  for (const auto& [i, j] : pairs) EXPECT_EQ(i - j, j < 5 ? 0 : 5);
  EXPECT_THAT(aligned_letters("", "A"), ElementsAre());
  EXPECT_THAT(
      message_of<DataError>([] { aligned_letters(std::string(8'001, 'A'), std::string(8'000, 'C')); }),
      HasSubstr("chains of 8001 and 8000 residues are too long to be aligned"));
}

/// A chain in the file's place `chain`, of steps of 3.8 Å.
void add_chain(CaTrace& trace, const std::string& name, const std::string& letters) {
  const auto chain = std::ssize(trace.chains);
  trace.chains.push_back(name);
  const auto steps = torch::randn({std::ssize(letters), 3}, torch::kDouble);
  const auto places = (3.8 * steps / steps.norm(2, 1, true)).cumsum(0);
  trace.positions = trace.positions.defined() ? torch::cat({trace.positions, places}) : places;
  for (size_t i = 0; i < letters.size(); ++i) {
    trace.letters += letters[i];
    trace.numbers.push_back(std::to_string(i + 1));
    trace.chain_of.push_back(chain);
    trace.b_factors.push_back(0);
  }
}

TEST(CaTraces, ChainsFindTheirPartners) {
  torch::manual_seed(1);
  CaTrace trace, truth;
  const std::string first = "MKTAYIAKQRQISFVKSHFSRQLEERLGL", second = "GSHMDPWVLNECGTPPQQRSTVWYAACDE";
  add_chain(trace, "A", first);
  add_chain(trace, "B", second);
  // The same chains in the other order under other names, moved; the second one without its first four
  // residues; and one that has no partner.
  const auto quarter = torch::tensor({{0.0, -1.0, 0.0}, {1.0, 0.0, 0.0}, {0.0, 0.0, 1.0}}, torch::kDouble);
  const auto moved = trace.positions.matmul(quarter) + 40;
  add_chain(truth, "P", second.substr(4));
  add_chain(truth, "A", "WWWWWWWWWWWWWWWWWWWW");
  add_chain(truth, "Q", first);
  const auto n_first = std::ssize(first), n_second = std::ssize(second);
  truth.positions.slice(0, 0, n_second - 4).copy_(moved.slice(0, n_first + 4));
  truth.positions.slice(0, n_second - 4 + 20).copy_(moved.slice(0, 0, n_first));
  const auto result = superposed(trace, "trace", truth, "truth");
  EXPECT_EQ(result.length, n_first + n_second - 4);
  ASSERT_EQ(std::ssize(result.pairs), result.length);
  EXPECT_THAT(result.pairs.front(), Pair(0, n_second - 4 + 20));
  EXPECT_NEAR(result.rmsd, 0, 1e-9);
  EXPECT_NEAR(result.tm_score, 1, 1e-12);
  EXPECT_EQ(result.lddt, 1);
  for (const auto& [i, j] : result.pairs)
    EXPECT_LT((trace.positions[i] - result.truth.positions[j]).abs().max().item<double>(), 1e-9);

  CaTrace other;
  add_chain(other, "A", "WWWWWWWWWWWW");
  EXPECT_THAT(message_of<DataError>([&] { superposed(trace, "x.pdb", other, "y.pdb"); }),
              HasSubstr("y.pdb: no chain has a sequence like one of x.pdb"));
}

TEST(CaTraces, OnlyResiduesOfProteinsCount) {
  const auto trace = ca_trace(read_structure(seed("pdb/small.pdb")), "small.pdb");
  EXPECT_EQ(std::ssize(trace.numbers), std::ssize(trace.letters));
  EXPECT_EQ(trace.positions.size(0), std::ssize(trace.letters));
  EXPECT_THAT(trace.numbers, ::testing::Contains("52A")) << "of an insertion";
  // A calcium ion has an atom CA, too.
  const auto ion = parse_structure(
      "HETATM    1 CA    CA A   1       1.000   2.000   3.000  1.00  0.00          CA  \n", "ion.pdb");
  EXPECT_THAT(message_of<DataError>([&] { ca_trace(ion, "ion.pdb"); }),
              HasSubstr("ion.pdb: has no residue of a protein with a CA atom"));
}

}  // namespace
}  // namespace zoo::testing
