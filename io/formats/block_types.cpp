#include "io/formats/block_types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <c10/util/Half.h>

namespace zoo {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kBlock = 32;        // numbers of a small block
constexpr size_t kSuperBlock = 256;  // numbers of a large one, which has scales for each 16 or 32 numbers

uint32_t byte_at(Bytes bytes, size_t i) { return std::to_integer<uint32_t>(bytes[i]); }
int32_t signed_at(Bytes bytes, size_t i) { return static_cast<int8_t>(byte_at(bytes, i)); }
int32_t low_bits(Bytes bytes, size_t i) { return static_cast<int32_t>(byte_at(bytes, i) & 0xF); }
int32_t high_bits(Bytes bytes, size_t i) { return static_cast<int32_t>(byte_at(bytes, i) >> 4); }

float half_at(Bytes bytes, size_t offset) {
  uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + offset, sizeof bits);
  return c10::detail::fp16_ieee_to_fp32_value(bits);
}

/// Calls `one(block, numbers)` for each block.
template <size_t kElements, size_t kBytes, class One>
void for_each_block(Bytes blocks, std::span<float> to, const One& one) {
  const size_t n = blocks.size() / kBytes;
  for (size_t i = 0; i < n; ++i)
    one(blocks.subspan(i * kBytes, kBytes), to.subspan(i * kElements, kElements));
}

/// The numbers j and j + 16 of a small block share a byte.
void decode_q4_0(Bytes blocks, std::span<float> to) {
  for_each_block<kBlock, 18>(blocks, to, [](Bytes block, std::span<float> y) {
    const float scale = half_at(block, 0);
    const auto packed = block.subspan(2);
    for (size_t j = 0; j < kBlock / 2; ++j) {
      y[j] = scale * static_cast<float>(low_bits(packed, j) - 8);
      y[j + kBlock / 2] = scale * static_cast<float>(high_bits(packed, j) - 8);
    }
  });
}

/// As ggml's reference does it: the number that is largest in size becomes -8, the others are rounded to the
/// nearest whole number, halves up, and at most 7.
void encode_q4_0(std::span<const float> numbers, std::span<std::byte> to) {
  constexpr size_t bytes = 18;
  for (size_t i = 0; i < numbers.size() / kBlock; ++i) {
    const auto x = numbers.subspan(i * kBlock, kBlock);
    const auto block = to.subspan(i * bytes, bytes);
    const float extreme = *std::ranges::max_element(x, {}, [](float number) { return std::abs(number); });
    const float scale = extreme / -8;
    const float inverse = scale == 0 ? 0 : 1 / scale;
    const uint16_t half = c10::detail::fp16_ieee_from_fp32_value(scale);
    std::memcpy(block.data(), &half, sizeof half);
    const auto bits = [&](size_t j) {
      return static_cast<uint8_t>(std::min(15, static_cast<int>(x[j] * inverse + 8.5F)));
    };
    for (size_t j = 0; j < kBlock / 2; ++j)
      block[2 + j] = static_cast<std::byte>(bits(j) | bits(j + kBlock / 2) << 4);
  }
}

void decode_q4_1(Bytes blocks, std::span<float> to) {
  for_each_block<kBlock, 20>(blocks, to, [](Bytes block, std::span<float> y) {
    const float scale = half_at(block, 0), least = half_at(block, 2);
    const auto packed = block.subspan(4);
    for (size_t j = 0; j < kBlock / 2; ++j) {
      y[j] = scale * static_cast<float>(low_bits(packed, j)) + least;
      y[j + kBlock / 2] = scale * static_cast<float>(high_bits(packed, j)) + least;
    }
  });
}

/// The fifth bit of number j is bit j of these 32.
int32_t fifth_bit(Bytes bits, size_t j) {
  return static_cast<int32_t>(byte_at(bits, j / 8) >> (j % 8) & 1) << 4;
}

void decode_q5_0(Bytes blocks, std::span<float> to) {
  for_each_block<kBlock, 22>(blocks, to, [](Bytes block, std::span<float> y) {
    const float scale = half_at(block, 0);
    const auto fifth = block.subspan(2, 4), packed = block.subspan(6);
    for (size_t j = 0; j < kBlock / 2; ++j) {
      const size_t other = j + kBlock / 2;
      y[j] = scale * static_cast<float>((low_bits(packed, j) | fifth_bit(fifth, j)) - 16);
      y[other] = scale * static_cast<float>((high_bits(packed, j) | fifth_bit(fifth, other)) - 16);
    }
  });
}

void decode_q5_1(Bytes blocks, std::span<float> to) {
  for_each_block<kBlock, 24>(blocks, to, [](Bytes block, std::span<float> y) {
    const float scale = half_at(block, 0), least = half_at(block, 2);
    const auto fifth = block.subspan(4, 4), packed = block.subspan(8);
    for (size_t j = 0; j < kBlock / 2; ++j) {
      const size_t other = j + kBlock / 2;
      y[j] = scale * static_cast<float>(low_bits(packed, j) | fifth_bit(fifth, j)) + least;
      y[other] = scale * static_cast<float>(high_bits(packed, j) | fifth_bit(fifth, other)) + least;
    }
  });
}

void decode_q8_0(Bytes blocks, std::span<float> to) {
  for_each_block<kBlock, 34>(blocks, to, [](Bytes block, std::span<float> y) {
    const float scale = half_at(block, 0);
    for (size_t j = 0; j < kBlock; ++j) y[j] = scale * static_cast<float>(signed_at(block, 2 + j));
  });
}

/// As ggml's reference does it: the largest number becomes ±127, the others are rounded to the nearest whole
/// number, halves away from zero.
void encode_q8_0(std::span<const float> numbers, std::span<std::byte> to) {
  constexpr size_t bytes = 34;
  for (size_t i = 0; i < numbers.size() / kBlock; ++i) {
    const auto x = numbers.subspan(i * kBlock, kBlock);
    const auto block = to.subspan(i * bytes, bytes);
    float largest = 0;
    for (const float number : x) largest = std::max(largest, std::abs(number));
    const float scale = largest / 127;
    const float inverse = scale == 0 ? 0 : 1 / scale;
    const uint16_t half = c10::detail::fp16_ieee_from_fp32_value(scale);
    std::memcpy(block.data(), &half, sizeof half);
    for (size_t j = 0; j < kBlock; ++j)
      block[2 + j] = static_cast<std::byte>(static_cast<int8_t>(std::round(x[j] * inverse)));
  }
}

/// Scale and least value of the 32 numbers `part` of a large block, six bits each, packed into 12 bytes.
struct SixBits {
  float scale, least;
};
SixBits six_bits(Bytes packed, size_t part) {
  if (part < 4) {
    return {static_cast<float>(byte_at(packed, part) & 63),
            static_cast<float>(byte_at(packed, part + 4) & 63)};
  }
  const uint32_t both = byte_at(packed, part + 4);
  return {static_cast<float>((both & 0xF) | (byte_at(packed, part - 4) >> 6) << 4),
          static_cast<float>((both >> 4) | (byte_at(packed, part) >> 6) << 4)};
}

/// Each 32 bytes hold two parts of 32 numbers: the lower four bits the first part, the upper four the second.
/// `fifth`, if it is not empty, has a fifth bit for each number.
void decode_k_block(Bytes block, Bytes fifth, Bytes packed, std::span<float> y) {
  const float scale = half_at(block, 0), least = half_at(block, 2);
  const auto scales = block.subspan(4, 12);
  for (size_t part = 0; part < kSuperBlock / kBlock; ++part) {
    const auto [part_scale, part_least] = six_bits(scales, part);
    const auto bytes = packed.subspan(part / 2 * kBlock, kBlock);
    for (size_t j = 0; j < kBlock; ++j) {
      int32_t number = part % 2 == 0 ? low_bits(bytes, j) : high_bits(bytes, j);
      if (!fifth.empty()) number += static_cast<int32_t>(byte_at(fifth, j) >> part & 1) << 4;
      y[part * kBlock + j] = scale * part_scale * static_cast<float>(number) - least * part_least;
    }
  }
}

void decode_q4_k(Bytes blocks, std::span<float> to) {
  for_each_block<kSuperBlock, 144>(
      blocks, to, [](Bytes block, std::span<float> y) { decode_k_block(block, {}, block.subspan(16), y); });
}

void decode_q5_k(Bytes blocks, std::span<float> to) {
  for_each_block<kSuperBlock, 176>(blocks, to, [](Bytes block, std::span<float> y) {
    decode_k_block(block, block.subspan(16, 32), block.subspan(48), y);
  });
}

/// 128 numbers at a time: four lower bits of two numbers in a byte, two upper bits of four numbers in a byte.
void decode_q6_k(Bytes blocks, std::span<float> to) {
  for_each_block<kSuperBlock, 210>(blocks, to, [](Bytes block, std::span<float> y) {
    const float scale = half_at(block, 208);
    for (size_t half = 0; half < 2; ++half) {
      const auto lower = block.subspan(half * 64, 64), upper = block.subspan(128 + half * 32, 32),
                 scales = block.subspan(192 + half * 8, 8);
      for (size_t part = 0; part < 4; ++part) {
        for (size_t j = 0; j < kBlock; ++j) {
          const size_t at = j + part % 2 * kBlock;
          const int32_t low = part < 2 ? low_bits(lower, at) : high_bits(lower, at);
          const auto high = static_cast<int32_t>(byte_at(upper, j) >> (2 * part) & 3);
          y[half * 128 + part * kBlock + j] = scale *
                                              static_cast<float>(signed_at(scales, j / 16 + 2 * part)) *
                                              static_cast<float>((low | high << 4) - 32);
        }
      }
    }
  });
}

/// Numbers of the format E2M1, with a power of two for each block (Rouhani et al. 2023).
void decode_mxfp4(Bytes blocks, std::span<float> to) {
  for_each_block<kBlock, 17>(blocks, to, [](Bytes block, std::span<float> y) {
    constexpr std::array<float, 16> values{0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                                           -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
    constexpr int bias = 127;
    const int exponent = static_cast<int>(byte_at(block, 0)) - bias;
    const auto packed = block.subspan(1);
    for (size_t j = 0; j < kBlock / 2; ++j) {
      y[j] = std::ldexp(values.at(static_cast<size_t>(low_bits(packed, j))), exponent);
      y[j + kBlock / 2] = std::ldexp(values.at(static_cast<size_t>(high_bits(packed, j))), exponent);
    }
  });
}

constexpr auto kTypes = std::to_array<BlockType>({
    {0, "F32", 1, 4, nullptr, nullptr, torch::kFloat32},
    {1, "F16", 1, 2, nullptr, nullptr, torch::kFloat16},
    {30, "BF16", 1, 2, nullptr, nullptr, torch::kBFloat16},
    {2, "Q4_0", kBlock, 18, decode_q4_0, encode_q4_0, torch::kFloat32},
    {3, "Q4_1", kBlock, 20, decode_q4_1, nullptr, torch::kFloat32},
    {6, "Q5_0", kBlock, 22, decode_q5_0, nullptr, torch::kFloat32},
    {7, "Q5_1", kBlock, 24, decode_q5_1, nullptr, torch::kFloat32},
    {8, "Q8_0", kBlock, 34, decode_q8_0, encode_q8_0, torch::kFloat32},
    {12, "Q4_K", kSuperBlock, 144, decode_q4_k, nullptr, torch::kFloat32},
    {13, "Q5_K", kSuperBlock, 176, decode_q5_k, nullptr, torch::kFloat32},
    {14, "Q6_K", kSuperBlock, 210, decode_q6_k, nullptr, torch::kFloat32},
    // bfloat16 has all of its numbers.
    {39, "MXFP4", kBlock, 17, decode_mxfp4, nullptr, torch::kBFloat16},
});

}  // namespace

const BlockType* find_block_type(uint32_t id) {
  const auto* const found = std::ranges::find(kTypes, id, &BlockType::id);
  return found == kTypes.end() ? nullptr : found;
}

const BlockType& plain_block_type(torch::ScalarType type) {
  const auto* const found = std::ranges::find_if(
      kTypes, [&](const BlockType& one) { return one.decode == nullptr && one.type == type; });
  return found == kTypes.end() ? kTypes.front() : *found;
}

const BlockType& q4_0_block_type() { return *std::ranges::find(kTypes, "Q4_0", &BlockType::name); }
const BlockType& q8_0_block_type() { return *std::ranges::find(kTypes, "Q8_0", &BlockType::name); }

std::span<const BlockType> block_types() { return kTypes; }

}  // namespace zoo
