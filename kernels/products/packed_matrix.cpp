#include "kernels/products/packed_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "kernels/grain.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

int64_t bytes_of_panel(PackedFormat format, int64_t n_inputs) {
  switch (format) {
    case PackedFormat::bf16:
    case PackedFormat::fp16:
      return n_inputs * kPanel * 2;
    case PackedFormat::int8:
      return kInt8Header + groups_of(n_inputs) * kInt8Group;
    case PackedFormat::int4:
      return groups_of(n_inputs) * kInt4Group;
  }
  C10_THROW_ERROR(ValueError, "unknown PackedFormat");
}

/// Where a panel has output j and input k.
int64_t place_of(PackedFormat format, int64_t j, int64_t k) {
  const int64_t group = k / kGroup, quad = k % kGroup / 4, i = k % 4;
  switch (format) {
    case PackedFormat::bf16:
      return (k * kPanel + 2 * (j % (kPanel / 2)) + j / (kPanel / 2)) * 2;
    case PackedFormat::fp16:
      return (k * kPanel + j) * 2;
    case PackedFormat::int8:
      return kInt8Header + group * kInt8Group + quad * 4 * kPanel + 4 * j + i;
    case PackedFormat::int4:  // the lower four bits, or from quad 4 on the upper ones
      return group * kInt4Group + kInt4Scales + quad % 4 * 4 * kPanel + 4 * j + i;
  }
  C10_THROW_ERROR(ValueError, "unknown PackedFormat");
}

template <class T>
void put(uint8_t* place, T value) {
  std::memcpy(place, &value, sizeof value);
}

template <class T>
T get(const uint8_t* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

float nearest(float x) { return std::nearbyint(x); }

/// Writes row j of a panel. All its weights are zero before (empty_byte()).
void pack_int8(const float* row, int64_t n_inputs, int64_t j, uint8_t* panel) {
  float largest = 0;
  bool finite = true;
  for (int64_t k = 0; k < n_inputs; ++k) {
    largest = std::max(largest, std::abs(row[k]));
    finite = finite && std::isfinite(row[k]);
  }
  constexpr float least = std::numeric_limits<float>::min();  // below it, a quotient could exceed 127
  const float scale = !finite       ? std::numeric_limits<float>::quiet_NaN()
                      : largest > 0 ? std::max(largest / 127, least)
                                    : 1.0F;
  put(panel + 4 * j, scale);
  if (!finite) return;
  for (int64_t k = 0; k < n_inputs; ++k)
    panel[place_of(PackedFormat::int8, j, k)] =
        static_cast<uint8_t>(kInt8Offset + static_cast<int64_t>(nearest(row[k] / scale)));
}

/// The scale of 32 weights, which may be negative: the weight that is largest in size becomes about -8.
c10::Half int4_scale(const float* w) {
  const float extreme =
      *std::max_element(w, w + kGroup, [](float a, float b) { return std::abs(a) < std::abs(b); });
  constexpr float least = 1e-30F;  // smaller numbers are zero, and have a finite inverse
  if (std::abs(extreme) < least) return 0;
  float best_gain = 0, best = 0;
  for (int step = -9; step <= 9; ++step) {
    const auto fit = kernels().fit_int4(w, (-8.0F + 0.1F * static_cast<float>(step)) / extreme);
    if (fit.gain() > best_gain) {
      best_gain = fit.gain();
      best = fit.products / fit.squares;
    }
  }
  constexpr float most = 65504;
  return static_cast<c10::Half>(std::clamp(best, -most, most));
}

void pack_int4(const float* row, int64_t n_inputs, int64_t j, uint8_t* panel) {
  for (int64_t k = 0; k < n_inputs; k += kGroup) {
    float w[kGroup] = {};
    std::copy_n(row + k, std::min(kGroup, n_inputs - k), w);
    const bool finite = std::all_of(w, w + kGroup, [](float x) { return std::isfinite(x); });
    const auto scale = finite ? int4_scale(w) : c10::Half(std::numeric_limits<float>::quiet_NaN());
    put(panel + k / kGroup * kInt4Group + 2 * j, scale);
    const auto value = static_cast<float>(scale);
    for (int64_t i = 0; i < kGroup; ++i) {
      const float n = finite && value != 0 ? std::clamp(nearest(w[i] / value), -8.0F, 7.0F) : 0.0F;
      const auto bits = static_cast<uint8_t>(kInt4Offset + static_cast<int64_t>(n));
      auto& byte = panel[place_of(PackedFormat::int4, j, k + i)];
      byte = static_cast<uint8_t>(i < kGroup / 2 ? (byte & 0xF0) | bits : (byte & 0x0F) | bits << 4);
    }
  }
}

void pack_row(PackedFormat format, const float* row, int64_t n_inputs, int64_t j, uint8_t* panel) {
  switch (format) {
    case PackedFormat::bf16:
      for (int64_t k = 0; k < n_inputs; ++k) put(panel + place_of(format, j, k), c10::BFloat16(row[k]));
      return;
    case PackedFormat::fp16:
      for (int64_t k = 0; k < n_inputs; ++k) put(panel + place_of(format, j, k), c10::Half(row[k]));
      return;
    case PackedFormat::int8:
      return pack_int8(row, n_inputs, j, panel);
    case PackedFormat::int4:
      return pack_int4(row, n_inputs, j, panel);
  }
}

/// Number k of row j of a panel in int8 or int4.
int whole_number(PackedFormat format, const uint8_t* panel, int64_t j, int64_t k) {
  const int byte = panel[place_of(format, j, k)];
  if (format == PackedFormat::int8) return byte - static_cast<int>(kInt8Offset);
  return (k % kGroup < kGroup / 2 ? byte & 15 : byte >> 4) - static_cast<int>(kInt4Offset);
}

/// The scale of number k of row j.
float scale_at(PackedFormat format, const uint8_t* panel, int64_t j, int64_t k) {
  return format == PackedFormat::int8
             ? get<float>(panel + 4 * j)
             : static_cast<float>(get<c10::Half>(panel + k / kGroup * kInt4Group + 2 * j));
}

void unpack_row(PackedFormat format, const uint8_t* panel, int64_t n_inputs, int64_t j, float* row) {
  switch (format) {
    case PackedFormat::bf16:
      for (int64_t k = 0; k < n_inputs; ++k) row[k] = get<c10::BFloat16>(panel + place_of(format, j, k));
      return;
    case PackedFormat::fp16:
      for (int64_t k = 0; k < n_inputs; ++k) row[k] = get<c10::Half>(panel + place_of(format, j, k));
      return;
    case PackedFormat::int8:
    case PackedFormat::int4:
      for (int64_t k = 0; k < n_inputs; ++k)
        row[k] = scale_at(format, panel, j, k) * static_cast<float>(whole_number(format, panel, j, k));
      return;
  }
}

/// The byte of weights that are zero.
uint8_t empty_byte(PackedFormat format) {
  if (format == PackedFormat::int8) return kInt8Offset;
  return format == PackedFormat::int4 ? kInt4Offset * 17 : 0;
}

/// Sets all scales to zero. Rows and groups that the matrix does not have keep that.
void clear_scales(PackedFormat format, int64_t n_inputs, uint8_t* panel) {
  if (format == PackedFormat::int8) std::memset(panel, 0, kInt8Header);
  if (format != PackedFormat::int4) return;
  for (int64_t group = 0; group < groups_of(n_inputs); ++group)
    std::memset(panel + group * kInt4Group, 0, kInt4Scales);
}

}  // namespace

PackedMatrix::PackedMatrix(const torch::Tensor& weight, PackedFormat format)
    : n_rows_(weight.size(0)), n_columns_(weight.size(1)), format_(format) {
  TORCH_CHECK(weight.is_cpu(), "only matrices on the CPU are packed");
  const auto rows = weight.detach().to(torch::kFloat).contiguous();
  const int64_t panel = panel_bytes();
  memory_ = torch::empty({panels_of(n_rows_) * panel}, torch::kUInt8);
  auto* const bytes = memory_.data_ptr<uint8_t>();
  const float* const data = rows.const_data_ptr<float>();
  at::parallel_for(0, panels_of(n_rows_), 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      std::memset(bytes + p * panel, empty_byte(format), static_cast<size_t>(panel));
      clear_scales(format, n_columns_, bytes + p * panel);
      for (int64_t j = 0; j < std::min(kPanel, n_rows_ - p * kPanel); ++j)
        pack_row(format, data + (p * kPanel + j) * n_columns_, n_columns_, j, bytes + p * panel);
    }
  });
}

int64_t PackedMatrix::panel_bytes() const { return bytes_of_panel(format_, n_columns_); }

PackedMatrix PackedMatrix::blank() const {
  auto result = *this;
  result.memory_ = torch::empty_like(memory_);
  return result;
}

torch::Tensor PackedMatrix::rows(const torch::Tensor& ids) const {
  TORCH_CHECK(ids.is_cpu() && memory_.is_cpu(), "packed matrices stay on the CPU");
  auto shape = ids.sizes().vec();
  shape.push_back(n_columns_);
  const auto result = torch::empty(shape, torch::kFloat);
  const auto flat = ids.to(torch::kInt64).contiguous();
  const auto* const id = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i)
    TORCH_CHECK_INDEX(id[i] >= 0 && id[i] < n_rows_, "a table of ", n_rows_, " rows has no row ", id[i]);
  const auto* const panels = memory_.const_data_ptr<uint8_t>();
  auto* const out = result.mutable_data_ptr<float>();
  at::parallel_for(0, flat.numel(), grain_rows(std::max<int64_t>(n_columns_, 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i)
                       unpack_row(format_, panels + id[i] / kPanel * panel_bytes(), n_columns_,
                                  id[i] % kPanel, out + i * n_columns_);
                   });
  return result;
}

WholeNumbers PackedMatrix::whole_numbers() const {
  TORCH_CHECK(format_ == PackedFormat::int8 || format_ == PackedFormat::int4,
              "only int8 and int4 have whole numbers");
  const bool one_scale = format_ == PackedFormat::int8;
  const int64_t n_scales = one_scale ? 1 : groups_of(n_columns_);
  WholeNumbers result{.numbers = torch::empty({n_rows_, n_columns_}, torch::kInt8),
                      .scales = torch::empty({n_rows_, n_scales}, torch::kFloat)};
  auto* const numbers = result.numbers.mutable_data_ptr<int8_t>();
  auto* const scales = result.scales.mutable_data_ptr<float>();
  const auto* const panels = memory_.const_data_ptr<uint8_t>();
  at::parallel_for(0, n_rows_, grain_rows(std::max<int64_t>(n_columns_, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto* const panel = panels + i / kPanel * panel_bytes();
      const int64_t j = i % kPanel;
      for (int64_t k = 0; k < n_columns_; ++k)
        numbers[i * n_columns_ + k] = static_cast<int8_t>(whole_number(format_, panel, j, k));
      for (int64_t group = 0; group < n_scales; ++group)
        scales[i * n_scales + group] = scale_at(format_, panel, j, group * kGroup);
    }
  });
  return result;
}

}  // namespace zoo
