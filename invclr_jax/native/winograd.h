// 3×3 convolutions with stride 1 by Winograd's products.
//
// A tile of 4×4 outputs takes 36 products instead of 144. Summed over channels they are 36 products
// of matrices, [tiles, c] by [c, f]; for the gradient in the kernel [c, tiles] by [tiles, f].
// Images are [n, h, v, c], kernels [3, 3, c, f]; one zero is padded on each side, and the numbers
// of channels are multiples of 16. `models/forms.py` checks all that.

#ifndef INVCLR_NATIVE_WINOGRAD_H_
#define INVCLR_NATIVE_WINOGRAD_H_

#include "pictures.h"
#include "product.h"
#include "transforms.h"

namespace invclr::winograd {

// Tiles of a block stay in the cache of a core from the inputs' transformation to the outputs'.
// For the gradient in the kernel a block stays in the cache that cores share, but is not small: for
// each block all sums are read and written once.
constexpr int64_t kOwnCache = 3 << 18, kSharedCache = 4 << 20, kFewestTiles = 128,
                  kWholeCache = 16 << 20;
// Transformed tiles, and transformed kernels, of a convolution feature by feature.
constexpr int64_t kTilesCache = 12 << 20, kLargeKernels = 12 << 20;

// A matrix [rows, columns] for each of the 36 products. Their distance is not a power of two: they
// would compete for the same places in the cache.
template <class Word>
struct Planes {
  Word* data;
  int64_t rows, columns;

  static int64_t Size(int64_t rows, int64_t columns) { return kProducts * Stride(rows, columns); }
  static int64_t Stride(int64_t rows, int64_t columns) { return rows * columns + 16; }
  Word* At(int64_t product, int64_t row, int64_t column) const {
    return data + product * Stride(rows, columns) + row * columns + column;
  }
};

inline void ReadProducts(const Planes<float>& planes, int64_t row, int64_t column,
                         Vector to[kWindow][kWindow]) {
  for (int k = 0; k < kProducts; ++k)
    to[k / kWindow][k % kWindow] = Load(planes.At(k, row, column));
}

// Pictures in tiles, row by row. Those at the right and lower border may reach beyond it.
struct Tiled : Pictures {
  explicit Tiled(const Pictures& pictures) : Pictures(pictures) {}

  int64_t Rows() const { return CeilDivide(height, kTile); }
  int64_t Columns() const { return CeilDivide(width, kTile); }
  int64_t Tiles() const { return count * Rows() * Columns(); }
  int64_t Picture(int64_t tile) const { return tile / (Rows() * Columns()); }
  int64_t Top(int64_t tile) const { return tile / Columns() % Rows() * kTile; }
  int64_t Left(int64_t tile) const { return tile % Columns() * kTile; }
};

// kSide×kSide pixels of a tile, from `border` before its corner on; zeros outside of the picture.
template <int kSide, int kBorder, class T>
inline void ReadTile(const T* data, const Tiled& pictures, int64_t tile, int64_t channel,
                     Vector to[kSide][kSide]) {
  const int64_t top = pictures.Top(tile) - kBorder, left = pictures.Left(tile) - kBorder;
  const int64_t corner = pictures.Place(pictures.Picture(tile), top, left) + channel;
  for (int64_t i = 0; i < kSide; ++i)
    for (int64_t j = 0; j < kSide; ++j) {
      const int64_t pixel = corner + (i * pictures.width + j) * pictures.channels;
      to[i][j] = pictures.Holds(top + i, left + j) ? Read(data + pixel) : Vector{};
    }
}

template <class T>
inline void WriteTile(const Vector from[kTile][kTile], const Tiled& pictures, int64_t tile,
                      int64_t channel, T* data) {
  const int64_t top = pictures.Top(tile), left = pictures.Left(tile);
  T* to = data + pictures.Place(pictures.Picture(tile), top, left) + channel;
  for (int64_t i = 0; i < std::min<int64_t>(kTile, pictures.height - top); ++i)
    for (int64_t j = 0; j < std::min<int64_t>(kTile, pictures.width - left); ++j)
      Write(to + (i * pictures.width + j) * pictures.channels, from[i][j]);
}

// --- y = x * w -----------------------------------------------------------------------------------

// A word's row of the products' kernels [c, f], for up to kColumns features from `first` on.
template <class T>
void TransformKernel(const T* w, int64_t channels, int64_t features, bool flipped, int64_t word,
                     int64_t first, Word<T>* to, int64_t distance) {
  Vector kernel[kKernel][kKernel], products[kWindow][kWindow];
  const int64_t last = std::min<int64_t>(first + kColumns, features);
  for (int64_t feature = first; feature < last; feature += kLanes, to += kLanes)
    for (int half = 0; half < kPair<T>; ++half) {
      const T* from = w + (word * kPair<T> + half) * features + feature;
      for (int i = 0; i < kKernel * kKernel; ++i) {
        const int entry = flipped ? kKernel * kKernel - 1 - i : i;
        kernel[i / kKernel][i % kKernel] = Read(from + entry * channels * features);
      }
      BothWays<kKernel, kWindow, Kernels>(kernel, products);
      for (int k = 0; k < kProducts; ++k)
        WriteHalf(to + k * distance, products[k / kWindow][k % kWindow], half);
    }
}

// Transforms `count` tiles, from `first` on, into the rows of `planes` from `row` on; words are along
// channels.
template <class T>
void TransformInputs(const T* x, const Tiled& pictures, int64_t first, int64_t count,
                     const Planes<Word<T>>& planes, int64_t row = 0) {
  Vector tile[kWindow][kWindow], products[kWindow][kWindow];
  for (int64_t t = 0; t < count; ++t)
    for (int64_t channel = 0; channel < pictures.channels; channel += kLanes) {
      ReadTile<kWindow, 1>(x, pictures, first + t, channel, tile);
      BothWays<kWindow, kWindow, Inputs>(tile, products);
      for (int k = 0; k < kProducts; ++k)
        Write(reinterpret_cast<T*>(planes.At(k, row + t, 0)) + channel,
              products[k / kWindow][k % kWindow]);
    }
}

// y[t, :] = Σ_c x[t, c] kernel[c, :] for one of the 36 products and up to kColumns features.
template <class Word>
void MultiplyTiles(const Planes<Word>& x, const Word* kernel, int64_t tiles, int64_t columns, int k,
                   float* y, int64_t y_row) {
  for (int64_t tile = 0; tile < tiles; tile += kRows)
    MultiplyRows(Matrix<Word>{x.At(k, tile, 0), x.columns, 1}, tiles - tile, kernel, x.columns,
                 y + tile * y_row, y_row, columns);
}

// Tiles from `first` on of y's channels from `channel` on, from all columns of `planes`.
template <class T>
void TransformOutputs(const Planes<float>& planes, const Tiled& pictures, int64_t first,
                      int64_t count, int64_t channel, T* y) {
  Vector products[kWindow][kWindow], tile[kTile][kTile];
  for (int64_t t = 0; t < count; ++t)
    for (int64_t column = 0; column < planes.columns; column += kLanes) {
      ReadProducts(planes, t, column, products);
      BothWays<kWindow, kTile, Outputs>(products, tile);
      WriteTile(tile, pictures, first + t, channel + column, y);
    }
}

// Tile by tile: all kernels are transformed first, and read for each block of tiles.
template <class T, class Pool>
void ConvolveTiles(Pool& pool, const T* x, const T* w, bool flipped, const Tiled& in,
                   const Tiled& out, T* y) {
  const int64_t tiles = in.Tiles(), depth = in.channels / kPair<T>, size = depth * out.channels;
  const Memory<Word<T>> kernels = Allocate<Word<T>>(kProducts * size);
  ParallelFor(pool, depth, [&](int64_t word, int64_t) {
    for (int64_t feature = 0; feature < out.channels; feature += kColumns) {
      const int64_t columns = std::min<int64_t>(kColumns, out.channels - feature);
      TransformKernel(w, in.channels, out.channels, flipped, word, feature,
                      kernels.get() + depth * feature + word * columns, size);
    }
  });

  const int64_t bytes = kProducts * (depth + out.channels) * sizeof(float);
  const int64_t most = CeilDivide(tiles, Workers(pool));  // some for each worker
  const int64_t fit = std::max<int64_t>(std::min(kOwnCache / bytes, most), 1);
  const int64_t block = RoundUp(fit, kRows), blocks = CeilDivide(tiles, block);
  const int64_t in_size = Planes<Word<T>>::Size(block, depth);
  const int64_t out_size = Planes<float>::Size(block, out.channels);
  const int64_t workers = std::min(Workers(pool), blocks);
  const Memory<Word<T>> inputs = Allocate<Word<T>>(workers * in_size);
  const Memory<float> outputs = Allocate<float>(workers * out_size);
  // Rows beyond the last tile are read too.
  std::memset(inputs.get(), 0, workers * in_size * sizeof(Word<T>));
  ParallelFor(pool, blocks, [&](int64_t index, int64_t worker) {
    const int64_t first = index * block, count = std::min(block, tiles - first);
    const Planes<Word<T>> ins{inputs.get() + worker * in_size, block, depth};
    const Planes<float> outs{outputs.get() + worker * out_size, block, out.channels};
    TransformInputs(x, in, first, count, ins);
    for (int k = 0; k < kProducts; ++k)
      for (int64_t feature = 0; feature < out.channels; feature += kColumns)
        MultiplyTiles(ins, kernels.get() + k * size + depth * feature, count,
                      std::min<int64_t>(kColumns, out.channels - feature), k,
                      outs.At(k, 0, feature), out.channels);
    TransformOutputs(outs, out, first, count, 0, y);
  });
}

// Feature by feature: all tiles are transformed first. Kernels, which are large where tiles are few,
// never leave the cache of a core.
template <class T, class Pool>
void ConvolveFeatures(Pool& pool, const T* x, const T* w, bool flipped, const Tiled& in,
                      const Tiled& out, T* y) {
  constexpr int64_t kPart = 8;  // tiles that a worker transforms at a time
  const int64_t tiles = in.Tiles(), depth = in.channels / kPair<T>, rows = RoundUp(tiles, kRows);
  const int64_t in_size = Planes<Word<T>>::Size(rows, depth);
  const Memory<Word<T>> inputs = Allocate<Word<T>>(in_size);
  std::memset(inputs.get(), 0, in_size * sizeof(Word<T>));
  const Planes<Word<T>> ins{inputs.get(), rows, depth};
  ParallelFor(pool, CeilDivide(tiles, kPart), [&](int64_t part, int64_t) {
    const int64_t first = part * kPart;
    TransformInputs(x, in, first, std::min(kPart, tiles - first), ins, first);
  });

  const int64_t kernel_size = depth * kColumns + 16, out_size = Planes<float>::Size(rows, kColumns);
  const Memory<Word<T>> kernels = Allocate<Word<T>>(Workers(pool) * kProducts * kernel_size);
  const Memory<float> outputs = Allocate<float>(Workers(pool) * out_size);
  ParallelFor(pool, CeilDivide(out.channels, kColumns), [&](int64_t block, int64_t worker) {
    const int64_t feature = block * kColumns;
    const int64_t columns = std::min<int64_t>(kColumns, out.channels - feature);
    Word<T>* kernel = kernels.get() + worker * kProducts * kernel_size;
    for (int64_t word = 0; word < depth; ++word)
      TransformKernel(w, in.channels, out.channels, flipped, word, feature,
                      kernel + word * columns, kernel_size);
    const Planes<float> outs{outputs.get() + worker * out_size, rows, columns};
    for (int k = 0; k < kProducts; ++k)
      MultiplyTiles(ins, kernel + k * kernel_size, tiles, columns, k, outs.At(k, 0, 0), columns);
    TransformOutputs(outs, out, 0, tiles, feature, y);
  });
}

// Convolves with w, or with w upside down and left to right.
template <class T, class Pool>
void Convolve(Pool& pool, const T* x, const T* w, bool flipped, const Pictures& from,
              const Pictures& to, T* y) {
  const Tiled in(from), out(to);
  const bool few = kProducts * in.Tiles() * in.channels * sizeof(T) <= kTilesCache;
  const bool large = kProducts * in.channels * out.channels * sizeof(T) > kLargeKernels;
  if (few && large && out.channels >= Workers(pool) * kColumns) {
    ConvolveFeatures(pool, x, w, flipped, in, out, y);
  } else {
    ConvolveTiles(pool, x, w, flipped, in, out, y);
  }
}

// --- The gradient of ⟨x * w, y⟩ in x -------------------------------------------------------------

template <class T, class Pool>
void InputGradient(Pool& pool, const T* y, const T* w, const Pictures& from, const Pictures& to,
                   T* x) {
  const Memory<T> kernel = Transposed(pool, w, kKernel * kKernel, to.channels, from.channels);
  Convolve(pool, y, kernel.get(), /*flipped=*/true, from, to, x);
}

// --- The gradient of ⟨x * w, y⟩ in w -------------------------------------------------------------

// Transforms tiles, `count` of a block's from `first` on, the block's first being tile `start`, into
// a matrix [tiles, channels] for each of the 36 products; words are along tiles.
template <int kSide, int kBorder, void (*Line)(const Vector*, Vector*), int kWide, class T>
void TransformTiles(const T* data, const Tiled& pictures, int64_t start, int64_t first,
                    int64_t count, const Panels<kWide, Word<T>>& to, int64_t distance) {
  Vector tile[kSide][kSide], products[kWindow][kWindow];
  for (int64_t t = first; t < first + count; ++t)
    for (int64_t channel = 0; channel < pictures.channels; channel += kLanes) {
      ReadTile<kSide, kBorder>(data, pictures, start + t, channel, tile);
      BothWays<kSide, kWindow, Line>(tile, products);
      Word<T>* words = to.At(t / kPair<T>, channel);
      for (int k = 0; k < kProducts; ++k)
        WriteHalf(words + k * distance, products[k / kWindow][k % kWindow], t % kPair<T>);
    }
}

// sums[c, f] = Σ_t x[t, c] y[t, f], or that added to them, for kLanes channels, kR of them at a time,
// and kN vectors of features.
template <int kR, int kN, bool kAdd, class Word>
void MultiplyPanel(const Panels<kLanes, Word>& x, const Word* y, int64_t channel, int64_t depth,
                   float* sums, int64_t features) {
  for (int64_t row = 0; row < kLanes; row += kR)
    MultiplyBlock<kR, kN, kAdd>(Matrix<Word>{x.At(0, channel + row), 1, kLanes}, y, kN * kLanes,
                                depth, sums + row * features, features);
}

template <bool kAdd, class Word>
void MultiplyChannels(const Panels<kLanes, Word>& x, const Panels<kColumns, Word>& y,
                      int64_t channel, int64_t depth, float* sums) {
  for (int64_t feature = 0; feature < y.columns; feature += kColumns) {
    const Word* panel = y.At(0, feature);
    if (y.Width(feature) == kColumns) {
      MultiplyPanel<kShortRows, kVectors, kAdd>(x, panel, channel, depth, sums + feature,
                                                y.columns);
    } else {
      MultiplyPanel<kLanes, 1, kAdd>(x, panel, channel, depth, sums + feature, y.columns);
    }
  }
}

// Rows of w, kLanes of them from `channel` on, from their sums.
template <class T>
void TransformGradient(const Planes<float>& planes, const Pictures& in, const Pictures& out,
                       int64_t channel, T* w) {
  Vector products[kWindow][kWindow], kernel[kKernel][kKernel];
  for (int64_t row = 0; row < kLanes; ++row)
    for (int64_t feature = 0; feature < out.channels; feature += kLanes) {
      ReadProducts(planes, row, feature, products);
      BothWays<kWindow, kKernel, KernelCotangents>(products, kernel);
      for (int i = 0; i < kKernel * kKernel; ++i)
        Write(w + (i * in.channels + channel + row) * out.channels + feature,
              kernel[i / kKernel][i % kKernel]);
    }
}

template <class T, class Pool>
void KernelGradient(Pool& pool, const T* x, const T* y, const Pictures& from, const Pictures& to,
                    T* w) {
  constexpr int64_t kPart = 8;  // tiles that a worker transforms at a time; even
  const Tiled in(from), out(to);
  const int64_t tiles = in.Tiles(), columns = out.channels;
  const int64_t bytes = kProducts * (in.channels + columns) * sizeof(T);
  const bool once = tiles * bytes <= kWholeCache;
  const int64_t most = RoundUp(std::max(kSharedCache / bytes, kFewestTiles), kPair<T>);
  const int64_t block = once ? tiles : std::min(most, tiles);
  const int64_t depth = CeilDivide(block, kPair<T>);
  // Distances are no powers of two: matrices would compete for the same places in the cache.
  const int64_t in_size = depth * in.channels + 16, out_size = depth * columns + 16;
  const Memory<Word<T>> inputs = Allocate<Word<T>>(kProducts * in_size);
  const Memory<Word<T>> outputs = Allocate<Word<T>>(kProducts * out_size);
  // The sums of kLanes channels each; where all tiles are one block, they are not kept.
  const int64_t size = Planes<float>::Size(kLanes, columns), parts = in.channels / kLanes;
  const Memory<float> sums = Allocate<float>((once ? Workers(pool) : parts) * size);
  for (int64_t first = 0; first < std::max<int64_t>(tiles, 1); first += block) {
    const int64_t count = std::min(block, tiles - first);
    ParallelFor(pool, CeilDivide(count, kPart), [&](int64_t part, int64_t) {
      const int64_t row = part * kPart, length = std::min(kPart, count - row);
      const Panels<kLanes, Word<T>> ins{inputs.get(), depth, in.channels};
      const Panels<kColumns, Word<T>> outs{outputs.get(), depth, columns};
      TransformTiles<kWindow, 1, Inputs>(x, in, first, row, length, ins, in_size);
      TransformTiles<kTile, 0, Cotangents>(y, out, first, row, length, outs, out_size);
    });
    ParallelFor(pool, parts, [&](int64_t part, int64_t worker) {
      const Planes<float> planes{sums.get() + (once ? worker : part) * size, kLanes, columns};
      for (int k = 0; k < kProducts; ++k) {
        const Panels<kLanes, Word<T>> a{inputs.get() + k * in_size, depth, in.channels};
        const Panels<kColumns, Word<T>> b{outputs.get() + k * out_size, depth, columns};
        const int64_t words = CeilDivide(count, kPair<T>);
        if (first == 0) {
          MultiplyChannels<false>(a, b, part * kLanes, words, planes.At(k, 0, 0));
        } else {
          MultiplyChannels<true>(a, b, part * kLanes, words, planes.At(k, 0, 0));
        }
      }
      if (first + block >= tiles) TransformGradient(planes, in, out, part * kLanes, w);
    });
    if (block == 0) break;  // no pictures
  }
}

}  // namespace invclr::winograd

#endif  // INVCLR_NATIVE_WINOGRAD_H_
