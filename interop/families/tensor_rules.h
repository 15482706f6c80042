#pragma once
// How the tensors of a foreign checkpoint are named and laid out, as data that works in both directions:
// import reads a foreign file under our names, export writes ours under the foreign names.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "io/tensor_source.h"

namespace zoo {

/// How a stack of tensors changes between the two sides. The same move leads back.
enum class Move {
  plain,
  transposed,  // a matrix is stored as (in, out) there, as (out, in) here
  reshaped,    // the same numbers in the same order under another shape
  grouped,     // the rows there are in groups, each with rows of all sections here (BLOOM's queries, keys,
               // values)
};

/// Rows here, in sections one below the other, as rows there: group 0 of each section in turn, then group 1
/// of each.
struct RowGroups {
  int64_t count = 1;
  std::vector<int64_t> sections = {};  // rows of each section; multiples of count
  /// Above 0: the rows there are in so many matrices of equal size, each stored as (in, out); their biases
  /// are its rows.
  int64_t n_matrices = 0;
};

/// Tensors here and there. The rows (first dimension) of `ours`, one below the other, are those of `theirs`:
/// so one rule says that three matrices there are one here, or the reverse.
struct TensorRule {
  std::vector<std::string> ours, theirs;
  Move move = Move::plain;
  /// Several `theirs`: rows of each. Reshaped: the foreign shape. Otherwise empty: it follows.
  std::vector<int64_t> their_sizes = {};
  RowGroups groups = {};  // grouped
};

/// The rules of a model. Names may have the placeholder {}, which stands for 0 … n_layers - 1.
class TensorRules {
 public:
  /// Every tensor of a module (weight, bias and so on). A tensor that our model lacks is no part of the rule.
  TensorRules& module(std::string ours, std::string theirs, Move move = Move::plain);
  /// The modules of both sides form stacks. `rows`: of each of `theirs`, if there are several.
  TensorRules& modules(std::vector<std::string> ours, std::vector<std::string> theirs,
                       std::vector<int64_t> rows = {}, Move move = Move::plain);
  /// The modules here form a stack of `groups.sections`, which is one module there with its rows in groups.
  TensorRules& grouped(std::vector<std::string> ours, std::string theirs, RowGroups groups);
  /// The same for matrices that are one tensor there, and for their biases: `theirs` and `theirs`_bias.
  TensorRules& stacked(const std::vector<std::string>& ours, const std::string& theirs, RowGroups groups);
  /// One tensor. `shape`: the foreign one, if it is reshaped.
  TensorRules& tensor(std::string ours, std::string theirs, Move move = Move::plain,
                      std::vector<int64_t> shape = {});
  /// One foreign tensor whose rows are those of several here, one below the other.
  TensorRules& rows(std::vector<std::string> ours, std::string theirs);
  /// A foreign tensor that a file may have, and then must be equal to another one: tied matrices that were
  /// saved twice. It is not exported.
  TensorRules& copy(std::string theirs, std::string original);
  /// The same for the matrix of the output, which may also be another one: then the model is not tied,
  /// whatever config.json says (TensorMapping::has_own_output).
  TensorRules& tied(std::string theirs, std::string original);
  /// A foreign tensor that a file may lack, and which then has these values. It is exported.
  TensorRules& absent(std::string theirs, std::function<torch::Tensor()> values);
  /// `old` in a foreign name stands for `present`: the name of another version. The names with `present` are
  /// exported.
  TensorRules& renamed(std::string old, std::string present);
  /// transformers 5 renames a module when it opens a file: `stored` in a name becomes `live`, in this order.
  /// Files of adapters have the live names. Both are read.
  TensorRules& live(std::string stored, std::string live);
  /// A foreign tensor that a file may have, and then must have these values, up to the precision of its type.
  /// It is not exported.
  TensorRules& computed(std::string theirs, std::function<torch::Tensor()> values);
  /// The same, but it is exported, numbers with fractions in the type of the other tensors: transformers
  /// reads it from the file.
  TensorRules& buffer(std::string theirs, std::function<torch::Tensor()> values);
  /// Foreign tensors that a file may have and that do not matter; `*` stands for any text. They are not
  /// exported.
  TensorRules& ignore(std::string pattern);
  /// The foreign names of a model without a head lack this beginning: "bert.".
  TensorRules& prefix(std::string prefix);
  /// The number of layers for which {} stands.
  TensorRules& layers(int64_t n_layers);

 private:
  friend class TensorMapping;
  std::vector<TensorRule> tensors_, modules_;  // in modules_ the names lack the last part
  std::vector<std::pair<std::string, std::string>> copies_, tied_, live_;
  std::vector<std::pair<std::string, std::function<torch::Tensor()>>> computed_, buffers_, absent_;
  // The first version of BERT, and all that were made from it, call the parameters of a norm so.
  std::vector<std::pair<std::string, std::string>> renamed_ = {{"LayerNorm.gamma", "LayerNorm.weight"},
                                                               {"LayerNorm.beta", "LayerNorm.bias"}};
  std::vector<std::string> ignored_;
  std::string prefix_;
  int64_t n_layers_ = 0;
};

/// Shapes of tensors by name.
using TensorShapes = std::map<std::string, std::vector<int64_t>>;

/// Whether tensors that must be equal, or must have certain values, are read and compared, or only their
/// shapes.
enum class Compared { values, shapes };

/// Which foreign names a model has: without a head they lack TensorRules::prefix().
enum class ForeignNames { with_prefix, without_prefix };

/// Rows of a tensor of ours as rows of a foreign one; on a transposed side they are columns.
struct ForeignRows {
  std::string tensor;          // the foreign one
  std::vector<int64_t> shape;  // of it
  Move move = Move::plain;
  int64_t ours = 0;    // the first of these rows, counted from the first one that was asked for
  int64_t theirs = 0;  // the first of these rows in the foreign tensor
  int64_t count = 0;
};

/// The rules for the tensors of one model. A full name of a foreign tensor is the one in a model with a head,
/// in the newest version of its family.
class TensorMapping {
 public:
  /// `ours`: all tensors of our model. Throws Error if a tensor has no rule, or two: a mistake in the rules.
  TensorMapping(const TensorRules& rules, TensorShapes ours);

  /// A foreign checkpoint under our names. Throws CheckpointError: a tensor is missing, is not known, has
  /// another shape, or differs from the tensor that it must be a copy of.
  std::shared_ptr<const TensorSource> imported(const std::shared_ptr<const TensorSource>& foreign,
                                               Compared compared = Compared::values) const;
  /// Whether a foreign checkpoint has all tensors of one of our modules.
  bool has_module(const std::shared_ptr<const TensorSource>& foreign, const std::string& ours) const;
  /// Whether a foreign checkpoint has an output matrix that differs from the embeddings, although the model
  /// of this mapping is tied.
  bool has_own_output(const std::shared_ptr<const TensorSource>& foreign,
                      Compared compared = Compared::values) const;
  /// Tensors of our model under the foreign names. `ours` must have the shapes of this mapping.
  std::shared_ptr<const TensorSource> exported(const std::shared_ptr<const TensorSource>& ours,
                                               ForeignNames names) const;

  /// The full name of a tensor in any file of this family; a name that is not known stays.
  std::string full_name(const std::string& foreign) const;
  /// The reverse: a full name as a file has it.
  std::string stored_name(const std::string& full, ForeignNames names) const;
  /// A full name as transformers has it in memory, see TensorRules::live().
  std::string live_name(std::string full) const;
  /// A foreign checkpoint under full names. Throws CheckpointError if two tensors have one.
  std::shared_ptr<const TensorSource> with_full_names(
      const std::shared_ptr<const TensorSource>& foreign) const;
  /// Whether a foreign matrix is stored as (in, out). By its full name.
  bool is_transposed(const std::string& full) const;
  /// Where `count` rows of one of our tensors, from `first` on, are in the foreign model, by full names.
  /// Throws Error if it has no such tensor.
  std::vector<ForeignRows> foreign_rows(const std::string& ours, int64_t first, int64_t count) const;
  /// Foreign tensors that are equal to another one: (copy, original), by full names; and those among them
  /// that are the matrix of the output.
  const std::vector<std::pair<std::string, std::string>>& copies() const { return given_.copies_; }
  const std::vector<std::pair<std::string, std::string>>& tied() const { return given_.tied_; }

 private:
  std::string missing_prefix(const TensorSource& foreign) const;
  std::string present_name(std::string foreign) const;
  std::shared_ptr<const TensorSource> renamed(
      const std::shared_ptr<const TensorSource>& foreign,
      const std::function<std::string(const std::string& name)>& name_of) const;
  std::shared_ptr<const TensorSource> with_present_names(
      const std::shared_ptr<const TensorSource>& foreign) const;

  TensorRules given_;
  std::vector<TensorRule> rules_;         // of full names
  std::map<std::string, size_t> theirs_;  // the rule of each foreign name
  TensorShapes ours_;
};

}  // namespace zoo
