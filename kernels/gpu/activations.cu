// Activations and their slopes, for all texts.

struct ValueAndSlope {
  float value, slope;
};

struct Silu {
  __device__ static ValueAndSlope of(float x) {
    const float sigmoid = 1.0f / (1.0f + exp2f(-x * kLog2E));
    return {x * sigmoid, sigmoid * (1.0f + x * (1.0f - sigmoid))};
  }
};
struct GeluExact {
  __device__ static ValueAndSlope of(float x) {
    const float phi = 0.5f * (1.0f + erff(x * 0.70710678118655f));
    return {x * phi, phi + x * 0.39894228040143f * exp2f(-0.5f * kLog2E * x * x)};
  }
};
struct GeluByTanh {
  __device__ static ValueAndSlope of(float x) {
    constexpr float root = 0.79788456080287f, cubic = 0.044715f;  // √(2/π)
    const float t = tanhf(root * (x + cubic * x * x * x));
    return {0.5f * x * (1.0f + t),
            0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * root * (1.0f + 3.0f * cubic * x * x)};
  }
};

struct Relu {
  __device__ static ValueAndSlope of(float x) { return {x <= 0.0f ? 0.0f : x, x <= 0.0f ? 0.0f : 1.0f}; }
};
struct QuickGelu {
  __device__ static ValueAndSlope of(float x) {
    constexpr float factor = 1.702f;
    const float sigmoid = 1.0f / (1.0f + exp2f(-factor * x * kLog2E));
    return {x * sigmoid, sigmoid * (1.0f + factor * x * (1.0f - sigmoid))};
  }
};
