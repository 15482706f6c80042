// Packed weights that are damaged. tests/parity/interop_parity_test.cpp compares whole ones with
// transformers.

#include "interop/families/packed_weights.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "io/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr PackedWeights kMxfp4{.packing = WeightPacking::mxfp4};
constexpr PackedWeights kFp8{.packing = WeightPacking::fp8, .block_rows = 2, .block_columns = 3};

std::shared_ptr<const TensorSource> stored(const TempDir& dir, const TensorMap& tensors) {
  save_safetensors(dir.path() / "x.safetensors", tensors);
  return std::make_shared<SafetensorsFile>(dir.path() / "x.safetensors");
}

torch::Tensor bytes(torch::IntArrayRef shape) { return torch::full(shape, 127, torch::kUInt8); }

std::string problem_of(const TensorMap& tensors, const PackedWeights& packed) {
  const TempDir dir;
  return message_of<CheckpointError>([&] { unpacked(stored(dir, tensors), packed); });
}

TEST(PackedWeights, OfMxfp4AreHalvesOfBytesTimesPowersOfTwo) {
  const TempDir dir;
  auto blocks = torch::zeros({1, 2, 1, 16}, torch::kUInt8);
  blocks[0][0][0][0] = 0x7F;   // low: -6, high: 6
  blocks[0][1][0][15] = 0x1C;  // low: -2, high: 0.5
  auto scales = bytes({1, 2, 1});
  scales[0][1][0] = 129;  // times 4
  const auto tensors =
      unpacked(stored(dir, {{"a_blocks", blocks}, {"a_scales", scales}, {"b", torch::ones({2})}}), kMxfp4);
  EXPECT_THAT(tensors->names(), ElementsAre("a", "b"));
  EXPECT_THAT(tensors->shape("a"), ElementsAre(1, 32, 2));
  EXPECT_EQ(tensors->dtype("a"), torch::kBFloat16);
  EXPECT_EQ(tensors->dtype("b"), torch::kFloat);
  auto expected = torch::zeros({1, 32, 2});
  expected[0][0][0] = -6;
  expected[0][1][0] = 6;
  expected[0][30][1] = -8;
  expected[0][31][1] = 2;
  EXPECT_TRUE(tensors->tensor("a").to(torch::kFloat).equal(expected));
}

TEST(PackedWeights, OfFp8HaveAFactorForEachBlock) {
  const TempDir dir;
  const auto numbers = torch::ones({3, 4}).to(torch::kFloat8_e4m3fn);
  const auto factors = torch::tensor({{1.0F, 2.0F}, {3.0F, 4.0F}});
  const auto tensors = unpacked(stored(dir, {{"a", numbers}, {"a_scale_inv", factors}}), kFp8);
  EXPECT_THAT(tensors->names(), ElementsAre("a"));
  EXPECT_TRUE(tensors->tensor("a")
                  .to(torch::kFloat)
                  .equal(torch::tensor(
                      {{1.0F, 1.0F, 1.0F, 2.0F}, {1.0F, 1.0F, 1.0F, 2.0F}, {3.0F, 3.0F, 3.0F, 4.0F}})));
}

TEST(PackedWeights, ThatAreDamagedAreRefused) {
  EXPECT_THAT(problem_of({{"a_blocks", bytes({1, 2, 1, 16})}}, kMxfp4),
              HasSubstr("its tensor 'a_blocks' has blocks, and no scales"));
  EXPECT_THAT(problem_of({{"a_scales", bytes({1, 2, 1})}}, kMxfp4), HasSubstr("has scales, and no blocks"));
  EXPECT_THAT(problem_of({{"a_blocks", bytes({1, 2, 1, 8})}, {"a_scales", bytes({1, 2, 1})}}, kMxfp4),
              HasSubstr("expected U8 in blocks of 16 bytes"));
  EXPECT_THAT(problem_of({{"a_blocks", bytes({1, 2, 1, 16})}, {"a_scales", bytes({1, 2, 2})}}, kMxfp4),
              HasSubstr("'a_scales' has not one byte for each block"));
  EXPECT_THAT(problem_of({{"a_scale_inv", torch::ones({1, 1})}}, kFp8),
              HasSubstr("has scales of a tensor that is missing"));
  EXPECT_THAT(problem_of({{"a", torch::ones({2, 3})}, {"a_scale_inv", torch::ones({1, 1})}}, kFp8),
              HasSubstr("is no matrix in F8_E4M3"));
  EXPECT_THAT(
      problem_of({{"a", torch::ones({2, 4}).to(torch::kFloat8_e4m3fn)}, {"a_scale_inv", torch::ones({1, 1})}},
                 kFp8),
      HasSubstr("has not one factor for each block of weight_block_size"));
}

}  // namespace
}  // namespace zoo::testing
