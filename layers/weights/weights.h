#pragma once
// Matrices of weights: their use and their storage. Modules own WeightMatrix objects and use their tensors
// only through WeightMatrix. A format or packing can therefore change without changes in the modules.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "kernels/products/packed_matrix.h"
#include "layers/weights/module.h"

namespace zoo {

/// The use of a matrix in its model. Initialisation and optimisers depend on it.
enum class WeightUse {
  hidden,           // a linear map within the model
  query,            // a linear map that makes attention's queries
  residual_output,  // a linear map whose output is added to the residual stream
  scores,           // a linear map to scores of classes, or to other numbers
  lm_head,          // a linear map to scores of the vocabulary
  token_table,      // one row per token
  table,            // one row per position, segment or bucket
  object_table,     // one row per object query (Carion et al. 2020)
  distance_table,   // one row per distance, added to keys or values (Shaw et al. 2018)
  convolution,      // one row per output channel
  modulation,       // a linear map from a condition to shifts, scales and gates; begins as zeros
};

/// Rows `first` … `first` + `count` - 1 of a parameter, and their use.
struct Weight {
  torch::Tensor parameter;  // (rows, …)
  int64_t first = 0, count = 0;
  WeightUse use = WeightUse::hidden;

  torch::Tensor rows() const { return parameter.narrow(0, first, count); }
};
using WeightVisitor = std::function<void(const Weight&)>;

/// A module that owns parameters of two or more dimensions, and knows their use.
class WeightOwner {
 public:
  virtual ~WeightOwner() = default;
  /// Calls `visit` with each such parameter of this module, but not of its submodules. Matrices that are
  /// stacked in one parameter are visited one by one.
  virtual void visit_weights(const WeightVisitor& visit) const = 0;
};

/// How the numbers of a matrix are stored.
///   fp32  the format of training
///   bf16  half the memory: 8 bits of each number
///   fp16  half the memory: 11 bits of each number, which must not exceed 65504
///   int8  a quarter of the memory: whole numbers from -127 to 127, and a scale for each row
///   int4  a seventh of the memory: whole numbers from -8 to 7, and a scale for each 32 numbers of a row
/// Only fp32 can be trained. On the CPU the other formats are packed (kernels/products). A GPU has the
/// same numbers, those of int4 in bytes, and rounds the inputs of whole numbers in the same way. With bf16
/// and fp16 it computes in this type, except for norms and sums (models/precision.h).
enum class WeightFormat { fp32, bf16, fp16, int8, int4 };
constexpr auto config_names(WeightFormat) {
  return std::to_array<std::string_view>({"fp32", "bf16", "fp16", "int8", "int4"});
}

/// `format`, or the next one that is fast on `device`: decoding must not be slower than in fp32.
///   fp16  bf16 on processors without F16C
WeightFormat fast_format(WeightFormat format, torch::Device device);

/// A matrix W (O, I). Linear map: O outputs, I inputs. Table: O rows of width I.
class WeightMatrix {
 public:
  WeightMatrix() = default;
  /// `weight` (O, I) float.
  explicit WeightMatrix(torch::Tensor weight) : weight_(std::move(weight)) {}

  bool defined() const { return weight_.defined() || packed_.defined(); }
  int64_t n_rows() const { return packed_.defined() ? packed_.n_rows() : weight_.size(0); }
  int64_t n_columns() const { return packed_.defined() ? packed_.n_columns() : weight_.size(1); }
  WeightFormat format() const { return format_; }
  /// Bytes of the numbers and their scales.
  int64_t bytes() const;
  /// The parameter while the format is fp32; throws c10::Error otherwise.
  const torch::Tensor& parameter() const;

  /// x Wᵀ + b. x: (…, I), bias: (O) or undefined. Returns (…, O) with the type of x. In every format but
  /// fp32, a row of the result depends on its row of x only; gradients reach x, but not the matrix.
  torch::Tensor product(const torch::Tensor& x, const torch::Tensor& bias = {}) const;
  /// The same with only rows `first` … `first` + `count` - 1 of W and b: (…, count).
  torch::Tensor product(const torch::Tensor& x, const torch::Tensor& bias, int64_t first,
                        int64_t count) const;
  /// ids: any shape (…) int64. Returns the rows with these ids, (…, I) float.
  torch::Tensor rows(const torch::Tensor& ids) const;

  /// Keeps a copy of the parameter in 16 bits, and returns it. Products under autocast of this type read it
  /// in place of rounding the parameter, as long as the parameter is as it was at the last note_rounding().
  torch::Tensor keep_rounded(torch::ScalarType type);
  void note_rounding();
  bool is_rounding_current() const { return rounded_version_ == weight_._version(); }
  void forget_rounded() { rounded_ = torch::Tensor(); }

  /// Converts the numbers to fast_format(format). A format other than fp32 is final: throws c10::Error if the
  /// matrix already has one and the new one is different.
  void convert(WeightFormat format);
  /// A matrix of the same shape, format and device with any numbers.
  WeightMatrix blank() const;
  /// The stored tensors: the numbers, or all bytes of a packed matrix; and the scales, (O, 1) or
  /// (O, ⌈I/32⌉), which are undefined except for int8 and int4 on a GPU.
  const torch::Tensor& numbers() const { return packed_.defined() ? packed_.memory() : weight_; }
  const torch::Tensor& scales() const { return scales_; }
  /// The matrix in fp32 as products use it: (O, I).
  torch::Tensor values() const;

 private:
  /// Whether a product of x may read the copy.
  bool reads_rounded(const torch::Tensor& x) const;

  torch::Tensor weight_;  // (O, I) float; on a GPU also bfloat16, half or int8
  torch::Tensor scales_;  // float; int8 and int4 on a GPU only
  PackedMatrix packed_;   // the other formats on a CPU
  WeightFormat format_ = WeightFormat::fp32;
  torch::Tensor rounded_;        // (O, I) bfloat16 or half, or undefined
  int64_t rounded_version_ = 0;  // of weight_, when rounded_ was made from it
};

/// A module with one matrix, its parameter "weight". After a conversion from fp32 the matrix is a buffer
/// "weight", and its scales, if they are separate, are the buffer "weight_scale".
class MatrixModule : public Module, public WeightOwner {
 public:
  const WeightMatrix& matrix() const { return matrix_; }
  /// Converts the matrix, if this module owns one. The module cannot be trained afterwards.
  void convert(WeightFormat format);
  WeightMatrix& own_matrix() { return matrix_; }
  /// Gives the parameter "bias", if there is one, the type of the matrix where that has 16 bits: on a GPU.
  void convert_bias();

 protected:
  /// Makes `weight` (O, I) the parameter.
  void set_weight(torch::Tensor weight);
  void take_settings(const torch::nn::Module& from) override;

 private:
  void use_buffers();

  WeightMatrix matrix_;
};

/// Copies in 16 bits of the matrices of a model in training, beside the parameters in fp32, which the
/// optimiser changes (Micikevicius et al. 2018, section 3.1). Mixed precision then rounds each matrix once a
/// step, in one operation for all, and not at each use. Recorded steps, further batches of a step and
/// recomputed layers all read the same copies. The numbers are the same as without copies.
class RoundedWeights {
 public:
  /// Of the matrices of `model`, which must be on its device. `type`: bfloat16 or half.
  RoundedWeights(torch::nn::Module& model, torch::ScalarType type);
  ~RoundedWeights();
  RoundedWeights(const RoundedWeights&) = delete;
  RoundedWeights& operator=(const RoundedWeights&) = delete;

  /// To be called after a step. (LibTorch's fused optimisers do not count as a change of a tensor.)
  void renew();
  /// renew(), if a parameter was changed in another way: loaded, or substituted for a while. Until then
  /// products round the parameter itself.
  void renew_if_changed();
  /// In place of renew(), if the step has written the copies.
  void note_renewal();
  /// A matrix and its copy, which whoever changes the matrix may write.
  struct Copy {
    torch::Tensor parameter, rounded;
  };
  std::vector<Copy> copies() const;

 private:
  std::vector<std::shared_ptr<MatrixModule>> owners_;
  std::vector<torch::Tensor> copies_;  // of their matrices
};

/// Stores the linear maps and token tables of `model` and its submodules in fast_format(format), one after
/// the other. Norms and small tables do not change, and biases only where products have 16 bits: on a GPU.
/// Afterwards the model can neither be trained nor be written as a checkpoint.
void store_weights(torch::nn::Module& model, WeightFormat format);

}  // namespace zoo
