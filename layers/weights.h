#pragma once
// Matrices of weights: what each is for, and how it is stored. Modules own WeightMatrix objects; nobody else
// touches the tensors behind them, so a format or a packing can change without a change in the modules.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace zoo {

/// What a matrix does in its model. Initialisation and optimisers treat matrices by their use.
enum class WeightUse {
  hidden,           // a linear map within the model
  query,            // a linear map that makes attention's queries
  residual_output,  // a linear map whose output is added to the residual stream
  scores,           // a linear map that ends in the scores of classes, or in other numbers
  token_scores,     // a linear map that ends in the scores of the vocabulary
  token_table,      // one row a token
  table,            // one row a position, segment or bucket
  distance_table,   // one row a distance, added to keys or values (Shaw et al. 2018)
};

/// Rows `first` … `first` + `count` - 1 of a parameter, and their use.
struct Weight {
  torch::Tensor parameter;  // (rows, …)
  int64_t first = 0, count = 0;
  WeightUse use = WeightUse::hidden;

  torch::Tensor rows() const { return parameter.narrow(0, first, count); }
};
using WeightVisitor = std::function<void(const Weight&)>;

/// A module that owns parameters of two and more dimensions, and knows their use.
class WeightOwner {
 public:
  virtual ~WeightOwner() = default;
  /// Calls `visit` with each such parameter of this module, those of its submodules left out. Matrices that
  /// are stacked in one parameter are visited one by one.
  virtual void visit_weights(const WeightVisitor& visit) const = 0;
};

/// How the numbers of a matrix are stored.
///   fp32  as they are trained
///   bf16  half the memory; products are rounded to 8 bits
///   int8  a quarter of the memory: whole numbers from -127 to 127, and a scale for each row
/// Only fp32 can be trained.
enum class WeightFormat { fp32, bf16, int8 };

/// A matrix W (O, I): O outputs or rows of a table, I inputs or the width of a row.
class WeightMatrix {
 public:
  WeightMatrix() = default;
  /// `weight` (O, I) float.
  explicit WeightMatrix(torch::Tensor weight) : weight_(std::move(weight)) {}

  bool defined() const { return weight_.defined(); }
  int64_t n_rows() const { return weight_.size(0); }
  int64_t n_columns() const { return weight_.size(1); }
  WeightFormat format() const { return format_; }
  /// Bytes of the numbers and their scales.
  int64_t bytes() const;
  /// The parameter while the format is fp32; throws c10::Error otherwise.
  const torch::Tensor& parameter() const;

  /// x Wᵀ + b. x: (…, I), bias: (O) or undefined. Returns (…, O), of the type of x.
  torch::Tensor product(const torch::Tensor& x, const torch::Tensor& bias = {}) const;
  /// The same with rows `first` … `first` + `count` - 1 of W and b alone: (…, count).
  torch::Tensor product(const torch::Tensor& x, const torch::Tensor& bias, int64_t first,
                        int64_t count) const;
  /// ids: any shape (…) int64. Returns those rows, (…, I) float.
  torch::Tensor rows(const torch::Tensor& ids) const;

  /// Converts the numbers; a format other than fp32 is final. Throws c10::Error where it would be undone.
  void convert(WeightFormat format);
  /// The tensors that hold the matrix: the numbers, and the scales (O) of int8, else undefined.
  const torch::Tensor& numbers() const { return weight_; }
  const torch::Tensor& scales() const { return scales_; }

 private:
  torch::Tensor weight_;  // (O, I) float, bfloat16 or int8
  torch::Tensor scales_;  // (O) float; int8 alone
  WeightFormat format_ = WeightFormat::fp32;
};

/// A module with one matrix, its parameter "weight". Stored in another format, the matrix is a buffer of that
/// name, and its scales are the buffer "weight_scale".
class MatrixModule : public torch::nn::Module, public WeightOwner {
 public:
  const WeightMatrix& matrix() const { return matrix_; }
  /// Converts the matrix, if this module has one of its own. The module cannot be trained afterwards.
  void convert(WeightFormat format);

 protected:
  /// Makes `weight` (O, I) the parameter.
  void set_weight(torch::Tensor weight);

 private:
  WeightMatrix matrix_;
};

/// Stores the weights of every module below `model` in `format`: of linear maps and token tables. Norms,
/// biases and small tables stay as they are. The model cannot be trained afterwards, nor written as a
/// checkpoint.
void store_weights(torch::nn::Module& model, WeightFormat format);

}  // namespace zoo
