#pragma once
// Which tensors of a GGUF file and of transformers are made from each other.

#include <cstdint>
#include <string>
#include <vector>

#include "interop/gguf/gguf_architectures.h"

namespace zoo {

/// A tensor of the file and one of transformers that have numbers in common.
struct GgufLink {
  std::string stored, foreign;
  StoredForm form = StoredForm::same;
  int64_t expert = 0;  // StoredForm::experts
};

/// The links of a tensor in the file; none if the architecture has no such tensor, several for one that holds
/// tensors of experts. `variant`: of the model.
std::vector<GgufLink> links_of_stored(const GgufArchitecture& architecture, GgufVariant variant,
                                      int64_t n_experts, const std::string& stored);
/// Those of a tensor of transformers, which may be divided among several in the file.
std::vector<GgufLink> links_of_foreign(const GgufArchitecture& architecture, GgufVariant variant,
                                       const std::string& foreign);

}  // namespace zoo
