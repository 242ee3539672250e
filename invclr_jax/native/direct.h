// Convolutions as products of matrices, for every stride and size of kernel.
//
// A row of the kernel meets pixels that follow one another, so that an output is a sum over runs of
// words. Products read them where they are: in a padded copy of some pictures in the cache of a core,
// or in the pictures, if no output sees beyond their border. The gradient in the input has stride²
// kinds of pixels. Each kind sees other entries of the kernel, and for each the gradient is such a
// product too, of the same copy.
// Images are [n, h, v, c], kernels [k, k, c, f] with k odd; (k-1)/2 zeros are padded on each side.

#ifndef INVCLR_NATIVE_DIRECT_H_
#define INVCLR_NATIVE_DIRECT_H_

#include <vector>

#include "padded.h"
#include "seen.h"

namespace invclr::direct {

// Bytes of a padded copy in the cache of a core; most rows of a product, which bounds its sums.
constexpr int64_t kCopyCache = 3 << 17, kMostRows = 512;

// What output (p, q) sees: `rows`×`columns` pixels from (step p + top, step q + left) on.
struct Window {
  int64_t step, top, left, rows, columns;
};

// Some pixels of pictures: (top + step p, left + step q) for all p and q.
struct Grid {
  Pictures pictures;
  int64_t step, top, left;

  int64_t Rows() const { return std::max<int64_t>(CeilDivide(pictures.height - top, step), 0); }
  int64_t Columns() const { return std::max<int64_t>(CeilDivide(pictures.width - left, step), 0); }
  int64_t Place(int64_t picture, int64_t p, int64_t q) const {
    return pictures.Place(picture, top + step * p, left + step * q);
  }
};

// The pixels of `grid` are those that they see, times the `entries` [c, f] of a kernel.
template <class T>
struct Product {
  Window window;
  Grid grid;
  std::vector<int64_t> entries;
  Memory<Word<T>> kernel;
};

// Word `word` of all columns of a kernel whose rows are those of the entries [c, f] of w, in this
// order. Columns are kept in panels of kColumns, filled up with zeros to whole vectors.
template <class T>
void PackKernel(const T* w, const std::vector<int64_t>& entries, int64_t channels,
                int64_t features, int64_t word, Word<T>* kernel) {
  const int64_t words = CeilDivide(channels, kPair<T>), depth = entries.size() * words;
  const int64_t padded = RoundUp(features, kLanes);
  for (int64_t feature = 0; feature < features; feature += kLanes) {
    const int64_t panel = feature / kColumns * kColumns;
    const int64_t width = std::min<int64_t>(kColumns, padded - panel);
    Word<T>* to = kernel + depth * panel + word * width + feature - panel;
    for (int half = 0; half < kPair<T>; ++half) {
      const int64_t channel = word % words * kPair<T> + half;
      if (channel == channels) break;  // an odd number: the other half is zero
      const T* from = w + (entries[word / words] * channels + channel) * features;
      WriteHalf(to, ReadSome(from + feature, features - feature), half);
    }
  }
}

// Multiplies what `count` rows see with a panel of a kernel.
template <int kN, class Word>
void MultiplySeen(const Word* seen, const std::vector<int64_t>& rows, int64_t count,
                  const Runs& runs, const Word* kernel, float* sums) {
  ForRows<kN>(count, [&](auto size, int64_t r) {
    MultiplyRuns<size, kN>(seen, rows.data() + r, runs, kernel, sums + r * kN * kLanes);
  });
}

// Pictures `in`, of which `seen` holds a frame each for some, one after the other.
template <class T>
struct Seen {
  const Word<T>* data;
  Frame frame;
  int64_t words;  // of a pixel
};

// The pixels of a product in a band from what they see.
template <class T>
void MultiplyBand(const Seen<T>& seen, const Product<T>& product, const Band& band, float* sums,
                  T* y) {
  const Window& window = product.window;
  const Grid& grid = product.grid;
  const int64_t width = seen.frame.width * seen.words, columns = grid.Columns();
  const int64_t last = std::min(band.row + band.rows, grid.Rows());
  std::vector<int64_t> rows, places;
  for (int64_t picture = 0; picture < band.pictures; ++picture)
    for (int64_t p = band.row; p < last; ++p)
      for (int64_t q = 0; q < columns; ++q) {
        const int64_t top = window.step * (p - band.row), left = window.step * q;
        rows.push_back((picture * seen.frame.height + top) * width + left * seen.words);
        places.push_back(grid.Place(band.picture + picture, p, q));
      }
  const int64_t count = places.size(), features = grid.pictures.channels;
  if (count == 0) return;
  rows.resize(RoundUp(count, kSpare), rows.back());
  const Runs runs{window.rows, width, window.columns * seen.words};
  const int64_t depth = runs.count * runs.length;
  const int64_t corner = (window.top + band.row * window.step - seen.frame.top) * width +
                         (window.left - seen.frame.left) * seen.words;
  if (depth == 0) {
    for (const int64_t place : places) std::fill_n(y + place, features, T{});
    return;
  }
  for (int64_t feature = 0; feature < features; feature += kColumns) {
    const int64_t panel = std::min<int64_t>(kColumns, RoundUp(features, kLanes) - feature);
    const Word<T>* kernel = product.kernel.get() + depth * feature;
    if (panel == kColumns) {
      MultiplySeen<kVectors>(seen.data + corner, rows, count, runs, kernel, sums);
    } else {
      MultiplySeen<1>(seen.data + corner, rows, count, runs, kernel, sums);
    }
    for (int64_t r = 0; r < count; ++r)
      for (int64_t j = 0; j < panel; j += kLanes)
        WriteSome(y + places[r] + feature + j, Load(sums + r * panel + j), features - feature - j);
  }
}

// What the products' pixels in a band see, all in one frame; their windows have the same step.
template <class T>
Frame FrameOf(const std::vector<Product<T>>& products, const Band& band) {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  for (const auto& [window, grid, entries, kernel] : products) {
    if (entries.empty()) continue;
    top = std::min(top, window.top), left = std::min(left, window.left);
    bottom = std::max(bottom, window.step * (band.rows - 1) + window.top + window.rows);
    right = std::max(right, window.step * (grid.Columns() - 1) + window.left + window.columns);
  }
  return {top + products[0].window.step * band.row, left, bottom - top, right - left, 1};
}

// The pixels of all products from those that they see of x.
template <class T, class Pool>
void Multiply(Pool& pool, const T* x, const Pictures& in, const T* w,
              std::vector<Product<T>> products, T* y) {
  const int64_t words = CeilDivide(in.channels, kPair<T>);
  for (Product<T>& product : products) {
    const int64_t features = product.grid.pictures.channels, depth = product.entries.size() * words;
    product.kernel = Allocate<Word<T>>(depth * RoundUp(features, kLanes));
    ParallelFor(pool, depth, [&](int64_t word, int64_t) {
      PackKernel(w, product.entries, in.channels, features, word, product.kernel.get());
    });
  }

  const Grid& grid = products[0].grid;  // none has more rows or columns
  const int64_t columns = std::max<int64_t>(grid.Columns(), 1);
  const int64_t width = FrameOf(products, {0, 1, 0, 1}).width;
  const int64_t row = products[0].window.step * width * words * sizeof(Word<T>);
  const int64_t most = std::min(kCopyCache / std::max<int64_t>(row, 1), kMostRows / columns);
  const Bands bands(in.count, grid.Rows(), most, Workers(pool));
  const Band whole{0, bands.pictures_each, 0, bands.rows_each};
  const bool within = in.channels % kPair<T> == 0 &&
                      FrameOf(products, {0, 1, 0, bands.rows}).Within(in);
  const int64_t size = within ? 0 : whole.pictures * FrameOf(products, whole).Pixels() * words;
  const int64_t sums_size = (whole.pictures * whole.rows * columns + kSpare) * kColumns;
  const int64_t workers = std::min(Workers(pool), bands.Count());
  const Memory<Word<T>> copies = Allocate<Word<T>>(workers * size);
  const Memory<float> sums = Allocate<float>(workers * sums_size);
  ParallelFor(pool, bands.Count(), [&](int64_t index, int64_t worker) {
    const Band band = bands.At(index);
    Word<T>* copy = copies.get() + worker * size;
    Seen<T> seen{copy, FrameOf(products, band), words};
    if (within) {
      const T* first = x + in.Place(band.picture, 0, 0);
      seen = {reinterpret_cast<const Word<T>*>(first), {0, 0, in.height, in.width, 1}, words};
    } else {
      for (int64_t i = 0; i < band.pictures * seen.frame.height; ++i)
        CopyRow(x, in, band.picture + i / seen.frame.height, seen.frame, i % seen.frame.height,
                copy + i * seen.frame.width * words);
    }
    for (const Product<T>& product : products)
      MultiplyBand(seen, product, band, sums.get() + worker * sums_size, y);
  });
}

template <class T, class Pool>
void Convolve(Pool& pool, const T* x, const T* w, int64_t size, int64_t stride, const Pictures& in,
              const Pictures& out, T* y) {
  std::vector<int64_t> entries(size * size);
  for (int64_t i = 0; i < size * size; ++i) entries[i] = i;
  std::vector<Product<T>> products;
  products.push_back({{stride, -(size / 2), -(size / 2), size, size}, {out, 1, 0, 0}, entries, {}});
  Multiply(pool, x, in, w, std::move(products), y);
}

// --- The gradient of ⟨x * w, y⟩ in x -------------------------------------------------------------

// The rows of a kernel that a row `phase` + stride i of the input meets: the last of them, and
// their number; the others are `stride` apart. Row `last` meets output row i + first.
struct Meets {
  int64_t first, last, count;

  Meets(int64_t phase, int64_t size, int64_t stride) {
    const int64_t shifted = phase + size / 2, least = shifted % stride;
    count = least < size ? (size - 1 - least) / stride + 1 : 0;
    last = least + (count - 1) * stride;
    first = (shifted - last) / stride;
  }
};

template <class T, class Pool>
void InputGradient(Pool& pool, const T* y, const T* w, int64_t size, int64_t stride,
                   const Pictures& in, const Pictures& out, T* x) {
  const Memory<T> kernel = Transposed(pool, w, size * size, out.channels, in.channels);
  std::vector<Product<T>> products;
  for (int64_t phase = 0; phase < stride * stride; ++phase) {
    const int64_t top = phase / stride, left = phase % stride;
    const Meets rows(top, size, stride), columns(left, size, stride);
    std::vector<int64_t> entries;
    for (int64_t i = 0; i < rows.count; ++i)
      for (int64_t j = 0; j < columns.count; ++j)
        entries.push_back((rows.last - i * stride) * size + columns.last - j * stride);
    const Window window{1, rows.first, columns.first, rows.count, columns.count};
    products.push_back({window, {out, stride, top, left}, std::move(entries), {}});
  }
  Multiply(pool, y, in, kernel.get(), std::move(products), x);
}

}  // namespace invclr::direct

#endif  // INVCLR_NATIVE_DIRECT_H_
