// The gradient of ⟨x * w, y⟩ in the kernel w, for every stride and size of kernel.
//
// It is a sum over outputs, for each entry of the kernel and each channel that it meets; `direct.h`
// has the convolution. A row of the kernel meets words that follow one another, and are rows of
// products with y. Some pictures at a time are copied with the zeros around them, by all workers; each
// then sums its rows of w over them.

#ifndef INVCLR_NATIVE_KERNEL_GRADIENT_H_
#define INVCLR_NATIVE_KERNEL_GRADIENT_H_

#include <vector>

#include "padded.h"
#include "seen.h"

namespace invclr::direct {

// Bytes of copies in the cache that cores share. Rows of w that a worker sums at a time come in blocks
// of kSpare, which holds whole blocks of rows of products; for each panel of outputs they read the
// same pixels, from its own cache, for which they must not be more than kMostBlocks.
constexpr int64_t kSharedCopies = 2 << 20, kMostBlocks = 4;

// Outputs of a row, from word `word` on; words hold neighbours.
template <class T>
void PackOutputs(const T* y, const Pictures& out, int64_t word,
                 const Panels<kColumns, Word<T>>& panels) {
  const int64_t words = CeilDivide(out.width, kPair<T>);
  for (int64_t q = 0; q < words * kPair<T>; ++q, y += out.channels)
    for (int64_t i = 0; i < panels.columns; i += kLanes)
      WriteHalf(panels.At(word + q / kPair<T>, i),
                q < out.width ? ReadSome(y + i, out.channels - i) : Vector{}, q % kPair<T>);
}

// Adds the products of some rows of w, from `sums` on, with a panel of outputs.
template <int kN, class Word>
void AddPlaces(const Word* seen, const std::vector<int64_t>& places, const Word* outputs,
               int64_t rows, float* sums, int64_t columns) {
  ForRows<kN>(rows, [&](auto size, int64_t r) {
    MultiplyPlaces<size, kN>(seen + r, places.data(), places.size(), outputs, sums + r * columns,
                             columns);
  });
}

template <class T, class Pool>
void KernelGradient(Pool& pool, const T* x, const T* y, int64_t size, int64_t stride,
                    const Pictures& in, const Pictures& out, T* w) {
  // One entry of the kernel sees each stride-th pixel, and only those are copied.
  const int64_t step = size == 1 ? stride : 1, distance = stride / step;
  const int64_t features = out.channels, columns = RoundUp(features, kLanes);
  const int64_t words = CeilDivide(out.width, kPair<T>);
  const int64_t run = size * in.channels, whole = RoundUp(run, kSpare);
  const int64_t width = distance * (words * kPair<T> - 1) + size;
  const int64_t row_size = width * in.channels;
  const int64_t bytes = (distance * row_size + words * columns) * sizeof(Word<T>);
  const Bands bands(out.count, out.height, kSharedCopies / std::max<int64_t>(bytes, 1), 1);
  const int64_t height = distance * (bands.rows_each - 1) + size;
  const int64_t depth = bands.pictures_each * bands.rows_each * words;
  // Products of a block's rows are summed even where there are fewer.
  const int64_t seen_size = bands.pictures_each * height * row_size;
  const Memory<Word<T>> seen = Allocate<Word<T>>(seen_size + whole - run);
  const Memory<Word<T>> outputs = Allocate<Word<T>>(depth * columns);
  const Memory<float> sums = Allocate<float>(size * whole * columns);
  std::memset(seen.get() + seen_size, 0, (whole - run) * sizeof(Word<T>));
  std::memset(sums.get(), 0, size * whole * columns * sizeof(float));
  const int64_t fair = size * whole / kSpare / (4 * Workers(pool));  // four parts for each
  const int64_t part_rows = kSpare * std::clamp<int64_t>(fair, 1, kMostBlocks);
  const int64_t parts = CeilDivide(run, part_rows);
  for (int64_t index = 0; index < bands.Count(); ++index) {
    const Band band = bands.At(index);
    const Frame frame{band.row * stride - size / 2, -(size / 2), distance * (band.rows - 1) + size,
                      width, step};
    const int64_t rows = band.pictures * band.rows, copied = band.pictures * frame.height;
    const Panels<kColumns, Word<T>> panels{outputs.get(), rows * words, columns};
    ParallelFor(pool, copied + rows, [&](int64_t i, int64_t) {
      if (i < copied) {
        CopyRowInPairs(x, in, band.picture + i / frame.height, frame, i % frame.height, distance,
                       seen.get() + i * row_size);
      } else {
        const int64_t row = i - copied;
        const T* from = y + out.Place(band.picture + row / band.rows, band.row + row % band.rows, 0);
        PackOutputs(from, out, row * words, panels);
      }
    });
    std::vector<int64_t> places;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t q = 0; q < words; ++q) {
        const int64_t top = row / band.rows * frame.height + row % band.rows * distance;
        places.push_back(top * row_size + q * kPair<T> * distance * in.channels);
      }
    ParallelFor(pool, size * parts, [&](int64_t part, int64_t) {
      const int64_t entry = part / parts, first = part % parts * part_rows;
      const int64_t count = std::min(part_rows, run - first);
      const Word<T>* from = seen.get() + entry * row_size + first;
      for (int64_t column = 0; column < columns; column += kColumns) {
        const Word<T>* panel = panels.At(0, column);
        float* to = sums.get() + (entry * whole + first) * columns + column;
        if (panels.Width(column) == kColumns) {
          AddPlaces<kVectors>(from, places, panel, count, to, columns);
        } else {
          AddPlaces<1>(from, places, panel, count, to, columns);
        }
      }
    });
  }
  ParallelFor(pool, size * run, [&](int64_t row, int64_t) {
    const float* from = sums.get() + (row / run * whole + row % run) * columns;
    for (int64_t feature = 0; feature < features; feature += kLanes)
      WriteSome(w + row * features + feature, Load(from + feature), features - feature);
  });
}

}  // namespace invclr::direct

#endif  // INVCLR_NATIVE_KERNEL_GRADIENT_H_
