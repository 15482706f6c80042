#pragma once
// The tensors of one checkpoint as those of another: under other names, stacked, transposed, reshaped.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "interop/families/tensor_rules.h"
#include "io/tensor_source.h"

namespace zoo {

/// A tensor of one side of a stack.
struct TensorPart {
  std::string name;
  std::vector<int64_t> shape;
};

/// The rows of `from`, one below the other, are the rows of `to`. On a side that is transposed the rows of a
/// matrix are its columns.
struct RowStack {
  std::vector<TensorPart> from, to;
  Move move = Move::plain;
  RowGroups groups = {};  // of Move::grouped, with the side whose rows are in groups
  enum class Side { from, to } grouped = Side::from;
  enum class Transposed { neither, from, to } transposed = Transposed::neither;

  bool is_plain() const { return move == Move::plain && from.size() == 1 && to.size() == 1; }
};

/// The rows of a matrix; on a side that is transposed, its columns.
int64_t n_rows(const TensorPart& part, bool transposed);

/// Tensors of another source, by stacks.
std::shared_ptr<const TensorSource> stacked_tensors(std::shared_ptr<const TensorSource> source,
                                                    std::vector<RowStack> stacks);

/// The tensors of another source, and computed ones in the type of its first tensor.
std::shared_ptr<const TensorSource> with_buffers(std::shared_ptr<const TensorSource> source,
                                                 std::map<std::string, torch::Tensor> buffers);

/// The tensors of another source under other names. `stored`: the name in the source of each of them.
std::shared_ptr<const TensorSource> renamed_tensors(std::shared_ptr<const TensorSource> source,
                                                    std::map<std::string, std::string> stored);

}  // namespace zoo
