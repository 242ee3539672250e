// Convolutions as products of matrices, for every stride and size of kernel.
//
// The pixels that an output sees are put side by side, one row an output, block by block in the
// cache of a core: y = rows · kernel. The gradient in the kernel is rowsᵀ · y. The gradient in the
// input has stride² kinds of pixels: each kind sees other entries of the kernel, and for each the
// gradient is such a product too.
// Images are [n, h, v, c], kernels [k, k, c, f] with k odd; (k-1)/2 zeros are padded on each side.

#ifndef INVCLR_NATIVE_DIRECT_H_
#define INVCLR_NATIVE_DIRECT_H_

#include <vector>

#include "pictures.h"
#include "product.h"

namespace invclr::direct {

// Bytes of a block of rows in the cache of a core; pixels of a block for the kernel's gradient, and
// its bytes in the cache that cores share.
constexpr int64_t kRowsCache = 1 << 18, kFewestPixels = 128, kPixelsCache = 2 << 20;

// What output (p, q) sees: `rows`×`columns` pixels from (step p + top, step q + left) on.
struct Window {
  int64_t step, top, left, rows, columns;

  int64_t Taps() const { return rows * columns; }
};

// Some pixels of pictures: (top + step p, left + step q) for all p and q.
struct Grid {
  Pictures pictures;
  int64_t step, top, left;

  int64_t Rows() const { return std::max<int64_t>(CeilDivide(pictures.height - top, step), 0); }
  int64_t Columns() const { return std::max<int64_t>(CeilDivide(pictures.width - left, step), 0); }
  int64_t Pixels() const { return pictures.count * Rows() * Columns(); }
  int64_t Place(int64_t pixel) const {
    const int64_t row = pixel / Columns() % Rows(), column = pixel % Columns();
    return pictures.Place(pixel / (Rows() * Columns()), top + step * row, left + step * column);
  }
};

// The first `count` of a vector's elements, the others zero.
template <class T>
Vector ReadSome(const T* from, int64_t count) {
  if (count >= kLanes) return Read(from);
  T elements[kLanes] = {};
  std::memcpy(elements, from, count * sizeof(T));
  return Read(elements);
}

template <class T>
void WriteSome(T* to, Vector vector, int64_t count) {
  if (count >= kLanes) return Write(to, vector);
  T elements[kLanes];
  Write(elements, vector);
  std::memcpy(to, elements, count * sizeof(T));
}

// What the grid's pixel sees, one pixel after the other; zeros outside of the picture.
template <class T>
void Gather(const T* x, const Pictures& in, const Window& window, const Grid& grid, int64_t pixel,
            T* to) {
  const int64_t picture = pixel / (grid.Rows() * grid.Columns());
  const int64_t y = pixel / grid.Columns() % grid.Rows() * window.step + window.top;
  const int64_t left = pixel % grid.Columns() * window.step + window.left;
  const int64_t length = window.columns * in.channels;
  const int64_t first = std::clamp<int64_t>(-left, 0, window.columns) * in.channels;
  const int64_t last = std::clamp<int64_t>(in.width - left, 0, window.columns) * in.channels;
  for (int64_t row = y; row < y + window.rows; ++row, to += length) {
    const bool inside = 0 <= row && row < in.height && first < last;
    const int64_t begin = inside ? first : length, end = inside ? last : length;
    std::fill(to, to + begin, T{});
    if (inside) {
      const T* from = x + in.Place(picture, row, left);
      std::copy(from + begin, from + end, to + begin);
    }
    std::fill(to + end, to + length, T{});
  }
}

// --- y = rows · kernel ---------------------------------------------------------------------------

// Words `word` of all columns of a kernel whose rows are those of the entries [c, f] of w, in this
// order. Columns are kept in blocks of kColumns, filled up with zeros to whole vectors.
template <class T>
void PackKernel(const T* w, const std::vector<int64_t>& entries, int64_t channels,
                int64_t features, int64_t word, int64_t depth, Word<T>* kernel) {
  const int64_t rows = entries.size() * channels, padded = RoundUp(features, kLanes);
  for (int64_t feature = 0; feature < features; feature += kLanes) {
    const int64_t block = feature / kColumns * kColumns;
    const int64_t width = std::min<int64_t>(kColumns, padded - block);
    Word<T>* to = kernel + depth * block + word * width + feature - block;
    for (int half = 0; half < kPair<T>; ++half) {
      const int64_t row = word * kPair<T> + half;
      if (row == rows) break;  // an odd number: the other half is zero
      const T* from = w + (entries[row / channels] * channels + row % channels) * features;
      WriteHalf(to, ReadSome(from + feature, features - feature), half);
    }
  }
}

// y[pixel, :] = rows[pixel, :] · kernel for up to kRows pixels.
template <class T>
void MultiplyPixels(const Word<T>* rows, int64_t row, int64_t depth, const Word<T>* kernel,
                    const Grid& grid, int64_t first, int64_t count, int64_t feature, T* y) {
  const int64_t features = grid.pictures.channels;
  const int64_t columns = std::min<int64_t>(kColumns, RoundUp(features, kLanes) - feature);
  float sums[kRows * kColumns];
  MultiplyRows(Matrix<Word<T>>{rows, row, 1}, count, kernel + depth * feature, depth, sums,
               kColumns, columns);
  for (int64_t r = 0; r < count; ++r) {
    T* to = y + grid.Place(first + r) + feature;
    for (int64_t j = 0; j < columns; j += kLanes)
      WriteSome(to + j, Load(sums + r * kColumns + j), features - feature - j);
  }
}

// The pixels of `grid` in y from those that they see of x, by the entries [c, f] of w.
template <class T, class Pool>
void Multiply(Pool& pool, const T* x, const Pictures& in, const Window& window, const T* w,
              const std::vector<int64_t>& entries, const Grid& grid, T* y) {
  const int64_t depth = CeilDivide(window.Taps() * in.channels, kPair<T>);
  const int64_t features = grid.pictures.channels, pixels = grid.Pixels();
  const Memory<Word<T>> kernel = Allocate<Word<T>>(depth * RoundUp(features, kLanes));
  ParallelFor(pool, depth, [&](int64_t word, int64_t) {
    PackKernel(w, entries, in.channels, features, word, depth, kernel.get());
  });

  const int64_t row = depth + 16;  // not a power of two
  const int64_t fit = kRowsCache / (row * sizeof(Word<T>));
  const int64_t most = CeilDivide(pixels, Workers(pool));
  const int64_t block = RoundUp(std::max<int64_t>(std::min(fit, most), 1), kRows);
  const int64_t blocks = CeilDivide(pixels, block), workers = std::min(Workers(pool), blocks);
  const Memory<Word<T>> memory = Allocate<Word<T>>(workers * block * row);
  std::memset(memory.get(), 0, workers * block * row * sizeof(Word<T>));
  ParallelFor(pool, blocks, [&](int64_t index, int64_t worker) {
    const int64_t first = index * block, count = std::min(block, pixels - first);
    Word<T>* rows = memory.get() + worker * block * row;
    for (int64_t r = 0; r < count; ++r)
      Gather(x, in, window, grid, first + r, reinterpret_cast<T*>(rows + r * row));
    for (int64_t feature = 0; feature < features; feature += kColumns)
      for (int64_t r = 0; r < count; r += kRows)
        MultiplyPixels(rows + r * row, row, depth, kernel.get(), grid, first + r,
                       std::min<int64_t>(kRows, count - r), feature, y);
  });
}

template <class T, class Pool>
void Convolve(Pool& pool, const T* x, const T* w, int64_t size, int64_t stride,
                    const Pictures& in, const Pictures& out, T* y) {
  std::vector<int64_t> entries(size * size);
  for (int64_t i = 0; i < size * size; ++i) entries[i] = i;
  const Window window{stride, -(size / 2), -(size / 2), size, size};
  Multiply(pool, x, in, window, w, entries, Grid{out, 1, 0, 0}, y);
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
  for (int64_t phase = 0; phase < stride * stride; ++phase) {
    const int64_t top = phase / stride, left = phase % stride;
    const Meets rows(top, size, stride), columns(left, size, stride);
    std::vector<int64_t> entries;
    for (int64_t i = 0; i < rows.count; ++i)
      for (int64_t j = 0; j < columns.count; ++j)
        entries.push_back((rows.last - i * stride) * size + columns.last - j * stride);
    const Window window{1, rows.first, columns.first, rows.count, columns.count};
    Multiply(pool, y, in, window, kernel.get(), entries, Grid{out, stride, top, left}, x);
  }
}

// --- The gradient of ⟨x * w, y⟩ in w -------------------------------------------------------------

// Writes elements into row `pixel` of a matrix whose words are along pixels.
template <int kWide, class T>
void PackPixel(const T* from, int64_t count, int64_t pixel, const Panels<kWide, Word<T>>& panels) {
  for (int64_t i = 0; i < RoundUp(count, kWide); i += kLanes)
    WriteHalf(panels.At(pixel / kPair<T>, i),
              i < count ? ReadSome(from + i, count - i) : Vector{}, pixel % kPair<T>);
}

template <class T, class Pool>
void KernelGradient(Pool& pool, const T* x, const T* y, int64_t size, int64_t stride,
                          const Pictures& in, const Pictures& out, T* w) {
  constexpr int64_t kPart = 8;  // pixels that a worker packs at a time; even
  const Window window{stride, -(size / 2), -(size / 2), size, size};
  const Grid grid{out, 1, 0, 0};
  const int64_t rows = window.Taps() * in.channels, features = out.channels;
  const int64_t pixels = grid.Pixels(), columns = RoundUp(features, kColumns);
  const int64_t padded = RoundUp(rows, kLanes);
  const int64_t fit = kPixelsCache / ((padded + columns) * sizeof(Word<T>) / kPair<T>);
  const int64_t block = std::min(RoundUp(std::max(fit, kFewestPixels), kPair<T>), pixels);
  const int64_t depth = CeilDivide(block, kPair<T>);
  const Memory<Word<T>> seen = Allocate<Word<T>>(depth * padded);
  const Memory<Word<T>> outputs = Allocate<Word<T>>(depth * columns);
  const Memory<float> sums = Allocate<float>(padded * columns);
  const Memory<T> buffers = Allocate<T>(Workers(pool) * padded);
  std::memset(sums.get(), 0, padded * columns * sizeof(float));
  const Panels<kLanes, Word<T>> a{seen.get(), depth};
  const Panels<kColumns, Word<T>> b{outputs.get(), depth};
  for (int64_t first = 0; first < pixels; first += block) {
    const int64_t count = std::min(block, pixels - first);
    ParallelFor(pool, CeilDivide(count, kPart), [&](int64_t part, int64_t worker) {
      T* buffer = buffers.get() + worker * padded;
      for (int64_t p = part * kPart; p < std::min((part + 1) * kPart, count); ++p) {
        Gather(x, in, window, grid, first + p, buffer);
        PackPixel(buffer, rows, p, a);
        PackPixel(y + (first + p) * features, features, p, b);
      }
    });
    ParallelFor(pool, padded / kLanes, [&](int64_t panel, int64_t) {
      for (int64_t column = 0; column < columns; column += kColumns)
        for (int64_t row = panel * kLanes; row < (panel + 1) * kLanes; row += kShortRows)
          MultiplyBlock<kShortRows, kVectors, true>(
              Matrix<Word<T>>{a.At(0, row), 1, kLanes}, b.At(0, column), kColumns,
              CeilDivide(count, kPair<T>), sums.get() + row * columns + column, columns);
    });
  }
  ParallelFor(pool, rows, [&](int64_t row, int64_t) {
    for (int64_t feature = 0; feature < features; feature += kLanes)
      WriteSome(w + row * features + feature, Load(sums.get() + row * columns + feature),
                features - feature);
  });
}

}  // namespace invclr::direct

#endif  // INVCLR_NATIVE_DIRECT_H_
