// The kernels on every path that the processor has: the other tests run on its best path, these run them
// again on narrower ones.

#include "kernels/isa/paths.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/named_enum.h"

namespace zoo {
namespace {

constexpr auto kVariable = "ATEN_CPU_CAPABILITY";

std::string capability(CpuPath path) {
  return path == CpuPath::portable ? "default" : std::string(name_of(path));
}

TEST(CpuPath, IsLimitedByTheEnvironment) {
  const char* const wanted = std::getenv(kVariable);
  if (!wanted) GTEST_SKIP() << kVariable << " is not set";
  for (const auto path : {CpuPath::portable, CpuPath::avx2, CpuPath::avx512}) {
    if (wanted != capability(path)) continue;
    EXPECT_LE(best_path(), path) << wanted;
  }
}

class NarrowerPath : public ::testing::TestWithParam<CpuPath> {};

TEST_P(NarrowerPath, PassesTheTestsOfTheKernels) {
  if (GetParam() >= best_path()) GTEST_SKIP() << "the best path is " << name_of(best_path());
  // Without the slowest, of dropout's shares.
  constexpr std::string_view tests =
      "CpuPath.*:*Gelu*:Swiglu.*:RmsNorm.*:CrossEntropy.*:CpuRotary.*:Dropout.*:TensorLists.*:CpuAttention.*:"
      "FewQueriesAttention.*:LinearGradients.*:KeyValueState.*:PackedMatrices.*"
      "-Dropout.KeepsTheMean*:Dropout.ElementsAreIndependent";
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto command = std::string(kVariable) + "=" + capability(GetParam()) + " '" + program +
                       "' --gtest_brief=1 --gtest_filter='" + std::string(tests) + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

INSTANTIATE_TEST_SUITE_P(Cpu, NarrowerPath, ::testing::Values(CpuPath::portable, CpuPath::avx2),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace zoo
