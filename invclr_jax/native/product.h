// Products of matrices, block by block in the processor's registers.

#ifndef INVCLR_NATIVE_PRODUCT_H_
#define INVCLR_NATIVE_PRODUCT_H_

#include <cstdint>
#include <utility>

#include "elements.h"
#include "parallel.h"

namespace invclr {

// kRows by kColumns sums fill the registers; kShortRows divides kLanes.
#if defined(__AVX512F__)
constexpr int kRows = 12, kShortRows = 8;
#else
constexpr int kRows = 6, kShortRows = 4;
#endif
constexpr int kVectors = 2, kColumns = kVectors * kLanes;

// A matrix whose entry [i, j] is the word data[i * row + j * column].
template <class Word>
struct Matrix {
  const Word* data;
  int64_t row, column;
};

// A matrix [rows, columns] of words in panels of kWide columns, one after the other. The last one may
// be narrower; all are whole vectors.
template <int kWide, class Word>
struct Panels {
  Word* data;
  int64_t rows, columns;

  int64_t Width(int64_t column) const {
    return std::min<int64_t>(kWide, columns - column / kWide * kWide);
  }
  Word* At(int64_t row, int64_t column) const {
    const int64_t before = column / kWide * kWide;
    return data + before * rows + row * Width(column) + column - before;
  }
};

// f(0), …, f(kCount - 1) with constants as arguments, so that arrays of vectors become registers.
template <class F, int... i>
__attribute__((always_inline)) inline void RepeatEach(F f, std::integer_sequence<int, i...>) {
  (f(std::integral_constant<int, i>()), ...);
}
template <int kCount, class F>
__attribute__((always_inline)) inline void Repeat(F f) {
  RepeatEach(f, std::make_integer_sequence<int, kCount>());
}

// out[r, :] = Σ_k a[r, k] b[k, :], or that added to it, for kR rows and kN vectors of columns;
// rows of b are `b_row` words apart, rows of out `out_row`.
template <int kR, int kN, bool kAdd, class Word>
inline void MultiplyBlock(Matrix<Word> a, const Word* b, int64_t b_row, int64_t depth, float* out,
                          int64_t out_row) {
  Vector sums[kR][kN];
  Repeat<kR * kN>([&](auto i) { sums[i / kN][i % kN] = Vector{}; });
  const Word* column = a.data;
  for (int64_t k = 0; k < depth; ++k, column += a.column, b += b_row)
    Repeat<kR * kN>([&](auto i) {
      constexpr int r = i / kN, j = i % kN;
      sums[r][j] = MultiplyAdd(column[r * a.row], b + j * kLanes, sums[r][j]);
      asm("" : "+v"(sums[r][j]));  // stays in its register: GCC 12 would also store it each time
    });
  Repeat<kR * kN>([&](auto i) {
    constexpr int r = i / kN, j = i % kN;
    float* to = out + r * out_row + j * kLanes;
    Store(to, kAdd ? Load(to) + sums[r][j] : sums[r][j]);
  });
}

// out[r, :] = Σ_k a[r, k] b[k, :] for up to kRows rows, as few more as possible, and 1 or 2 vectors of
// columns; rows of b follow one another.
template <int kN, class Word>
inline void MultiplyFew(Matrix<Word> a, int64_t rows, const Word* b, int64_t depth, float* out,
                        int64_t out_row) {
  if (rows > kShortRows) {
    MultiplyBlock<kRows, kN, false>(a, b, kN * kLanes, depth, out, out_row);
  } else if (rows > kShortRows / 2) {
    MultiplyBlock<kShortRows, kN, false>(a, b, kN * kLanes, depth, out, out_row);
  } else {
    MultiplyBlock<kShortRows / 2, kN, false>(a, b, kN * kLanes, depth, out, out_row);
  }
}
template <class Word>
inline void MultiplyRows(Matrix<Word> a, int64_t rows, const Word* b, int64_t depth, float* out,
                         int64_t out_row, int64_t columns) {
  if (columns == kColumns) {
    MultiplyFew<kVectors>(a, rows, b, depth, out, out_row);
  } else {
    MultiplyFew<1>(a, rows, b, depth, out, out_row);
  }
}

}  // namespace invclr

#endif  // INVCLR_NATIVE_PRODUCT_H_
