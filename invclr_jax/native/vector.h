// Vectors as wide as the processor's registers, and the products of matrices that are made of them.

#ifndef INVCLR_NATIVE_VECTOR_H_
#define INVCLR_NATIVE_VECTOR_H_

#include <cstdint>

namespace invclr {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kRows = 12, kShortRows = 8;
#else
constexpr int kLanes = 8, kRows = 6, kShortRows = 4;
#endif
// kRows by kColumns sums fill the registers; kShortRows divides any number of channels.
constexpr int kVectors = 2, kColumns = kVectors * kLanes;

// A compiler's own vectors, read from and written to any place in an array of numbers. Arithmetic
// goes lane by lane, and a number stands for all lanes.
typedef float Vector __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

inline Vector Load(const float* from) { return *reinterpret_cast<const Vector*>(from); }
inline void Store(float* to, Vector vector) { *reinterpret_cast<Vector*>(to) = vector; }

// A matrix whose entry [i, j] is data[i * row + j * column].
struct Matrix {
  const float* data;
  int64_t row, column;
};

// out[r, :] = Σ_k a[r, k] b[k, :], or that added to it, for kR rows and kN vectors of columns;
// rows of b are `b_row` numbers apart, rows of out `out_row`.
template <int kR, int kN, bool kAdd>
inline void MultiplyBlock(Matrix a, const float* b, int64_t b_row, int64_t depth, float* out,
                          int64_t out_row) {
  Vector sums[kR][kN] = {};
  const float* column = a.data;
  for (int64_t k = 0; k < depth; ++k, column += a.column, b += b_row) {
    Vector row[kN];
    for (int j = 0; j < kN; ++j) row[j] = Load(b + j * kLanes);
    for (int r = 0; r < kR; ++r)
      for (int j = 0; j < kN; ++j) sums[r][j] += column[r * a.row] * row[j];
  }
  for (int r = 0; r < kR; ++r)
    for (int j = 0; j < kN; ++j) {
      float* to = out + r * out_row + j * kLanes;
      Store(to, kAdd ? Load(to) + sums[r][j] : sums[r][j]);
    }
}

// The same for kR rows and 1 or 2 vectors of columns, as many as `columns` has room for.
template <int kR, bool kAdd>
inline void MultiplyColumns(Matrix a, const float* b, int64_t b_row, int64_t depth, float* out,
                            int64_t out_row, int64_t columns) {
  if (columns >= kColumns) {
    MultiplyBlock<kR, kVectors, kAdd>(a, b, b_row, depth, out, out_row);
  } else {
    MultiplyBlock<kR, 1, kAdd>(a, b, b_row, depth, out, out_row);
  }
}

}  // namespace invclr

#endif  // INVCLR_NATIVE_VECTOR_H_
