#pragma once
// `data.structures:`, how structures of proteins become inputs of a model.

#include <cstdint>

#include "io/config/config_file.h"

namespace zoo {

struct StructureConfig {
  int64_t max_residues = 256;     // training crops longer chains, at other places in each epoch
  int64_t copies = 1;             // training: how often each chain is in its batch
  int64_t longest_scored = 1024;  // evaluations leave longer chains out
};
void describe(ConfigVisitor& v, StructureConfig& c);

}  // namespace zoo
