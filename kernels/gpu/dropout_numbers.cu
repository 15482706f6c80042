// The random numbers of dropout, and sums with it, for all texts. The numbers are those of Philox4x32 with 7 rounds (Salmon et al. 2011), as the processor
// draws them (kernels/isa/dropout_loops.h). One counter has the 16 bits of 8 elements beside each other.

/// The elements of one counter.
template <class T>
struct alignas(16) Eight {
  T values[8];
};

/// The numbers of a counter. One that is below `threshold` drops its element; others multiply it by `scale`.
struct DropoutNumbers {
  unsigned words[4];

  __device__ DropoutNumbers(unsigned long long seed, unsigned long long counter) {
    unsigned c0 = static_cast<unsigned>(counter), c1 = static_cast<unsigned>(counter >> 32), c2 = 0, c3 = 0;
    unsigned key0 = static_cast<unsigned>(seed), key1 = static_cast<unsigned>(seed >> 32);
    for (int round = 0; round < 7; ++round) {
      const unsigned long long product0 = 0xD2511F53ull * c0, product1 = 0xCD9E8D57ull * c2;
      c0 = static_cast<unsigned>(product1 >> 32) ^ c1 ^ key0;
      c2 = static_cast<unsigned>(product0 >> 32) ^ c3 ^ key1;
      c1 = static_cast<unsigned>(product1);
      c3 = static_cast<unsigned>(product0);
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
  }
  __device__ float factor(int element, unsigned threshold, float scale) const {
    return (words[element / 2] >> (element % 2 * 16) & 0xFFFFu) >= threshold ? scale : 0.0f;
  }
};

/// How a call drops elements of a tensor.
struct DropoutRule {
  const long long* seed;  // one number, which is read on the device, because a recorded step must draw others each time
  unsigned threshold;
  float scale;

  __device__ DropoutNumbers numbers(long long counter) const {
    return DropoutNumbers(static_cast<unsigned long long>(*seed), static_cast<unsigned long long>(counter));
  }
  __device__ float factor(const DropoutNumbers& numbers, int element) const {
    return numbers.factor(element, threshold, scale);
  }
};

/// x + dropout(y) of the elements of a counter.
template <class X, class Y>
__device__ inline Eight<X> add_dropped(const Eight<X>& x, const Eight<Y>& y, const DropoutRule& rule, long long counter) {
  const DropoutNumbers numbers = rule.numbers(counter);
  Eight<X> sum;
  for (int j = 0; j < 8; ++j) set(sum.values[j], to_float(x.values[j]) + to_float(y.values[j]) * rule.factor(numbers, j));
  return sum;
}
