#pragma once
// The tensors of a model with the adapters of PEFT added to them.

#include <cstdint>
#include <memory>

#include "interop/families/tensor_rules.h"
#include "interop/peft/adapter_config.h"
#include "io/tensor_source.h"

namespace zoo {

/// An adapter that was opened.
struct Adapter {
  AdapterConfig config;
  /// With the names of PEFT, such as `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`.
  std::shared_ptr<const TensorSource> tensors;
};

/// The base's tensors by their full names (TensorMapping): W + scale · B A where there is an adapter,
/// computed in double precision, and what the adapter brings whole (modules_to_save, biases). If only one of
/// output and embeddings of a tied model is changed, the output is there as a matrix of its own, as in PEFT.
/// Throws CheckpointError: a tensor is of no known kind, has another shape than its base, or the base lacks
/// it; no adapter is of a module that the configuration names; or a matrix that stands in several modules is
/// changed in some of them.
std::shared_ptr<const TensorSource> adapted_tensors(const TensorMapping& mapping,
                                                    const std::shared_ptr<const TensorSource>& base,
                                                    const Adapter& adapter);

/// The number of matrices to which an adapter adds something.
int64_t n_adapters_of(const Adapter& adapter);

}  // namespace zoo
