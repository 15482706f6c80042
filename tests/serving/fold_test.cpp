// /fold: structures of proteins over HTTP.

#include <memory>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "checkpoints/run.h"
#include "data/structures/formats.h"
#include "experiments/load_experiment.h"
#include "models/families/families.h"
#include "pages/structures/predicted_structure.h"
#include "tasks/structures/folded_chain.h"
#include "tests/serving/api_server.h"
#include "tests/support/small_structures.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using testing::ApiServer;
using testing::HttpClient;

class Folding : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = std::make_unique<testing::TempDir>();
    testing::write_structures(*dir_, "");
    const std::string
        flow =
            "{architecture: {type: fold_flow, steps: 3, time_width: 8}, d_model: 16, n_layers: 1, "
            "n_heads: 2}",
        pairs =
            "{architecture: {type: fold_pairs, n_blocks: 1, residue_width: 16, pair_width: 8, "
            "residue_heads: 2, structure: {residue_width: 16, pair_width: 8, n_heads: 2, "
            "n_blocks: 2}}}";
    ServiceOptions options;
    for (const auto& [name, keys] : {std::pair{"flow", flow}, std::pair{"pairs", pairs}}) {
      const auto experiment = parse_experiment(
          fmt::format("task: structure_prediction\ndata: {{train: {}, valid_fraction: 0.3}}\nmodel: {}\n",
                      (*dir_ / "folds").string(), keys),
          "fold.yaml");
      torch::manual_seed(4);
      write_run(*dir_ / name, experiment, {}, *initialized_model(experiment.model, {.head = HeadKind::none}));
      options.models.push_back({.id = name, .path = *dir_ / name});
    }
    service_ = std::make_unique<Service>(std::move(options));
  }
  static void TearDownTestSuite() {
    service_.reset();
    dir_.reset();
  }
  testing::Answer fold(const Json& body) const { return HttpClient(server_.port()).post("/fold", body); }

  static inline std::unique_ptr<testing::TempDir> dir_;
  static inline std::unique_ptr<Service> service_;
  ApiServer server_{*service_};
};

TEST_F(Folding, GivesWhatTheLibraryFolds) {
  for (const std::string model : {"flow", "pairs"}) {
    SCOPED_TRACE(model);
    const auto answer = fold({{"model", model}, {"sequence", " mktay\nIAKQX"}});
    ASSERT_EQ(answer.status, 200) << answer.body;
    const auto said = answer.json();
    const auto run = Run::open(*dir_ / model);
    const auto expected = fold_chain(run.model(), {.name = "sequence", .letters = "MKTAYIAKQX"});
    EXPECT_EQ(said["pdb"], to_pdb(expected.structure));
    EXPECT_EQ(said["structure"]["trace"]["letters"], "MKTAYIAKQ") << "an unknown residue has no atoms";
    EXPECT_EQ(said["mean_plddt"].is_null(), model == "flow") << "a flow says nothing of its errors";
    EXPECT_EQ(service_->card(model).can, std::set{Ability::fold});
  }
  EXPECT_EQ(fold({{"model", "pairs"}, {"sequence", "MK"}, {"recycles", 2}}).status, 200);
}

TEST_F(Folding, WhatIsWrongIsOneLine) {
  const auto problem = [&](const Json& body) {
    const auto answer = fold(body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.error();
  };
  EXPECT_THAT(problem({{"model", "flow"}, {"sequence", "MK1"}}), HasSubstr("is no letter: 1"));
  EXPECT_THAT(problem({{"model", "flow"}, {"sequence", "  "}}), HasSubstr("the sequence is empty"));
  EXPECT_THAT(problem({{"model", "flow"}}), HasSubstr("sequence"));
  EXPECT_THAT(problem({{"model", "flow"}, {"sequence", std::string(513, 'A')}}),
              HasSubstr("has 513 residues, and 512 are the most"));
  EXPECT_THAT(problem({{"model", "flow"}, {"sequence", std::string(5000, 'A')}}),
              HasSubstr("more than 512 residues"));
  EXPECT_THAT(problem({{"model", "flow"}, {"sequence", "MK"}, {"recycles", 2}}),
              HasSubstr("has no recycling"));
  EXPECT_THAT(problem({{"model", "flow"}, {"sequence", "MK"}, {"recycles", 17}}), HasSubstr("recycles"));
  EXPECT_THAT(problem({{"model", "flow"}, {"sequence", "MK"}, {"more", 1}}), HasSubstr("more is not known"));
  const auto other = HttpClient(server_.port()).post("/attention", {{"model", "flow"}, {"text", "MK"}});
  EXPECT_THAT(other.error(), HasSubstr("cannot do attention: it can do fold"));
}

// What a comparison shows is what an evaluation folds.
TEST_F(Folding, AnExampleIsAChainOfTheValidationData) {
  const auto run = Run::open(*dir_ / "flow");
  const auto shown = shown_example(run.task(), run.model());
  ASSERT_TRUE(shown.truth);
  EXPECT_EQ(shown.truth->pairs.size(), shown.trace.letters.size());
  const auto batch = run.task().batches(Split::valid).batch(0, 0);
  EXPECT_EQ(std::ssize(shown.trace.letters), batch.input.row_lengths().front());
  EXPECT_GT(shown.truth->rmsd, 0.5) << "it has hardly learnt";
  EXPECT_EQ(structure_data(shown)["truth"]["title"], "the truth");
}

}  // namespace
}  // namespace zoo
