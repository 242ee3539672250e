// The gradient of ⟨x * w, y⟩ in the kernel w, for every stride and size of kernel.
//
// It is a sum over outputs, for each entry of the kernel and each channel that it meets; `direct.h`
// has the convolution. A row of the kernel meets words that follow one another, and are rows of
// products with y. Some pictures at a time are copied with the zeros around them, by all workers;
// each then sums its rows of w over them.

#ifndef INVCLR_NATIVE_KERNEL_GRADIENT_H_
#define INVCLR_NATIVE_KERNEL_GRADIENT_H_

#include <vector>

#include "padded.h"
#include "seen.h"

namespace invclr::direct {

// Bytes of copies in the cache that cores share. A worker sums kSpare rows of w at a time, whole blocks
// of products, or so many times more that the pixels which they read, for each panel of outputs
// again, stay in its own cache.
constexpr int64_t kSharedCopies = 2 << 20, kMostBlocks = 4;

// How copies and sums lie in memory.
struct Layout {
  int64_t step, distance;  // between the pixels copied, and between those of neighbouring outputs
  int64_t run, whole;      // rows of w for a row of the kernel, and with those to spare
  int64_t columns;         // features in whole vectors
  int64_t words;           // of a row of outputs
  int64_t width, row;      // pixels and words of a row of a copy

  Layout(int64_t size, int64_t stride, int64_t pair, const Pictures& in, const Pictures& out)
      // One entry of the kernel sees each stride-th pixel, and only those are copied.
      : step(size == 1 ? stride : 1),
        distance(stride / step),
        run(size * in.channels),
        whole(RoundUp(run, kSpare)),
        columns(RoundUp(out.channels, kLanes)),
        words(CeilDivide(out.width, pair)),
        width(distance * (words * pair - 1) + size),
        row(width * in.channels) {}
};

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

// Where the pixels are that the words of outputs see first.
template <class T>
std::vector<int64_t> Places(const Layout& layout, const Frame& frame, const Band& band,
                            int64_t channels) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < band.pictures * band.rows; ++i) {
    const int64_t row = i / band.rows * frame.height + i % band.rows * layout.distance;
    for (int64_t q = 0; q < layout.words; ++q)
      places.push_back(row * layout.row + q * kPair<T> * layout.distance * channels);
  }
  return places;
}

template <class T, class Pool>
void CopyBand(Pool& pool, const T* x, const T* y, const Layout& layout, const Frame& frame,
              const Band& band, const Pictures& in, const Pictures& out, Word<T>* seen,
              const Panels<kColumns, Word<T>>& outputs) {
  const int64_t copied = band.pictures * frame.height, rows = band.pictures * band.rows;
  ParallelFor(pool, copied + rows, [&](int64_t i, int64_t) {
    if (i < copied) {
      CopyRowInPairs(x, in, band.picture + i / frame.height, frame, i % frame.height,
                     layout.distance, seen + i * layout.row);
    } else {
      const int64_t row = i - copied, picture = band.picture + row / band.rows;
      PackOutputs(y + out.Place(picture, band.row + row % band.rows, 0), out, row * layout.words,
                  outputs);
    }
  });
}

// Adds what a band contributes to the rows of w.
template <class Word, class Pool>
void AddBand(Pool& pool, const Layout& layout, int64_t size, const Word* seen,
             const std::vector<int64_t>& places, const Panels<kColumns, Word>& outputs,
             float* sums) {
  const int64_t fair = size * layout.whole / kSpare / (4 * Workers(pool));  // four parts for each
  const int64_t most = kSpare * std::clamp<int64_t>(fair, 1, kMostBlocks);
  const int64_t parts = CeilDivide(layout.run, most), columns = layout.columns;
  ParallelFor(pool, size * parts, [&](int64_t part, int64_t) {
    const int64_t entry = part / parts, first = part % parts * most;
    const int64_t rows = std::min(most, layout.run - first);
    const Word* from = seen + entry * layout.row + first;
    for (int64_t column = 0; column < columns; column += kColumns) {
      const Word* panel = outputs.At(0, column);
      float* to = sums + (entry * layout.whole + first) * columns + column;
      if (outputs.Width(column) == kColumns) {
        AddPlaces<kVectors>(from, places, panel, rows, to, columns);
      } else {
        AddPlaces<1>(from, places, panel, rows, to, columns);
      }
    }
  });
}

template <class T, class Pool>
void KernelGradient(Pool& pool, const T* x, const T* y, int64_t size, int64_t stride,
                    const Pictures& in, const Pictures& out, T* w) {
  const Layout layout(size, stride, kPair<T>, in, out);
  const auto height = [&](int64_t rows) { return layout.distance * (rows - 1) + size; };
  const int64_t row = layout.distance * layout.row + layout.words * layout.columns;
  const int64_t bytes = std::max<int64_t>(row * sizeof(Word<T>), 1);
  const Bands bands(out.count, out.height, kSharedCopies / bytes, 1);
  const int64_t rows = bands.pictures_each * bands.rows_each, columns = layout.columns;
  const int64_t seen_size = bands.pictures_each * height(bands.rows_each) * layout.row;
  const int64_t spare = layout.whole - layout.run;  // read too, where there are no such rows of w
  const Memory<Word<T>> seen = Allocate<Word<T>>(seen_size + spare);
  const Memory<Word<T>> outputs = Allocate<Word<T>>(rows * layout.words * columns);
  const Memory<float> sums = Allocate<float>(size * layout.whole * columns);
  std::memset(seen.get() + seen_size, 0, spare * sizeof(Word<T>));
  std::memset(sums.get(), 0, size * layout.whole * columns * sizeof(float));
  for (int64_t index = 0; index < bands.Count(); ++index) {
    const Band band = bands.At(index);
    const Frame frame{band.row * stride - size / 2, -(size / 2), height(band.rows), layout.width,
                      layout.step};
    const std::vector<int64_t> places = Places<T>(layout, frame, band, in.channels);
    const Panels<kColumns, Word<T>> panels{outputs.get(), static_cast<int64_t>(places.size()),
                                           columns};
    CopyBand(pool, x, y, layout, frame, band, in, out, seen.get(), panels);
    AddBand(pool, layout, size, seen.get(), places, panels, sums.get());
  }
  ParallelFor(pool, size * layout.run, [&](int64_t row, int64_t) {
    const int64_t from = (row / layout.run * layout.whole + row % layout.run) * columns;
    for (int64_t feature = 0; feature < out.channels; feature += kLanes)
      WriteSome(w + row * out.channels + feature, Load(sums.get() + from + feature),
                out.channels - feature);
  });
}

}  // namespace invclr::direct

#endif  // INVCLR_NATIVE_KERNEL_GRADIENT_H_
