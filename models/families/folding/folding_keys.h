#pragma once
// Keys that all families with a folding trunk have.

#include <cstdint>

#include <fmt/format.h>

#include "io/config/config_file.h"
#include "layers/folding/folding_trunk.h"

namespace zoo {

/// Keys of the structure module.
struct StructureModuleConfig {
  int64_t residue_width = 384, pair_width = 128;
  int64_t n_blocks = 8, n_heads = 12, head_width = 16, query_points = 4, value_points = 8;
  int64_t transition_layers = 1, angle_width = 128, angle_blocks = 2;
  double unit = 10, dropout = 0.1;
};
void describe(ConfigVisitor& v, StructureModuleConfig& c);

/// Visits the keys of a trunk: passes, n_blocks, residue_width, pair_width, residue_heads, pair_heads,
/// most_distance, dropout and chunk_size. Their defaults are the family's.
template <class Config>
void describe_trunk(ConfigVisitor& v, Config& c) {
  constexpr double widest = 1 << 16, most = 1 << 10;
  v.field("passes", c.passes,
          "Passes through the trunk: each begins with the structure of the last one (recycling).",
          Limits::between(1, most));
  v.field("n_blocks", c.n_blocks, "Blocks of the trunk.", Limits::between(0, most));
  v.field("residue_width", c.residue_width, "Width of the trunk's vectors of residues.",
          Limits::between(1, widest));
  v.field("pair_width", c.pair_width, "Width of the trunk's vectors of pairs.", Limits::between(2, widest));
  v.field("residue_heads", c.residue_heads, "Heads of the attention of residues.",
          Limits::between(1, widest));
  v.field("pair_heads", c.pair_heads, "Heads of the attention of pairs.", Limits::between(1, widest));
  v.field("most_distance", c.most_distance, "Distances along the chain beyond this one count as this one.",
          Limits::between(1, widest));
  v.field("dropout", c.dropout, "Dropout of the trunk; pairs lose rows and columns with twice this rate.",
          {.min = 0, .max = 0.49});
  v.field("chunk_size", c.chunk_size,
          "Rows of pairs that triangle attention computes at a time, which takes less memory; default: all.",
          Limits::between(1, widest));
}

/// The options of the trunk for these keys and those of `structure`.
template <class Config>
FoldingTrunkOptions trunk_options(const Config& c) {
  const auto& s = c.structure;
  const auto attention = InvariantPointAttentionOptions(s.residue_width, s.pair_width)
                             .n_heads(s.n_heads)
                             .head_width(s.head_width)
                             .query_points(s.query_points)
                             .value_points(s.value_points);
  const auto structure = StructureModuleOptions(attention)
                             .n_blocks(s.n_blocks)
                             .transition_layers(s.transition_layers)
                             .angle_width(s.angle_width)
                             .angle_blocks(s.angle_blocks)
                             .dropout(s.dropout)
                             .unit(s.unit);
  const auto block = FoldingBlockOptions(c.residue_width, c.pair_width)
                         .residue_heads(c.residue_heads)
                         .pair_heads(c.pair_heads)
                         .dropout(c.dropout);
  return FoldingTrunkOptions(block, structure).n_blocks(c.n_blocks).most_distance(c.most_distance);
}

/// Checks across keys.
template <class Config>
void validate_trunk(const Config& c, const Complain& complain) {
  if (c.residue_width % c.residue_heads != 0)
    complain("architecture.residue_heads",
             fmt::format("residue_width {} is not a multiple of it", c.residue_width));
  if (c.pair_width % c.pair_heads != 0)
    complain("architecture.pair_heads", fmt::format("pair_width {} is not a multiple of it", c.pair_width));
  if (c.pair_width % 2 != 0) complain("architecture.pair_width", "must be even");
}

}  // namespace zoo
