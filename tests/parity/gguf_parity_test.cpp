// GGUF files: every format of numbers as the package gguf reads it, and models as transformers computes them.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "checkpoints/run.h"
#include "io/formats/gguf_file.h"
#include "models/inference_scope.h"
#include "tests/parity/reference.h"
#include "text/batches/padded_rows.h"

namespace zoo::testing {
namespace {

class GgufParity : public ReferenceTest {
 protected:
  GgufParity() : ReferenceTest("reference_gguf.py") {}
  std::filesystem::path gguf(const std::string& name) const {
    auto path = file(name);
    return path.replace_extension(".gguf");
  }
};

TEST_F(GgufParity, EveryFormat) {
  const GgufFile stored(gguf("formats"));
  const ReferenceCase reference(file("formats"));
  EXPECT_EQ(stored.names().size(), 12);
  for (const auto& name : stored.names()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(stored.stored_as(name).name, name);
    const auto expected = reference.output(name);
    EXPECT_EQ(stored.shape(name), expected.sizes().vec());
    const auto ours = stored.tensor(name).to(torch::kFloat);
    EXPECT_LE((ours - expected).abs().max().item<double>(), 1e-5 * expected.abs().max().item<double>());
  }
  EXPECT_EQ(stored.metadata()["test.text"], "Où est “la mer” ?");
  EXPECT_EQ(stored.metadata()["test.negative"], -5);
  EXPECT_EQ(stored.metadata()["test.half"], 0.5);
  EXPECT_EQ(stored.metadata()["test.yes"], true);
  EXPECT_EQ(stored.metadata()["test.list"], nlohmann::json({"a", "b", ""}));
}

TEST_F(GgufParity, Models) {
  for (const std::string name : {"gpt2", "llama", "llama_tied", "qwen2", "qwen3"}) {
    SCOPED_TRACE(name);
    const auto run = Run::open(gguf(name));
    const ReferenceCase reference(file(name));
    Batch batch;
    batch.input = {reference.get("input/ids"), {}};
    const InferenceScope scope(run.model());
    const auto logits = run.model().logits(run.model().features(batch));
    const auto expected = reference.output("logits");
    EXPECT_LE((logits.view_as(expected) - expected).abs().max().item<double>(), 1e-4);
    EXPECT_EQ(run.tokenizer().encode("the ship came home 1984, who is there?<|end|>nobody"),
              int64_values(reference.output("encoded")));
    EXPECT_EQ(run.tokenizer().special().eos, 0);
    EXPECT_EQ(run.tokenizer().frame()->before.size(), name.starts_with("llama") ? 1 : 0);
  }
}

}  // namespace
}  // namespace zoo::testing
