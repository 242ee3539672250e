// Products of matrices whose one factor lies scattered in memory: pixels that outputs see.

#ifndef INVCLR_NATIVE_SEEN_H_
#define INVCLR_NATIVE_SEEN_H_

#include "product.h"

namespace invclr {

// Rows are multiplied in blocks; fewer than so many more than there are.
constexpr int kSpare = kRows * kVectors;

// f(size, row) for blocks of rows, as many as registers hold the sums of for kN vectors of columns,
// until all are done; the last block may have some more.
template <int kN, class F>
void ForRows(int64_t rows, F f) {
  constexpr int kThird = kSpare / kN / 3;
  int64_t row = 0;
  for (; rows - row > 2 * kThird; row += 3 * kThird)
    f(std::integral_constant<int, 3 * kThird>(), row);
  for (; rows - row > kThird; row += 2 * kThird)
    f(std::integral_constant<int, 2 * kThird>(), row);
  for (; rows > row; row += kThird) f(std::integral_constant<int, kThird>(), row);
}

// Words that are multiplied one after the other: `count` runs of `length` words, `step` apart.
struct Runs {
  int64_t count, step, length;
};

// out[r, :] = Σ_k a[rows[r] + place of the k-th word] b[k, :] for kR rows and kN vectors of columns.
// Rows of b and of out follow one another.
template <int kR, int kN, class Word>
inline void MultiplyRuns(const Word* a, const int64_t* rows, const Runs& runs, const Word* b,
                         float* out) {
  Vector sums[kR][kN];
  Repeat<kR * kN>([&](auto i) { sums[i / kN][i % kN] = Vector{}; });
  for (int64_t run = 0; run < runs.count; ++run, a += runs.step) {
    const Word* row[kR];
    Repeat<kR>([&](auto r) { row[r] = a + rows[r]; });
    for (int64_t k = 0; k < runs.length; ++k, b += kN * kLanes)
      Repeat<kR * kN>([&](auto i) {
        constexpr int r = i / kN, j = i % kN;
        sums[r][j] = MultiplyAdd(row[r][k], b + j * kLanes, sums[r][j]);
        asm("" : "+v"(sums[r][j]));  // as in MultiplyBlock
      });
  }
  Repeat<kR * kN>([&](auto i) { Store(out + i * kLanes, sums[i / kN][i % kN]); });
}

// out[r, :] += Σ_k a[places[k] + r] b[k, :] for kR rows and kN vectors of columns. Rows of b follow
// one another, rows of out are `out_row` apart.
template <int kR, int kN, class Word>
inline void MultiplyPlaces(const Word* a, const int64_t* places, int64_t depth, const Word* b,
                           float* out, int64_t out_row) {
  Vector sums[kR][kN];
  const auto at = [&](int i) { return out + i / kN * out_row + i % kN * kLanes; };
  Repeat<kR * kN>([&](auto i) { sums[i / kN][i % kN] = Load(at(i)); });
  for (int64_t k = 0; k < depth; ++k, b += kN * kLanes) {
    const Word* column = a + places[k];
    Repeat<kR * kN>([&](auto i) {
      constexpr int r = i / kN, j = i % kN;
      sums[r][j] = MultiplyAdd(column[r], b + j * kLanes, sums[r][j]);
      asm("" : "+v"(sums[r][j]));  // as in MultiplyBlock
    });
  }
  Repeat<kR * kN>([&](auto i) { Store(at(i), sums[i / kN][i % kN]); });
}

}  // namespace invclr

#endif  // INVCLR_NATIVE_SEEN_H_
