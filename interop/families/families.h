#pragma once
// The families of this folder. A family is listed in interop/foreign_families.cpp.

#include <string>

#include "interop/families/foreign_family.h"

namespace zoo {

ForeignFamily gpt2_foreign();
ForeignFamily llama_foreign();
ForeignFamily mistral_foreign();
ForeignFamily qwen2_foreign();
ForeignFamily qwen3_foreign();
ForeignFamily bert_foreign();
ForeignFamily roberta_foreign();
ForeignFamily big_bird_foreign();
ForeignFamily distilbert_foreign();
ForeignFamily longformer_foreign();
ForeignFamily esm_foreign();
ForeignFamily gemma2_foreign();
ForeignFamily gemma3_foreign();
ForeignFamily t5_foreign();
ForeignFamily bart_foreign();
ForeignFamily marian_foreign();
ForeignFamily vit_foreign();
ForeignFamily ijepa_foreign();
ForeignFamily detr_foreign();
ForeignFamily whisper_foreign();

/// The rules of RoBERTa, for a model whose tensors have names that begin with `body`: "roberta.".
TensorRules roberta_rules(const Experiment& experiment, const std::string& body);

}  // namespace zoo
