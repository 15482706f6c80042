#pragma once
// The tensors of a model with the adapters of PEFT added to them.

#include <memory>
#include <string>

#include "interop/peft/adapter_config.h"
#include "io/tensor_source.h"

namespace zoo {

/// How the base stores the matrices of its layers.
enum class MatrixLayout {
  out_in,  // (out, in), as torch.nn.Linear
  in_out,  // (in, out), as the layers of GPT-2
};

/// The base's tensors, by its names: W + scale · B A where there is an adapter, and what the adapter brings
/// whole (modules_to_save, biases). `adapter`: tensors with the names of PEFT, such as
/// `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`. Throws CheckpointError: a tensor is of
/// no known kind, has another shape than its base, or the base lacks it.
std::shared_ptr<const TensorSource> adapted_tensors(const std::shared_ptr<const TensorSource>& base,
                                                    const std::shared_ptr<const TensorSource>& adapter,
                                                    const AdapterConfig& config, MatrixLayout layout);

}  // namespace zoo
