// Products of few rows in CUDA C++: y = residual + act(norm(x) Wᵀ + b), with everything around the product in one pass.
// A matrix is read once for all rows, 16 bytes at a time, as it is stored: in float, in 16 bits, or in whole numbers
// with scales. A warp computes one output of every row, and a row's result does not depend on the rows beside it. The
// text needs no headers, and compiles as C++, too (tests/support/cuda_shim.h).

using zoo::ProductAct;
using zoo::ProductCall;
using zoo::ProductMatrix;
using zoo::ProductNorm;

constexpr int kProductThreads = ZOO_BLOCK_THREADS, kProductWarps = kProductThreads / ZOO_WARP_THREADS;
constexpr int kStaged = 8192;  // inputs of all rows that a block keeps at once
constexpr int kInputsOfAScale = 32;

__device__ inline float product_activation(float x, ProductAct act) {
  switch (act) {
    case ProductAct::none:
      return x;
    case ProductAct::relu:
      return Relu::of(x).value;
    case ProductAct::gelu_exact:
      return GeluExact::of(x).value;
    case ProductAct::gelu_by_tanh:
      return GeluByTanh::of(x).value;
    case ProductAct::silu:
      return Silu::of(x).value;
    case ProductAct::quick_gelu:
      return QuickGelu::of(x).value;
  }
  return x;
}

template <class T>
__device__ inline float number_at(const void* numbers, int are_float, long long i) {
  return are_float ? static_cast<const float*>(numbers)[i] : to_float(static_cast<const T*>(numbers)[i]);
}

/// The mean that a norm subtracts from each row, and the factor that it multiplies it by.
template <int kRows>
struct RowNorms {
  float means[kRows], scales[kRows];
};

/// Every thread of a block takes part.
template <class T, int kRows>
__device__ inline void find_norms(const ProductCall& call, RowNorms<kRows>& norms) {
  const int lane = static_cast<int>(threadIdx.x) % ZOO_WARP_THREADS, warp = static_cast<int>(threadIdx.x) / ZOO_WARP_THREADS;
  const float n = static_cast<float>(call.width);
  for (int first = 0; first < kRows; first += kProductWarps) {
    const int row = first + warp;
    const bool is_there = row < call.n_rows;
    const long long start = static_cast<long long>(row) * call.width;
    float sum = 0.0f, mean = 0.0f;
    if (call.norm == ProductNorm::mean) {
      for (int i = lane; is_there && i < call.width; i += ZOO_WARP_THREADS)
        sum += number_at<T>(call.inputs, call.inputs_are_float, start + i);
      mean = warp_sum(sum) / n;
      sum = 0.0f;
    }
    for (int i = lane; is_there && i < call.width; i += ZOO_WARP_THREADS) {
      const float apart = number_at<T>(call.inputs, call.inputs_are_float, start + i) - mean;
      sum += apart * apart;
    }
    const float scale = 1.0f / sqrtf(warp_sum(sum) / n + call.eps);
    if (lane == 0 && row < kRows) {
      norms.means[row] = mean;
      norms.scales[row] = scale;
    }
  }
  __syncthreads();
}

/// Input i of a row as a product reads it: normalised, if there is a norm, and rounded to T.
template <class T, int kRows>
__device__ inline float product_input(const ProductCall& call, const RowNorms<kRows>& norms, int row, int i) {
  if (row >= call.n_rows) return 0.0f;
  const float x = number_at<T>(call.inputs, call.inputs_are_float, static_cast<long long>(row) * call.width + i);
  if (call.norm == ProductNorm::none) return rounded_to<T>(x);
  float normal = (x - norms.means[row]) * norms.scales[row] * (call.gain[i] + call.gain_offset);
  if (call.norm_bias) normal += call.norm_bias[i];
  return rounded_to<T>(normal);
}

/// A part of the rows in memory that the threads of a block share, and its product with a part of a matrix's row.
/// Numbers of 32 or 16 bits are kept as they are.
template <class T, class W, int kRows>
struct StagedInputs {
  static constexpr int kCount = kStaged / kRows;
  alignas(16) T numbers[kRows * kCount];

  __device__ void read(const ProductCall& call, const RowNorms<kRows>& norms, int first, int count) {
    for (int i = static_cast<int>(threadIdx.x); i < kRows * count; i += kProductThreads)
      set(numbers[i / count * kCount + i % count], product_input<T>(call, norms, i / count, first + i % count));
  }
  __device__ void multiply(const W* weights, const float*, int count, int lane, float* sums) const {
    constexpr int size = Pack<W>::kSize;
    const auto* const packs = reinterpret_cast<const Pack<W>*>(weights);
    const auto* const inputs = reinterpret_cast<const Pack<T>*>(numbers);
    ZOO_UNROLL
    for (int i = lane; i < count / size; i += ZOO_WARP_THREADS) {
      const Pack<W> w = packs[i];
      for (int row = 0; row < kRows; ++row) {
        const Pack<T>& x = inputs[row * (kCount / size) + i];
        for (int j = 0; j < size; ++j) sums[row] += to_float(w.values[j]) * to_float(x.values[j]);
      }
    }
  }
};

/// Inputs of a matrix of whole numbers: each 32 are whole numbers from -127 to 127 times a scale.
template <class T, int kRows>
struct StagedInputs<T, signed char, kRows> {
  static constexpr int kCount = kStaged / kRows, kSize = 16, kEach = kInputsOfAScale / ZOO_WARP_THREADS;
  alignas(16) signed char numbers[kRows * kCount];
  float scales[kRows * kCount / kInputsOfAScale];

  __device__ void read(const ProductCall& call, const RowNorms<kRows>& norms, int first, int count) {
    const int lane = static_cast<int>(threadIdx.x) % ZOO_WARP_THREADS, warp = static_cast<int>(threadIdx.x) / ZOO_WARP_THREADS;
    const int n_scales = count / kInputsOfAScale, n = kRows * n_scales;
    for (int begin = 0; begin < n; begin += kProductWarps) {
      const int group = begin + warp < n ? begin + warp : n - 1;  // every warp takes part in every turn
      const int row = group / n_scales, place = group % n_scales;
      float values[kEach], range = 0.0f;
      for (int j = 0; j < kEach; ++j) {
        values[j] = product_input<T>(call, norms, row, first + place * kInputsOfAScale + j * ZOO_WARP_THREADS + lane);
        range = fmaxf(range, fabsf(values[j]));
      }
      range = warp_max(range);
      const float inverse = range >= 1e-30f ? 127.0f / range : 0.0f;  // smaller numbers are zero
      for (int j = 0; j < kEach; ++j)
        numbers[row * kCount + place * kInputsOfAScale + j * ZOO_WARP_THREADS + lane] =
            static_cast<signed char>(rintf(values[j] * inverse));
      if (lane == 0) scales[row * (kCount / kInputsOfAScale) + place] = range / 127.0f;
    }
  }
  /// of_groups: the scale of each 32 numbers of the matrix's row; null: the row has one scale.
  __device__ void multiply(const signed char* weights, const float* of_groups, int count, int lane, float* sums) const {
    const auto* const packs = reinterpret_cast<const Pack<int>*>(weights);
    const auto* const inputs = reinterpret_cast<const Pack<int>*>(numbers);
    ZOO_UNROLL
    for (int i = lane; i < count / kSize; i += ZOO_WARP_THREADS) {
      const Pack<int> w = packs[i];
      const int group = i / (kInputsOfAScale / kSize);
      const float scale = of_groups ? of_groups[group] : 1.0f;
      for (int row = 0; row < kRows; ++row) {
        const Pack<int>& x = inputs[row * (kCount / kSize) + i];
        int sum = 0;
        for (int j = 0; j < 4; ++j) sum = dot_of_bytes(w.values[j], x.values[j], sum);
        sums[row] += static_cast<float>(sum) * (scales[row * (kCount / kInputsOfAScale) + group] * scale);
      }
    }
  }
};

/// The matrix that makes the output `row` of the call; `row` becomes the row of the matrix.
__device__ inline ProductMatrix matrix_of(const ProductCall& call, int& row) {
  if (row < call.matrices[0].n_outputs) return call.matrices[0];
  row -= call.matrices[0].n_outputs;
  if (row < call.matrices[1].n_outputs) return call.matrices[1];
  row -= call.matrices[1].n_outputs;
  return call.matrices[2];
}

/// Adds the product of what is staged with the same part of a matrix's row.
template <class T, class W, int kRows>
__device__ inline void add_product(const ProductCall& call, const StagedInputs<T, W, kRows>& staged, int row, int first,
                                   int count, int lane, float* sums) {
  const ProductMatrix matrix = matrix_of(call, row);
  const long long start = static_cast<long long>(row) * call.width + first;
  const float* const groups = call.scales_are_of_groups ? matrix.scales + start / kInputsOfAScale : nullptr;
  staged.multiply(static_cast<const W*>(matrix.numbers) + start, groups, count, lane, sums);
}

/// A sum of products as the linear map's output: with its scale and its bias.
template <class T>
__device__ inline float mapped(const ProductCall& call, int row, float sum) {
  const ProductMatrix matrix = matrix_of(call, row);
  if (matrix.scales && !call.scales_are_of_groups) sum *= matrix.scales[row];
  if (matrix.bias) sum += number_at<T>(matrix.bias, call.biases_are_float, row);
  return rounded_to<T>(sum);
}

template <class T>
__device__ inline void write_output(const ProductCall& call, int row, int o, float y) {
  const long long to = static_cast<long long>(row) * call.n_outputs + o;
  if (call.residual) y += number_at<T>(call.residual, call.outputs_are_float, to);
  if (call.outputs_are_float) {
    static_cast<float*>(call.outputs)[to] = y;
  } else {
    set(static_cast<T*>(call.outputs)[to], y);
  }
}

template <class T, class W, int kRows>
__device__ inline void product_of_rows(const ProductCall& call) {
  __shared__ StagedInputs<T, W, kRows> staged;
  __shared__ RowNorms<kRows> norms;
  constexpr int kCount = StagedInputs<T, W, kRows>::kCount;
  const int lane = static_cast<int>(threadIdx.x) % ZOO_WARP_THREADS, warp = static_cast<int>(threadIdx.x) / ZOO_WARP_THREADS;
  if (call.norm != ProductNorm::none) find_norms<T>(call, norms);
  const int first_output = static_cast<int>(blockIdx.x) * kProductWarps, stride = static_cast<int>(gridDim.x) * kProductWarps;
  for (int begin = first_output; begin < call.n_outputs; begin += stride) {
    const int o = begin + warp < call.n_outputs ? begin + warp : call.n_outputs - 1;  // every warp takes part
    float sums[kRows] = {}, ups[kRows] = {};  // gated: of the gate, and of up
    for (int first = 0; first < call.width; first += kCount) {
      const int count = call.width - first < kCount ? call.width - first : kCount;
      if (begin == first_output || call.width > kCount) {
        __syncthreads();  // whoever still reads the part before
        staged.read(call, norms, first, count);
        __syncthreads();
      }
      add_product(call, staged, o, first, count, lane, sums);
      if (call.gated) add_product(call, staged, o + call.n_outputs, first, count, lane, ups);
    }
    ZOO_UNROLL
    for (int row = 0; row < kRows; ++row) {
      const float sum = warp_sum(sums[row]), up = call.gated ? warp_sum(ups[row]) : 0.0f;
      if (lane != row % ZOO_WARP_THREADS || row >= call.n_rows || begin + warp >= call.n_outputs) continue;
      float y = product_activation(mapped<T>(call, o, sum), call.act);
      if (call.gated) y *= mapped<T>(call, o + call.n_outputs, up);
      write_output<T>(call, row, o, y);
    }
  }
}

#define ZOO_PRODUCT(name, T, W, rows)                                                        \
  extern "C" __global__ void __launch_bounds__(kProductThreads) name##_##rows(ProductCall call) { \
    product_of_rows<T, W, rows>(call);                                                       \
  }
#define ZOO_PRODUCTS(name, T, W) \
  ZOO_PRODUCT(name, T, W, 1)     \
  ZOO_PRODUCT(name, T, W, 4)     \
  ZOO_PRODUCT(name, T, W, 8)
ZOO_PRODUCTS(product_float_float, float, float)
ZOO_PRODUCTS(product_bf16_bf16, Bf16, Bf16)
ZOO_PRODUCTS(product_half_half, Half, Half)
ZOO_PRODUCTS(product_float_whole, float, signed char)
ZOO_PRODUCTS(product_bf16_whole, Bf16, signed char)
ZOO_PRODUCTS(product_half_whole, Half, signed char)
