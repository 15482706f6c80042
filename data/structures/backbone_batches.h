#pragma once
// Batches of backbones. Their fields, for B chains of up to L residues:
//
//   input          (B, L) kinds of residues, padded with the unknown one, and their lengths
//   kBackbone      (B, L, 4, 3) float, Å: N, CA, C and O, centred on the mean of the CA
//   kKnownAtoms    (B, L, 4) float, 0 or 1: whether the place is known; 0 in padding
//   kChainNumbers  (B) int64: the places of the chains in their list

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "data/structures/backbones.h"

namespace zoo {

namespace fields {
inline constexpr const char* kBackbone = "backbone";
inline constexpr const char* kKnownAtoms = "known_atoms";
inline constexpr const char* kChainNumbers = "chain_numbers";
}  // namespace fields

struct BackboneBatchOptions {
  BatchOptions batches;
  /// In shuffled order a longer chain is cropped to so many residues in a row, others in each epoch. In
  /// sequential order chains are whole.
  int64_t max_residues = 256;
  /// In shuffled order a batch has so many equal rows of each of its chains, one behind the other.
  int64_t copies = 1;
};

/// `chains`: at least one.
std::unique_ptr<BatchSource> backbone_batches(std::shared_ptr<const std::vector<Backbone>> chains,
                                              const BackboneBatchOptions& options);

}  // namespace zoo
