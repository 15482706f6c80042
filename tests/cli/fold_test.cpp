// zoo predict with a model that folds proteins.

#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "checkpoints/run.h"
#include "data/structures/structure.h"
#include "io/config/config_file.h"
#include "io/files.h"
#include "models/families/families.h"
#include "tests/cli/support.h"
#include "tests/support/small_structures.h"

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

TEST_F(Fold, ComparesWithTheTruthAndWritesPages) {
  ASSERT_EQ(run_zoo(dir(), "predict fold --input chains.fasta --out truths").code, 0);
  const auto outcome =
      run_zoo(dir(), "predict fold --input chains.fasta --out paged --page --truth truths/first.pdb");
  EXPECT_EQ(outcome.code, 2) << "the second chain is not in the file";
  EXPECT_THAT(outcome.out, StartsWith("first\t9\t"));
  EXPECT_THAT(outcome.out, HasSubstr("\t9\t1.000\t1.000\t0.00\n"));
  EXPECT_THAT(outcome.err,
              HasSubstr("truths/first.pdb: no chain has a sequence like one of second_.._chain"));
  const auto page = read_file(dir() / "paged/first.html");
  EXPECT_THAT(page, HasSubstr("<title>Structure: first</title>"));
  EXPECT_THAT(page, HasSubstr("\"letters\":\"MKTAYIAKQ\""));

  const auto shown = run_zoo(dir(), "predict fold --text MKTAYIAKQ --json --truth truths/first.pdb");
  const auto truth = nlohmann::json::parse(shown.out).at("results").at(0).at("truth");
  EXPECT_EQ(truth.at("paired"), 9);
  EXPECT_NEAR(truth.at("tm_score").get<double>(), 1, 1e-6);
}

TEST_F(Fold, FilesAreShownAndCompared) {
  ASSERT_EQ(run_zoo(dir(), "predict fold --text MKTAYIAKQ --out shown").code, 0);
  ASSERT_EQ(run_zoo(dir(), "predict fold --text TAYIAKQ --out shown2 --format cif").code, 0);
  EXPECT_EQ(run_zoo(dir(), "structure shown/sequence.pdb").out, "sequence.pdb\t1\t9\n");
  const auto both = run_zoo(dir(), "structure shown/sequence.pdb shown2/sequence.cif --json --out both.html");
  EXPECT_EQ(both.code, 0) << both.err;
  const auto truth = nlohmann::json::parse(both.out).at("truth");
  EXPECT_EQ(truth.at("residues"), 7);
  EXPECT_EQ(truth.at("paired"), 7);
  EXPECT_GT(truth.at("rmsd"), 0);
  EXPECT_THAT(read_file(dir() / "both.html"), HasSubstr("beside "));
  for (const auto& [arguments, message] : {std::pair{"missing.pdb", "missing.pdb"},
                                           {"chains.fasta", "chains.fasta"},
                                           {"shown/sequence.pdb missing.pdb", "missing.pdb"}}) {
    const auto outcome = run_zoo(dir(), std::string("structure ") + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
}

// A model that was trained here places backbones alone. A flow says nothing of its errors.
TEST_F(Fold, ModelsThatWereTrainedHereFoldBackbones) {
  const TempDir trained;
  write_structures(trained, "");
  const std::map<std::string, std::string> models{
      {"flow",
       "{architecture: {type: fold_flow, steps: 2, time_width: 8}, d_model: 16, n_layers: 1, n_heads: 2}"},
      {"pairs",
       "{architecture: {type: fold_pairs, n_blocks: 1, residue_width: 16, pair_width: 8, residue_heads: 2, "
       "pair_heads: 2}}"}};
  for (const auto& [name, model] : models) {
    trained.write(name + ".yaml", fmt::format(R"(
task: structure_prediction
data: {{train: folds, valid: folds, test: folds}}
model: {}
training: {{steps: 2, batch_size: 4}}
)",
                                              model));
    SCOPED_TRACE(name);
    const auto trains = run_zoo(trained, "train " + name + ".yaml --out " + name);
    ASSERT_EQ(trains.code, 0) << trains.err;
    const auto scores = run_zoo(trained, "evaluate " + name + " --split test");
    EXPECT_EQ(scores.code, 0) << scores.err;
    for (const auto* const metric :
         {"lddt_ca   0.", "tm_score  0.", "rmsd ", "bonded ", "clashes ", "chains    10"})
      EXPECT_THAT(scores.out, HasSubstr(metric));
    const auto outcome = run_zoo(
        trained, "predict " + name + " --text WWWWW --out " + name + "-out --page --truth folds/1.pdb");
    EXPECT_EQ(outcome.code, 2) << "the chain is not in the file";
    const auto folded =
        run_zoo(trained, "predict " + name + " --text VGLAVVKAEG --out out --page --truth folds/1.pdb");
    EXPECT_EQ(folded.code, 0) << folded.err;
    const bool knows = name == "pairs";
    EXPECT_THAT(folded.out, ::testing::MatchesRegex(knows ? "sequence\t10\t[0-9.]+\t[0-9.]+\t10\t[^\n]*\n"
                                                          : "sequence\t10\t-\t-\t10\t[^\n]*\n"));
    const auto chain = read_structure(trained / "out/sequence.pdb").models.front().chains.front();
    EXPECT_EQ(letters_of(chain), "VGLAVVKAEG");
    for (const auto& residue : chain.residues) EXPECT_EQ(residue.atoms.size(), 4U);
    EXPECT_THAT(read_file(trained / "out/sequence.html"),
                HasSubstr(knows ? "\"predicted\":true" : "\"predicted\":false"));
    const auto answer = nlohmann::json::parse(run_zoo(trained, "predict " + name + " --text MKT --json").out);
    const auto& result = answer.at("results").at(0);
    EXPECT_EQ(result.at("mean_plddt").is_null(), !knows);
    EXPECT_EQ(result.at("predicted_aligned_error").is_null(), !knows);
  }
  EXPECT_EQ(run_zoo(trained, "predict pairs --text MKT --recycles 1").code, 0);
  const auto refused = run_zoo(trained, "predict flow --text MKT --recycles 1");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("has no recycling"));
  trained.write("nothing/readme.txt", "");
  const auto empty = run_zoo(trained, "train flow.yaml --out other --set data.train=nothing");
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("nothing: has no files of structures"));
}

TEST_F(Fold, OptionsOfOthersAreRefused) {
  for (const auto& [options, message] : {std::pair{"--text MKT --top 2", "--top: this run folds proteins"},
                                         {"--text MKT --image x.png", "--image: this run folds proteins"},
                                         {"--text MKT --format cif", "give --out, too"},
                                         {"--text MKT --page", "--page: give the directory with --out, too"},
                                         {"--text MKT --truth missing.pdb", "missing.pdb"},
                                         {"--text M1", "character 2 of the sequence is no letter"},
                                         {"--input missing.fasta", "missing.fasta"}}) {
    const auto outcome = run_zoo(dir(), std::string("predict fold ") + options);
    EXPECT_EQ(outcome.code, 2) << options;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
}

}  // namespace
}  // namespace zoo::testing
