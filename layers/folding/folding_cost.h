#pragma once
// What the costs of folding layers are counted from.

#include <string>
#include <utility>

#include "layers/weights/cost.h"

namespace zoo {

/// Adds the costs of layers through which all residues, and all pairs of a chain, go `passes` times. Only the
/// last pass keeps activations.
struct FoldingCost {
  CostAccount& account;
  double n_chains = 1;  // B
  double length = 0;    // L
  double passes = 1;

  double n_residues() const { return n_chains * length; }
  double n_pairs() const { return n_residues() * length; }
  /// products: multiply-adds of one pass. kept: numbers that are kept for the backward.
  void add(std::string name, std::string kind, double products, double kept) const {
    account.add({.name = std::move(name),
                 .kind = std::move(kind),
                 .shape = {},
                 .flops = 2 * passes * products,
                 .activation_bytes = bytes_of(kept)});
  }
};

}  // namespace zoo
