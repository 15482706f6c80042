// ESMFold and its layers against transformers' EsmForProteinFolding.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/residues/residues.h"
#include "checkpoints/run.h"
#include "data/structures/formats.h"
#include "data/structures/structure_comparison.h"
#include "interop/foreign_export.h"
#include "interop/foreign_model.h"
#include "io/json_document.h"
#include "layers/folding/confidence.h"
#include "layers/folding/invariant_point_attention.h"
#include "layers/folding/triangles.h"
#include "models/folding_model.h"
#include "tasks/structures/folded_chain.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

constexpr double kFoldingTolerance = 1e-4;

class FoldingLayers : public ReferenceTest {
 protected:
  FoldingLayers() : ReferenceTest("reference_folding.py") {}

  template <class Module>
  void check_triangles(const std::string& name, Module module) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file(name));
    reference.load(*module);
    const auto mask = SafetensorsFile(file(name)).tensor("input/mask");
    const auto y = module->forward(reference.input("x"), mask);
    reference.expect_output("y", y);
    reference.backward({{"y", y}});
    reference.expect_gradients(module.get());
  }
};

constexpr int64_t kPairWidth = 12;

TEST_F(FoldingLayers, TrianglesAreMultiplied) {
  check_triangles("outgoing", TriangleMultiplication(kPairWidth, TriangleEdges::outgoing));
  check_triangles("incoming", TriangleMultiplication(kPairWidth, TriangleEdges::incoming));
}

TEST_F(FoldingLayers, TrianglesAttend) {
  check_triangles("starting", TriangleAttention(kPairWidth, 3, TriangleNode::starting));
  check_triangles("ending", TriangleAttention(kPairWidth, 3, TriangleNode::ending));
}

TEST_F(FoldingLayers, StructuresAreComparedAsWrittenOut) {
  const SafetensorsFile reference(file("comparison"));
  for (int i = 0; i < 50; ++i) {
    SCOPED_TRACE(i);
    const auto tensor = [&](const char* name) { return reference.tensor(std::to_string(i) + "/" + name); };
    const auto number = [&](const char* name) { return tensor(name).item<double>(); };
    const auto predicted = tensor("predicted"), truth = tensor("truth"), mask = tensor("mask");
    constexpr double tolerance = 1e-9;
    const auto motion = superposition(predicted, truth, mask);
    EXPECT_NEAR(motion.rmsd, number("rmsd"), tolerance);
    const auto errors = (motion(predicted) - truth).square().sum(1).index({mask});
    EXPECT_NEAR(errors.mean().sqrt().item<double>(), motion.rmsd, tolerance);
    EXPECT_NEAR(torch::linalg_det(motion.rotation).item<double>(), 1, tolerance);
    EXPECT_NEAR(lddt(predicted, truth, mask).score, number("lddt"), tolerance);
    EXPECT_NEAR(tm_score(predicted, truth, mask, truth.size(0)).score, number("tm_score"), tolerance);
  }
}

InvariantPointAttention point_attention() {
  return InvariantPointAttention(InvariantPointAttentionOptions(10, kPairWidth)
                                     .n_heads(3)
                                     .head_width(5)
                                     .query_points(2)
                                     .value_points(4));
}

TEST_F(FoldingLayers, PointsAttend) {
  ReferenceCase reference(file("point_attention"));
  auto module = point_attention();
  reference.load(*module);
  const auto mask = SafetensorsFile(file("point_attention")).tensor("input/mask");
  const Rigid frames{.rotation = reference.input("rotations"), .translation = reference.input("places")};
  const auto y = module(reference.input("x"), reference.input("pairs"), frames, mask) * mask.unsqueeze(-1);
  reference.expect_output("y", y);
  reference.backward({{"y", y}});
  reference.expect_gradients(module.get());
}

/// A directory that reference_folding.py makes.
struct FoldingCase {
  Transformers version;
  std::string name;
};

class FoldingModels : public ReferenceTest, public ::testing::WithParamInterface<FoldingCase> {
 protected:
  FoldingModels() : ReferenceTest("reference_folding.py", GetParam().version) {}

  std::filesystem::path directory() const { return file(GetParam().name).replace_extension(); }
  SafetensorsFile reference() const { return SafetensorsFile(file(GetParam().name)); }
};

/// The outputs of one batch, without what padding has. Outputs may be (B, L, …), (B, L, L, …) or (K, B, L,
/// …).
class Outputs {
 public:
  Outputs(const SafetensorsFile& file, std::string batch) : file_(file), batch_(std::move(batch)) {
    lengths_ = file.tensor(batch_ + "/lengths");
  }

  Batch batch() const {
    Batch batch;
    batch.input = {.ids = file_.tensor(batch_ + "/ids"), .lengths = lengths_};
    return batch;
  }
  torch::Tensor expected(const std::string& name) const { return file_.tensor(batch_ + "/" + name); }

  enum class Form { residues, pairs, blocks };
  void expect(const std::string& name, const torch::Tensor& actual, Form form,
              double tolerance = kFoldingTolerance) const {
    const auto theirs = expected(name);
    ASSERT_EQ(actual.sizes(), theirs.sizes()) << batch_ << " " << name;
    for (int64_t row = 0; row < lengths_.numel(); ++row) {
      const int64_t n = lengths_[row].item<int64_t>();
      const auto real = [&](const torch::Tensor& all) {
        const auto one = all.select(form == Form::blocks ? 1 : 0, row);
        if (form == Form::blocks) return one.narrow(1, 0, n);
        return form == Form::pairs ? one.narrow(0, 0, n).narrow(1, 0, n) : one.narrow(0, 0, n);
      };
      const double error = (real(actual) - real(theirs)).abs().max().item<double>();
      EXPECT_LE(error, tolerance * std::max(1.0, real(theirs).abs().max().item<double>()))
          << batch_ << " " << name << " of row " << row;
    }
  }

 private:
  const SafetensorsFile& file_;
  std::string batch_;
  torch::Tensor lengths_;
};

TEST_P(FoldingModels, ComputesWhatTransformersComputes) {
  const torch::NoGradGuard no_grad;
  const auto run = Run::open(directory());
  auto* const model = folding_of(run.model());
  ASSERT_TRUE(model);
  const auto reference = this->reference();
  using Form = Outputs::Form;
  const auto check = [&](const std::string& batch, std::optional<int64_t> passes) {
    const Outputs outputs(reference, batch);
    const auto result = model->fold(outputs.batch(), passes);
    const auto& structures = result.folded.structures;
    outputs.expect("s_s", result.folded.representations.residues, Form::residues);
    outputs.expect("s_z", result.folded.representations.pairs, Form::pairs);
    outputs.expect("frames", structures.frames, Form::blocks);
    outputs.expect("sidechain_frames", structures.group_frames, Form::blocks);
    outputs.expect("unnormalized_angles", structures.raw_angles, Form::blocks);
    outputs.expect("angles", structures.angles, Form::blocks);
    outputs.expect("positions", structures.positions, Form::blocks);
    outputs.expect("states", structures.states, Form::blocks);
    outputs.expect("distogram_logits", result.distance_logits, Form::pairs);
    outputs.expect("ptm_logits", result.error_logits, Form::pairs);
    outputs.expect("lm_logits", result.residue_logits, Form::residues);
    outputs.expect("lddt_head", result.lddt_logits, Form::blocks);
    outputs.expect("plddt", expected_lddt(result.lddt_logits[-1]), Form::residues);
    outputs.expect("predicted_aligned_error", predicted_aligned_error(result.error_logits), Form::pairs);
    // transformers has one number for a batch, over the padding, too.
    if (outputs.batch().input.ids.size(0) > 1) return;
    EXPECT_NEAR(predicted_tm_score(result.error_logits[0]).item<double>(),
                outputs.expected("ptm").item<double>(), kFoldingTolerance);
  };
  check("batch", std::nullopt);
  check("once", 1);
  check("thrice", 3);
  for (const int length : {1, 2, 3, 5, 64}) check("length" + std::to_string(length), std::nullopt);
}

TEST_P(FoldingModels, HasTheGradientsOfPyTorch) {
  const auto foreign = open_foreign(directory());
  const auto run = Run::open(directory());
  auto& model = run.model();
  const auto reference = this->reference();
  const Outputs outputs(reference, "gradients");
  const auto result = folding_of(model)->fold(outputs.batch(), 2);
  const std::vector<torch::Tensor> heads = {result.folded.structures.positions,
                                            result.folded.structures.angles,
                                            result.distance_logits,
                                            result.error_logits,
                                            result.residue_logits,
                                            result.lddt_logits};
  torch::Tensor loss = torch::zeros({});
  for (size_t i = 0; i < heads.size(); ++i)
    loss = loss + (heads[i] * reference.tensor("upstream/" + std::to_string(i))).mean();
  loss.backward();

  const auto config = parse_json(foreign.task->vocabulary().foreign_files.at("config.json"));
  const auto mapping = tensor_mapping(*foreign.family, run.experiment(), foreign.task->purpose(), config);
  auto stored = file(GetParam().name);
  const auto gradients =
      mapping.imported(std::make_shared<SafetensorsFile>(stored.replace_extension(".gradients.safetensors")),
                       Compared::shapes);
  int64_t n_checked = 0;
  for (const auto& item : model.named_parameters()) {
    const auto& gradient = item.value().grad();
    auto expected = torch::zeros_like(item.value());
    gradients->read_into(expected, item.key());
    const auto known =
        expected.isfinite();  // reference_folding.py says of which transformers has no gradient
    expected.nan_to_num_();
    const double size = expected.norm().item<double>();
    if (!gradient.defined()) {
      EXPECT_EQ(size, 0) << item.key();
      continue;
    }
    ++n_checked;
    EXPECT_LE(((gradient - expected) * known).norm().item<double>(), 1e-3 * size + 1e-6) << item.key();
  }
  EXPECT_GT(n_checked, 60);
}

/// Lines of a file of a structure.
std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// transformers also writes a line PARENT, which is for a contest of predictions.
TEST_P(FoldingModels, WritesTheFilesOfTransformers) {
  const auto run = Run::open(directory());
  const auto reference = this->reference();
  for (const int length : {1, 2, 3, 5, 64}) {
    auto path = file(GetParam().name);
    path.replace_filename(GetParam().name + "." + std::to_string(length) + ".pdb");
    auto theirs = content(path);
    const std::string parent = "PARENT N/A\n";
    ASSERT_TRUE(theirs.starts_with(parent)) << path;
    theirs = theirs.substr(parent.size());
    EXPECT_EQ(to_pdb(parse_pdb(theirs, "theirs")), theirs);

    std::string letters;
    const auto ids = reference.tensor("length" + std::to_string(length) + "/ids");
    for (int64_t i = 0; i < ids.numel(); ++i) letters += residue_letter(ids.view(-1)[i].item<int64_t>());
    const auto folded = fold_chain(run.model(), {.name = "chain", .letters = letters});
    auto ours = folded.structure.models.front().chains.front().residues;
    std::erase_if(ours, [](const auto& residue) { return residue.atoms.empty(); });  // X
    const auto parsed = parse_pdb(theirs, "theirs");
    const auto& expected = parsed.models.front().chains.front().residues;
    ASSERT_EQ(ours.size(), expected.size());
    const double close = 1e-3 * std::max(length, 2);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(ours[i].name, expected[i].name);
      ASSERT_EQ(ours[i].atoms.size(), expected[i].atoms.size());
      for (size_t j = 0; j < expected[i].atoms.size(); ++j) {
        const auto &a = ours[i].atoms[j], &b = expected[i].atoms[j];
        EXPECT_EQ(a.name, b.name);
        for (size_t axis = 0; axis < 3; ++axis) EXPECT_NEAR(a.position[axis], b.position[axis], close);
        EXPECT_NEAR(a.b_factor, b.b_factor, 0.02);
      }
    }
  }
}

TEST_P(FoldingModels, AreExportedAsTheyCame) {
  const auto foreign = open_foreign(directory());
  TempDir temp;
  const auto out = temp.path() / "exported";
  export_foreign(out, *foreign.task, foreign.tensors, std::nullopt, std::nullopt);
  const SafetensorsFile before(directory() / "model.safetensors"), after(out / "model.safetensors");
  for (const auto& name : before.names()) {
    // Each version has names of its own for some.
    if (!after.contains(name)) continue;
    EXPECT_EQ(before.dtype(name), after.dtype(name)) << name;
    EXPECT_TRUE(before.tensor(name).equal(after.tensor(name))) << name;
  }
  EXPECT_EQ(parse_json(content(out / "config.json")), parse_json(content(directory() / "config.json")));

  // As a model that came with no file: config.json is written, and read again.
  auto vocabulary = foreign.task->vocabulary();
  vocabulary.foreign_files.clear();
  const auto own = task_with_vocabulary(foreign.task->experiment(), vocabulary);
  export_foreign(temp.path() / "own", *own, foreign.tensors, std::nullopt, std::nullopt);
  const auto again = open_foreign(temp.path() / "own");
  for (const auto& name : foreign.tensors->names())
    EXPECT_TRUE(again.tensors->tensor(name).equal(foreign.tensors->tensor(name))) << name;
}

INSTANTIATE_TEST_SUITE_P(Versions, FoldingModels,
                         ::testing::Values(FoldingCase{Transformers::newest, "esmfold"},
                                           FoldingCase{Transformers::newest, "esmfold_plain"},
                                           FoldingCase{Transformers::of_version_4, "esmfold"},
                                           FoldingCase{Transformers::of_version_4, "esmfold_plain"}),
                         [](const auto& tested) {
                           return tested.param.name +
                                  (tested.param.version == Transformers::newest ? "_5" : "_4");
                         });

// Motions of the whole change nothing that is not a place.
TEST(FoldingInvariance, PointAttentionSeesNoCommonMotion) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  auto module = point_attention();
  const auto x = torch::randn({2, 7, 10}), pairs = torch::randn({2, 7, 7, kPairWidth});
  const auto quaternions = torch::randn({2, 7, 4});
  const Rigid frames{.rotation = rotations_of(quaternions / quaternions.norm(2, -1, true)),
                     .translation = torch::randn({2, 7, 3})};
  const auto turn = torch::randn({1, 1, 4});
  const Rigid motion{.rotation = rotations_of(turn / turn.norm(2, -1, true)),
                     .translation = torch::randn({1, 1, 3}) * 5};
  const auto mask = torch::ones({2, 7});
  expect_close(module(x, pairs, motion.compose(frames), mask), module(x, pairs, frames, mask), "moved",
               kFoldingTolerance);
}

}  // namespace
}  // namespace zoo::testing
