#include "models/families/folding/folding_keys.h"

namespace zoo {

void describe(ConfigVisitor& v, StructureModuleConfig& c) {
  constexpr double widest = 1 << 16, most = 1 << 10;
  v.field("residue_width", c.residue_width, "Width of the vectors of residues.", Limits::between(1, widest));
  v.field("pair_width", c.pair_width, "Width of the vectors of pairs.", Limits::between(1, widest));
  v.field("n_blocks", c.n_blocks, "Blocks, which all have the same weights.", Limits::between(1, most));
  v.field("n_heads", c.n_heads, "Heads of invariant point attention.", Limits::between(1, most));
  v.field("head_width", c.head_width, "Width of a head.", Limits::between(1, widest));
  v.field("query_points", c.query_points, "Points of the queries, and of the keys, of a head.",
          Limits::between(1, most));
  v.field("value_points", c.value_points, "Points of the values of a head.", Limits::between(1, most));
  v.field("transition_layers", c.transition_layers, "Transitions behind the attention.",
          Limits::between(1, most));
  v.field("angle_width", c.angle_width, "Width of the network for torsion angles.",
          Limits::between(1, widest));
  v.field("angle_blocks", c.angle_blocks, "Blocks of that network.", Limits::between(0, most));
  v.field("unit", c.unit, "Å of one unit of the frames' places.", Limits::positive());
  v.field("dropout", c.dropout, "Dropout behind attention and transitions.", {.min = 0, .max = 0.99});
}

}  // namespace zoo
