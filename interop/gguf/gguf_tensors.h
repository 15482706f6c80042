#pragma once
// The tensors of a GGUF file under the names and in the forms of transformers, and back.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>
#include <torch/types.h>

#include "interop/gguf/gguf_architectures.h"
#include "io/formats/gguf_file.h"
#include "io/tensor_source.h"

namespace zoo {

/// `config`: the file's config.json. Throws CheckpointError for a tensor that the architecture does not have.
std::shared_ptr<const TensorSource> tensors_of_gguf(const std::shared_ptr<const GgufFile>& file,
                                                    const GgufArchitecture& architecture,
                                                    const nlohmann::json& config);

/// T5 with tied embeddings multiplies its logits by 1/√D, which llama.cpp does not: the file then has the
/// output as a matrix of its own, the embeddings times this number. Nothing for other models.
std::optional<double> scale_of_tied_output(const GgufArchitecture& architecture,
                                           const nlohmann::json& config);

/// The reverse. Heads that the architecture leaves out are no part of it. `more`: further tensors, by their
/// names in the file. Throws CheckpointError for a tensor that has no name there.
std::shared_ptr<const TensorSource> tensors_for_gguf(const std::shared_ptr<const TensorSource>& foreign,
                                                     const GgufArchitecture& architecture,
                                                     const nlohmann::json& config,
                                                     std::map<std::string, torch::Tensor> more);

}  // namespace zoo
