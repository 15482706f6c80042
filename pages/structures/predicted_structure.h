#pragma once
// What pages show of a predicted structure.

#include <optional>
#include <string>

#include "pages/structures/structure_page.h"
#include "tasks/structures/folded_chain.h"
#include "tasks/task.h"

namespace zoo {

/// A chain that was folded, without residues that have no atoms. `trace`: its ca_trace(). `truth`: laid onto
/// it, with its name.
ShownStructure shown_prediction(std::string title, const FoldedChain& folded, CaTrace trace,
                                std::optional<SuperposedTraces> truth = std::nullopt,
                                std::string truth_title = {});

/// The first chain of the validation data as a model folds it in an evaluation, with the truth. Throws as
/// place_backbones().
ShownStructure shown_example(Task& task, Model& model);

}  // namespace zoo
