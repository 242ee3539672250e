// Winograd's transformations for tiles of 4×4 outputs of a 3×3 kernel.
//
//     y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A        y: 4×4, g: 3×3, d: 6×6        (Lavin and Gray, 2016)
//
// They interpolate at 0, ±p, ±q and ∞. With p = 3/4 and q = 3/2 rounding errors are a quarter of
// those of the textbook's 1 and 2 (tried with 128 channels). Each function below takes a line of a
// tile; a point and its negative share their sums, even and odd powers apart.

#ifndef INVCLR_NATIVE_TRANSFORMS_H_
#define INVCLR_NATIVE_TRANSFORMS_H_

#include "vector.h"

namespace invclr {

constexpr int kTile = 4, kWindow = 6, kKernel = 3, kProducts = kWindow * kWindow;

constexpr float p = 0.75f, q = 1.5f, pp = p * p, qq = q * q;
constexpr float at_zero = 1 / (pp * qq);
constexpr float at_p = 1 / (2 * pp * (pp - qq)), at_q = 1 / (2 * qq * (qq - pp));

// Bᵀ d
inline void Inputs(const Vector d[6], Vector out[6]) {
  const Vector even_p = d[4] - qq * d[2], odd_p = p * (d[3] - qq * d[1]);
  const Vector even_q = d[4] - pp * d[2], odd_q = q * (d[3] - pp * d[1]);
  out[0] = pp * qq * d[0] - (pp + qq) * d[2] + d[4];
  out[1] = even_p + odd_p;
  out[2] = even_p - odd_p;
  out[3] = even_q + odd_q;
  out[4] = even_q - odd_q;
  out[5] = pp * qq * d[1] - (pp + qq) * d[3] + d[5];
}

// G g
inline void Kernels(const Vector g[3], Vector out[6]) {
  const Vector even_p = at_p * (g[0] + pp * g[2]), odd_p = at_p * p * g[1];
  const Vector even_q = at_q * (g[0] + qq * g[2]), odd_q = at_q * q * g[1];
  out[0] = at_zero * g[0];
  out[1] = even_p + odd_p;
  out[2] = even_p - odd_p;
  out[3] = even_q + odd_q;
  out[4] = even_q - odd_q;
  out[5] = g[2];
}

// Aᵀ m
inline void Outputs(const Vector m[6], Vector out[4]) {
  const Vector even_p = m[1] + m[2], odd_p = p * (m[1] - m[2]);
  const Vector even_q = m[3] + m[4], odd_q = q * (m[3] - m[4]);
  out[0] = m[0] + even_p + even_q;
  out[1] = odd_p + odd_q;
  out[2] = pp * even_p + qq * even_q;
  out[3] = pp * odd_p + qq * odd_q + m[5];
}

// A y, the transpose of Outputs
inline void Cotangents(const Vector y[4], Vector out[6]) {
  const Vector even_p = y[0] + pp * y[2], odd_p = p * (y[1] + pp * y[3]);
  const Vector even_q = y[0] + qq * y[2], odd_q = q * (y[1] + qq * y[3]);
  out[0] = y[0];
  out[1] = even_p + odd_p;
  out[2] = even_p - odd_p;
  out[3] = even_q + odd_q;
  out[4] = even_q - odd_q;
  out[5] = y[3];
}

// Gᵀ m, the transpose of Kernels
inline void KernelCotangents(const Vector m[6], Vector out[3]) {
  const Vector even_p = at_p * (m[1] + m[2]), odd_p = at_p * (m[1] - m[2]);
  const Vector even_q = at_q * (m[3] + m[4]), odd_q = at_q * (m[3] - m[4]);
  out[0] = at_zero * m[0] + even_p + even_q;
  out[1] = p * odd_p + q * odd_q;
  out[2] = pp * even_p + qq * even_q + m[5];
}

// A transformation along the columns of a tile, then along its rows.
template <int kFrom, int kTo, void (*Line)(const Vector*, Vector*)>
inline void BothWays(const Vector from[kFrom][kFrom], Vector to[kTo][kTo]) {
  Vector columns[kFrom][kTo];
  for (int j = 0; j < kFrom; ++j) {
    Vector column[kFrom];
    for (int i = 0; i < kFrom; ++i) column[i] = from[i][j];
    Line(column, columns[j]);
  }
  for (int i = 0; i < kTo; ++i) {
    Vector row[kFrom];
    for (int j = 0; j < kFrom; ++j) row[j] = columns[j][i];
    Line(row, to[i]);
  }
}

}  // namespace invclr

#endif  // INVCLR_NATIVE_TRANSFORMS_H_
