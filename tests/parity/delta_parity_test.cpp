// The gated delta rule against transformers' Qwen3-Next.

#include <cmath>

#include "layers/delta_rule.h"
#include "models/mixers/delta_net.h"
#include "models/mixers/gated_convolution.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

class DeltaParity : public ReferenceTest {
 protected:
  DeltaParity() : ReferenceTest("reference_delta.py") {}

  void check_net(const std::string& name, const DeltaNetOptions& options) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file(name));
    DeltaNet net(options);
    reference.load(*net);
    const auto y = net(reference.input("x"), {.mask = Mask::causal()});
    reference.expect_output("y", y, 1e-4);
    reference.backward({{"y", y}});
    reference.expect_gradients(net.get());
  }
};

TEST_F(DeltaParity, TheRuleInChunksAndInSteps) {
  for (const char* const name : {"rule_chunk", "rule_recurrent"}) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file(name));
    const auto heads = [&](const char* input) { return reference.input(input).transpose(1, 2); };
    const auto q = heads("q");
    const auto result = delta_rule({.q = q / std::sqrt(static_cast<double>(q.size(-1))),
                                    .k = heads("k"),
                                    .v = heads("v"),
                                    .beta = heads("beta"),
                                    .log_alpha = heads("g"),
                                    .before = reference.input("before")});
    const auto y = result.output.transpose(1, 2);
    reference.expect_output("y", y, 1e-4);
    reference.expect_output("sum", result.sum, 1e-4);
    reference.backward({{"y", y}, {"sum", result.sum}});
    reference.expect_gradients();
  }
}

TEST_F(DeltaParity, TheWholeLayer) {
  const auto options = DeltaNetOptions(20, 4).head_dim(6).norm_eps(1e-5);
  check_net("net", options);
  check_net("net_grouped", DeltaNetOptions(options).n_key_heads(2));
}

TEST_F(DeltaParity, TheGatedConvolutionOfLfm2) {
  ReferenceCase reference(file("convolution"));
  GatedConvolution net(GatedConvolutionOptions(20).n_taps(3));
  reference.load(*net);
  const auto y = net(reference.input("x"), {.mask = Mask::causal()});
  reference.expect_output("y", y, 1e-5);
  reference.backward({{"y", y}});
  reference.expect_gradients(net.get());
}

}  // namespace
}  // namespace zoo::testing
