// zoo predict with a model that folds proteins.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "checkpoints/run.h"
#include "data/structures/structure.h"
#include "io/config/config_file.h"
#include "models/families/families.h"
#include "tests/cli/support.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A directory with the run "fold", which has random weights, and chains.
class Fold : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    const auto experiment = parse_complete_experiment(R"(
task: structure_prediction
model:
  architecture:
    type: esmfold
    passes: 2
    n_blocks: 1
    residue_width: 16
    pair_width: 8
    residue_heads: 2
    pair_heads: 2
    structure: {residue_width: 12, pair_width: 6, n_blocks: 2, n_heads: 2, head_width: 4, angle_width: 8}
  vocab_size: 33
  position: rotary
  d_model: 16
  n_layers: 2
  n_heads: 2
  init_std: 0.2
)",
                                                      "fold.yaml");
    torch::manual_seed(1);
    write_run(*dir_ / "fold", experiment, {}, *initialized_model(experiment.model, {.head = HeadKind::none}));
    dir_->write("chains.fasta", ">first of two\nMKTAY\nIAKQ\n>second/../chain\nGGX\n");
  }
  static void TearDownTestSuite() { delete dir_; }

  static const TempDir& dir() { return *dir_; }

 private:
  static inline TempDir* dir_ = nullptr;
};

TEST_F(Fold, WritesAFileForEachChain) {
  const auto outcome = run_zoo(dir(), "predict fold --text mkt --input chains.fasta --out structures");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("sequence\t3\t"));
  EXPECT_THAT(outcome.out, HasSubstr("\nfirst\t9\t"));
  const auto structure = read_structure(dir() / "structures/first.pdb");
  const auto& chain = structure.models.front().chains.front();
  EXPECT_EQ(letters_of(chain), "MKTAYIAKQ");
  for (const auto& residue : chain.residues) {
    ASSERT_TRUE(residue.atom("CA"));
    EXPECT_GT(residue.atom("CA")->b_factor, 1) << "pLDDT is from 0 to 100";
  }
  // The name leads nowhere else. X has no atoms.
  const auto second = read_structure(dir() / "structures/second_.._chain.pdb");
  EXPECT_EQ(letters_of(second.models.front().chains.front()), "GG");

  EXPECT_EQ(run_zoo(dir(), "predict fold --input structures/first.pdb --out again --format cif").code, 0);
  const auto again = read_structure(dir() / "again/first.cif").models.front().chains.front();
  ASSERT_EQ(again.residues.size(), chain.residues.size());
  for (size_t i = 0; i < again.residues.size(); ++i)
    EXPECT_EQ(again.residues[i].atom("CA")->position, chain.residues[i].atom("CA")->position);
}

TEST_F(Fold, SaysWhatItIsSureOf) {
  const auto folded = [](const std::string& options) {
    const auto outcome = run_zoo(dir(), "predict fold --text MKTAY --json" + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("results").at(0);
  };
  const auto result = folded("");
  EXPECT_EQ(result.at("sequence"), "MKTAY");
  EXPECT_EQ(result.at("plddt").size(), 5U);
  EXPECT_EQ(result.at("predicted_aligned_error").at(4).size(), 5U);
  EXPECT_EQ(folded(" --recycles 1"), result) << "the model's own two passes";
  EXPECT_NE(folded(" --recycles 0"), result);
}

TEST_F(Fold, OptionsOfOthersAreRefused) {
  for (const auto& [options, message] : {std::pair{"--text MKT --top 2", "--top: this run folds proteins"},
                                         {"--text MKT --image x.png", "--image: this run folds proteins"},
                                         {"--text MKT --format cif", "give --out, too"},
                                         {"--text M1", "character 2 of the sequence is no letter"},
                                         {"--input missing.fasta", "missing.fasta"}}) {
    const auto outcome = run_zoo(dir(), std::string("predict fold ") + options);
    EXPECT_EQ(outcome.code, 2) << options;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
}

}  // namespace
}  // namespace zoo::testing
