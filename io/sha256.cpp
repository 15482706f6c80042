// SHA-256 (FIPS 180-4), for file digests and cache names; not for secrets.

#include "io/sha256.h"

#include <algorithm>
#include <bit>

#include "io/open_file.h"

namespace zoo {
namespace {

constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<uint32_t, 8>;

/// Mixes one block of 64 bytes into the state.
void compress(State& state, const unsigned char* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) {
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
           uint32_t{block[4 * i + 3]};
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const State mixed = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

}  // namespace

void Sha256::add(std::string_view bytes) {
  constexpr size_t block = 64;
  n_bytes_ += bytes.size();
  if (!rest_.empty()) {
    const size_t missing = std::min(block - rest_.size(), bytes.size());
    rest_.append(bytes.substr(0, missing));
    bytes.remove_prefix(missing);
    if (rest_.size() < block) return;
    compress(state_, reinterpret_cast<const unsigned char*>(rest_.data()));
    rest_.clear();
  }
  for (; bytes.size() >= block; bytes.remove_prefix(block))
    compress(state_, reinterpret_cast<const unsigned char*>(bytes.data()));
  rest_ = bytes;
}

std::string Sha256::digest() const {
  State state = state_;
  // The rest, a 1 bit, zeros, and the number of bits in 8 bytes fill one block or two.
  std::array<unsigned char, 128> tail{};
  std::ranges::copy(rest_, tail.begin());
  tail[rest_.size()] = 0x80;
  const size_t tail_size = rest_.size() < 56 ? 64 : 128;
  const uint64_t bits = n_bytes_ * 8;
  for (size_t i = 0; i < 8; ++i) tail[tail_size - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (size_t at = 0; at < tail_size; at += 64) compress(state, tail.data() + at);

  std::string digest;
  for (const uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) digest += "0123456789abcdef"[word >> shift & 0xF];
  }
  return digest;
}

std::string sha256(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.digest();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  return sha256_of_file(open_for_reading(path, Follow::links), path);
}

std::string sha256_of_file(const Descriptor& file, const std::filesystem::path& path) {
  constexpr size_t piece_bytes = size_t{1} << 20;
  Sha256 sum;
  std::string piece(piece_bytes, '\0');
  for (uint64_t offset = 0;; offset += piece_bytes) {
    const size_t n = read_at(file, path, offset, piece);
    sum.add(std::string_view(piece).substr(0, n));
    if (n < piece_bytes) return sum.digest();
  }
}

}  // namespace zoo
