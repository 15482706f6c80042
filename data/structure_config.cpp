#include "data/structure_config.h"

namespace zoo {

void describe(ConfigVisitor& v, StructureConfig& c) {
  constexpr double longest = 1 << 12, most_copies = 1 << 10;
  v.field("max_residues", c.max_residues,
          "Training reads at most so many residues of a chain, in a row; which ones differs by epoch.",
          Limits::between(4, longest));
  v.field("copies", c.copies,
          "Rows of a training batch for each of its chains. A fold_flow adds other noise to each.",
          Limits::between(1, most_copies));
  v.field("longest_scored", c.longest_scored,
          "Evaluations read chains as a whole, and leave out those with more residues.",
          Limits::between(4, longest));
}

}  // namespace zoo
