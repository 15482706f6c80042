#pragma once
// Weights of a directory that are stored in fewer bits, as quantization_config of its config.json says. They
// are read as the numbers that they stand for.

#include <cstdint>
#include <memory>

#include "interop/families/foreign_config.h"
#include "io/tensor_source.h"

namespace zoo {

/// How matrices are stored.
///   none   as they are
///   mxfp4  NAME_blocks: two numbers of four bits in each byte, 16 bytes a block; NAME_scales: a power of two
///          for each block (Rouhani et al. 2023; gpt-oss)
///   fp8    NAME in F8_E4M3 and NAME_scale_inv, a factor for each block of rows and columns (DeepSeek V3)
enum class WeightPacking { none, mxfp4, fp8 };

struct PackedWeights {
  WeightPacking packing = WeightPacking::none;
  int64_t block_rows = 128, block_columns = 128;  // fp8
};

/// Accounts for the key quantization_config. Throws CheckpointError for other packings: GPTQ, AWQ,
/// bitsandbytes.
PackedWeights read_packed_weights(ForeignConfig& config);

/// The tensors of another source, the packed ones as bf16, equal to the bit to what transformers makes of
/// them; NAME_blocks (E, R, G, 16) become NAME (E, 32 G, R). Throws CheckpointError: a part is missing or has
/// another type or shape.
std::shared_ptr<const TensorSource> unpacked(std::shared_ptr<const TensorSource> source,
                                             const PackedWeights& packed);

}  // namespace zoo
