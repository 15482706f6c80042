#include "interop/families/packed_weights.h"

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

constexpr std::string_view kBlocks = "_blocks", kScales = "_scales", kInverse = "_scale_inv";
constexpr int64_t kBytesOfBlock = 16;

[[noreturn]] void fail(const TensorSource& source, const std::string& name, std::string_view problem) {
  throw CheckpointError(fmt::format("{}: its tensor '{}' {}", source.place(), excerpt(name), problem));
}

/// blocks: (…, R, G, 16) uint8, scales: (…, R, G) uint8 → (…, 32 G, R) bf16.
torch::Tensor from_mxfp4(const torch::Tensor& blocks, const torch::Tensor& scales) {
  constexpr std::array<float, 16> values{0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                                         -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
  const auto table = torch::tensor(torch::ArrayRef<float>(values.data(), values.size())).to(torch::kBFloat16);
  const auto low = table.index({blocks.bitwise_and(0x0F).to(torch::kLong)});
  const auto high = table.index({blocks.bitwise_right_shift(4).to(torch::kLong)});
  const auto numbers = torch::stack({low, high}, -1).flatten(-2);  // (…, R, G, 32)
  const auto exponents = (scales.to(torch::kInt) - 127).unsqueeze(-1);
  return torch::ldexp(numbers, exponents).to(torch::kBFloat16).flatten(-2).transpose(-1, -2);
}

/// matrix: (R, C) in fp8, scales: one for each block, the last of which may be smaller.
torch::Tensor from_fp8(const torch::Tensor& matrix, const torch::Tensor& scales,
                       const PackedWeights& packed) {
  const auto numbers = matrix.to(torch::kFloat);
  const auto spread = scales.to(torch::kFloat)
                          .repeat_interleave(packed.block_rows, 0)
                          .narrow(0, 0, matrix.size(0))
                          .repeat_interleave(packed.block_columns, 1)
                          .narrow(1, 0, matrix.size(1));
  return (numbers * spread).to(torch::kBFloat16);
}

int64_t blocks_of(int64_t size, int64_t block) { return (size + block - 1) / block; }

class UnpackedTensors final : public TensorSource {
 public:
  UnpackedTensors(std::shared_ptr<const TensorSource> source, const PackedWeights& packed)
      : source_(std::move(source)), packed_(packed) {
    for (const auto& name : source_->names()) add(name);
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, is_packed] : names_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override { return names_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override {
    if (!is_packed(name) || packed_.packing == WeightPacking::fp8) return source_->shape(name);
    auto shape = source_->shape(name + std::string(kBlocks));
    shape.pop_back();
    const int64_t columns = shape.back() * 2 * kBytesOfBlock;
    shape.pop_back();
    shape.insert(shape.end() - 1, columns);
    return shape;
  }
  torch::ScalarType dtype(const std::string& name) const override {
    return is_packed(name) ? torch::kBFloat16 : source_->dtype(name);
  }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    if (!is_packed(name)) return source_->read_into(to, name);
    const bool is_fp8 = packed_.packing == WeightPacking::fp8;
    const auto numbers = source_->tensor(is_fp8 ? name : name + std::string(kBlocks));
    const auto scales = source_->tensor(name + std::string(is_fp8 ? kInverse : kScales));
    torch::Tensor(to).copy_(is_fp8 ? from_fp8(numbers, scales, packed_) : from_mxfp4(numbers, scales));
  }
  std::string place() const override { return source_->place(); }

 private:
  bool is_packed(const std::string& name) const {
    const auto found = names_.find(name);
    return found != names_.end() && found->second;
  }

  void add(const std::string& name) {
    const bool is_mxfp4 = packed_.packing == WeightPacking::mxfp4;
    const auto without = [&](std::string_view end) { return name.substr(0, name.size() - end.size()); };
    if (is_mxfp4 && name.ends_with(kBlocks)) {
      check_mxfp4(name, without(kBlocks) + std::string(kScales));
      names_[without(kBlocks)] = true;
    } else if (is_mxfp4 && name.ends_with(kScales)) {
      const auto blocks = without(kScales) + std::string(kBlocks);
      if (!source_->contains(blocks)) fail(*source_, name, "has scales, and no blocks");
    } else if (!is_mxfp4 && name.ends_with(kInverse)) {
      check_fp8(without(kInverse), name);
      names_[without(kInverse)] = true;
    } else {
      names_.emplace(name, false);
    }
  }

  void check_mxfp4(const std::string& blocks, const std::string& scales) const {
    if (!source_->contains(scales)) fail(*source_, blocks, "has blocks, and no scales");
    auto shape = source_->shape(blocks);
    if (shape.size() < 3 || shape.back() != kBytesOfBlock || source_->dtype(blocks) != torch::kUInt8)
      fail(*source_, blocks, "is no matrix in MXFP4: expected U8 in blocks of 16 bytes");
    shape.pop_back();
    if (source_->shape(scales) != shape || source_->dtype(scales) != torch::kUInt8)
      fail(*source_, scales, "has not one byte for each block");
  }
  void check_fp8(const std::string& matrix, const std::string& scales) const {
    if (!source_->contains(matrix)) fail(*source_, scales, "has scales of a tensor that is missing");
    const auto shape = source_->shape(matrix);
    if (shape.size() != 2 || source_->dtype(matrix) != torch::kFloat8_e4m3fn)
      fail(*source_, matrix, "has scales, and is no matrix in F8_E4M3");
    const std::vector<int64_t> expected{blocks_of(shape[0], packed_.block_rows),
                                        blocks_of(shape[1], packed_.block_columns)};
    if (source_->shape(scales) != expected)
      fail(*source_, scales, "has not one factor for each block of weight_block_size");
  }

  std::shared_ptr<const TensorSource> source_;
  PackedWeights packed_;
  std::map<std::string, bool> names_;  // whether it is packed
};

}  // namespace

PackedWeights read_packed_weights(ForeignConfig& config) {
  constexpr std::string_view key = "quantization_config";
  auto given = config.object(key);
  if (!given) return {};
  // Older files of bitsandbytes name no method.
  const bool is_bits = given->has("load_in_4bit") || given->has("load_in_8bit");
  const auto method = given->text("quant_method", is_bits ? "bitsandbytes" : "a method without a name");
  given->ignore({"modules_to_not_convert", "dequantize"});
  PackedWeights packed;
  if (method == "mxfp4") {
    packed.packing = WeightPacking::mxfp4;
  } else if (method == "fp8" && given->has("weight_block_size")) {
    packed.packing = WeightPacking::fp8;
    const auto block = given->integers("weight_block_size");
    if (block.size() != 2 || block[0] < 1 || block[1] < 1)
      given->fail("weight_block_size", "expected two numbers, of rows and of columns");
    packed.block_rows = block[0];
    packed.block_columns = block[1];
    given->require("fmt", "e4m3");
    given->ignore({"activation_scheme", "scale_fmt"});  // of products in fp8, which are not made here
  } else {
    throw CheckpointError(
        fmt::format("{}: weights that are quantized by {} are not supported: known are mxfp4, and fp8 in "
                    "blocks; take a directory with weights in bf16 or fp16, or a GGUF file",
                    given->place(), excerpt(method)));
  }
  given->finish();
  return packed;
}

std::shared_ptr<const TensorSource> unpacked(std::shared_ptr<const TensorSource> source,
                                             const PackedWeights& packed) {
  if (packed.packing == WeightPacking::none) return source;
  return std::make_shared<UnpackedTensors>(std::move(source), packed);
}

}  // namespace zoo
