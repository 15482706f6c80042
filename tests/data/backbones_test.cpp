// Backbones of chains from files to batches.

#include "data/structures/backbones.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/residues/residues.h"
#include "data/structures/backbone_batches.h"
#include "tests/support/errors.h"
#include "tests/support/small_structures.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Backbone> chains_in(const TempDir& dir, const std::string& train) {
  DataConfig config;
  config.train = {ConfigPath((dir / train).string())};
  config.valid = config.train;
  return backbones_by_split(config).take(Split::train);
}

std::string problem_with(const TempDir& dir, const std::string& train) {
  return message_of<DataError>([&] { chains_in(dir, train); });
}

TEST(Backbones, OfAFileHaveResiduesWithCaAlone) {
  auto structure = backbone_structure("MAVG");
  auto& residues = structure.models[0].chains[0].residues;
  std::erase_if(residues[1].atoms, [](const Atom& atom) { return atom.name == "CA"; });
  std::erase_if(residues[3].atoms, [](const Atom& atom) { return atom.name == "O"; });
  residues.push_back({.name = "HOH", .parent = "", .number = 9, .atoms = {{.name = "O", .element = "O"}}});
  const auto chains = backbones_of(structure, "x.pdb");
  ASSERT_EQ(chains.size(), 1U);
  const auto& chain = chains.front();
  EXPECT_EQ(chain.name, "x.pdb");
  std::string letters;
  for (int64_t i = 0; i < chain.length(); ++i) letters += residue_letter(chain.residues[i].item<int64_t>());
  EXPECT_EQ(letters, "MVG");
  EXPECT_EQ(chain.known.sum().item<int64_t>(), 11);
  EXPECT_FALSE(chain.known[2][3].item<bool>());
  EXPECT_FLOAT_EQ(chain.positions[0][1][0].item<float>(), 1.458F);
  EXPECT_EQ(chain.positions[2][3].abs().max().item<float>(), 0);
}

TEST(Backbones, ComeFromFoldersFilesAndTables) {
  const TempDir dir;
  const auto pdb = to_pdb(backbone_structure("AVAG"));
  dir.write("folds/b.pdb", pdb);
  dir.write("folds/more/a.cif", to_mmcif(backbone_structure("GGGGG")));
  dir.write("folds/notes.txt", "no structure");
  const auto names = [](const std::vector<Backbone>& chains) {
    std::vector<std::string> result;
    for (const auto& chain : chains) result.push_back(chain.name);
    return result;
  };
  EXPECT_THAT(names(chains_in(dir, "folds")), ElementsAre("b.pdb", "a.cif"));
  EXPECT_THAT(names(chains_in(dir, "folds/b.pdb")), ElementsAre("b.pdb"));
  auto two = backbone_structure("AVAG");
  two.models[0].chains.push_back(backbone_structure("VVV").models[0].chains[0]);
  two.models[0].chains.back().name = "B";
  dir.write("folds/more/two.pdb", to_pdb(two));
  dir.write("list.tsv", "file\tchain\nfolds/more/two.pdb\tB\nfolds/b.pdb\t\n");
  EXPECT_THAT(names(chains_in(dir, "list.tsv")), ElementsAre("two.pdb B", "b.pdb"));
  dir.write("files.tsv", "file\nfolds/more/two.pdb\n");
  EXPECT_THAT(names(chains_in(dir, "files.tsv")), ElementsAre("two.pdb A", "two.pdb B"));
}

TEST(Backbones, BadFilesGetOneLine) {
  const TempDir dir;
  auto without_ca = backbone_structure("AVAG");
  for (auto& residue : without_ca.models[0].chains[0].residues)
    std::erase_if(residue.atoms, [](const Atom& atom) { return atom.name == "CA"; });
  dir.write("no-ca/bad.pdb", to_pdb(without_ca));
  EXPECT_THAT(problem_with(dir, "no-ca"), HasSubstr("bad.pdb: has no chain with 3 residues of a protein"));
  dir.write("empty/readme.txt", "");
  EXPECT_THAT(problem_with(dir, "empty"), HasSubstr("empty: has no files of structures"));
  dir.write("text.txt", "AVAG");
  EXPECT_THAT(problem_with(dir, "text.txt"), HasSubstr("structures are read from a folder"));
  dir.write("list.tsv", "file\n../x.pdb\n");
  EXPECT_THAT(problem_with(dir, "list.tsv"), HasSubstr("list.tsv:2: '../x.pdb' is no path"));
  dir.write("a.pdb", to_pdb(backbone_structure("AVAG")));
  dir.write("chain.tsv", "file\tchain\na.pdb\tC\n");
  EXPECT_THAT(problem_with(dir, "chain.tsv"), HasSubstr("a.pdb: has no chain C with 3 residues"));
}

TEST(Backbones, TheHashIsThatOfThePlaces) {
  auto chains = backbones_of(backbone_structure("AVAG"), "x");
  const auto before = hash_of_backbones(chains);
  chains.front().name = "y";
  EXPECT_EQ(hash_of_backbones(chains), before);
  chains.front().positions[2][1][0] += 0.001;
  EXPECT_NE(hash_of_backbones(chains), before);
}

std::shared_ptr<const std::vector<Backbone>> some_chains() {
  std::vector<Backbone> chains;
  for (const char* const letters : {"AVGLAVVKAEGVVLAAK", "AVAG", "GGGVVVAAA"})
    chains.push_back(backbones_of(backbone_structure(letters), letters).front());
  return std::make_shared<const std::vector<Backbone>>(std::move(chains));
}

TEST(BackboneBatches, AreCroppedAtPlacesThatTheEpochChooses) {
  const auto chains = some_chains();
  const auto make = [&] {
    BatchOptions options;
    options.batch_size = 3;
    options.seed = 5;
    return backbone_batches(chains, {.batches = options, .max_residues = 6, .copies = 2});
  };
  const auto source = make();
  bool moves = false;
  std::set<int64_t> places;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    const auto batch = source->batch(epoch, 0), again = make()->batch(epoch, 0);
    ASSERT_EQ(batch.n_rows(), 6);
    EXPECT_EQ(batch.tokens, 2 * (6 + 4 + 6));
    for (size_t i = 0; i < batch.tensors().size(); ++i) {
      if (!batch.tensors()[i].defined()) continue;
      EXPECT_TRUE(torch::equal(batch.tensors()[i], again.tensors()[i]));
    }
    const auto& numbers = batch.field(fields::kChainNumbers);
    const auto lengths = batch.input.row_lengths();
    for (int64_t b = 0; b < 6; ++b) {
      const auto& chain = chains->at(static_cast<size_t>(numbers[b].item<int64_t>()));
      const auto n = lengths[static_cast<size_t>(b)];
      EXPECT_EQ(n, std::min<int64_t>(chain.length(), 6));
      // The row is a part of the chain, moved.
      const auto row = batch.field(fields::kBackbone)[b];
      bool found = false;
      for (int64_t first = 0; first + n <= chain.length(); ++first) {
        const auto part = chain.positions.narrow(0, first, n);
        const auto shift = part.select(1, kCaPlace).mean(0);
        if (torch::equal(batch.input.ids[b].narrow(0, 0, n), chain.residues.narrow(0, first, n)) &&
            torch::allclose(row.narrow(0, 0, n), part - shift, 0, 1e-4)) {
          found = true;
          moves = moves || first > 0;
          if (numbers[b].item<int64_t>() == 0) places.insert(first);
        }
      }
      EXPECT_TRUE(found);
      EXPECT_EQ(batch.field(fields::kKnownAtoms)[b].sum().item<float>(), static_cast<float>(4 * n));
      EXPECT_EQ(row.narrow(0, n, row.size(0) - n).abs().sum().item<float>(), 0);
      EXPECT_TRUE(torch::equal(row, batch.field(fields::kBackbone)[b - b % 2])) << "a copy";
    }
  }
  EXPECT_TRUE(moves);
  EXPECT_GT(places.size(), 1U) << "other epochs choose other places";
}

TEST(BackboneBatches, AtomsThatAreNotKnownAreInTheMiddle) {
  auto chain = backbones_of(backbone_structure("AVAGVV"), "x").front();
  chain.known[2][3] = false;
  chain.positions[2][3].zero_();
  const auto source =
      backbone_batches(std::make_shared<const std::vector<Backbone>>(std::vector<Backbone>{chain}),
                       {.batches = BatchOptions(), .max_residues = 9});
  const auto batch = source->batch(0, 0);
  const auto places = batch.field(fields::kBackbone)[0];
  EXPECT_EQ(batch.field(fields::kKnownAtoms)[0][2][3].item<float>(), 0);
  EXPECT_EQ(places[2][3].abs().max().item<float>(), 0);
  EXPECT_GT(places[2][2].abs().max().item<float>(), 0);
  EXPECT_LT(places.select(1, kCaPlace).mean(0).abs().max().item<float>(), 1e-4);
}

TEST(BackboneBatches, OfEvaluationsHaveWholeChainsInOrder) {
  BatchOptions options;
  options.batch_size = 2;
  options.order = BatchOptions::Order::sequential;
  const auto source = backbone_batches(some_chains(), {.batches = options, .max_residues = 6, .copies = 2});
  ASSERT_EQ(source->n_batches(0), 2);
  const auto batch = source->batch(0, 0);
  EXPECT_THAT(batch.input.row_lengths(), ElementsAre(17, 4));
  EXPECT_EQ(batch.input.ids[1][5].item<int64_t>(), kUnknownResidue);
  EXPECT_EQ(source->batch(0, 1).field(fields::kChainNumbers)[0].item<int64_t>(), 2);
}

}  // namespace
}  // namespace zoo::testing
