// 3×3 convolutions on CPUs by Winograd's products, for XLA's foreign function interface.
//
// A tile of 4×4 outputs takes 36 products instead of 144. Summed over channels they are 36 products
// of matrices, [tiles, c] by [c, f]; for the gradient in the kernel [c, tiles] by [tiles, f].
// Images are [n, h, v, c], kernels [3, 3, c, f]; one zero is padded on each side, and the numbers
// of channels are multiples of kLanes. `models/winograd.py` checks all that.

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "parallel.h"
#include "transforms.h"
#include "vector.h"

namespace invclr {
namespace {

namespace ffi = xla::ffi;

// Tiles of a block stay in the cache of a core from the inputs' transformation to the outputs'.
// For the gradient in the kernel a block stays in the cache that cores share, but is not small: for
// each block all sums are read and written once.
constexpr int64_t kOwnCache = 3 << 18, kSharedCache = 4 << 20, kFewestTiles = 128;

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<float[], Free>;

Memory Allocate(int64_t floats) {
  void* memory = std::aligned_alloc(64, RoundUp(floats * sizeof(float), 64));
  if (memory == nullptr) throw std::bad_alloc();
  return Memory(static_cast<float*>(memory));
}

// A matrix [rows, columns] for each of the 36 products. Their distance is not a power of two: they
// would compete for the same places in the cache.
struct Planes {
  float* data;
  int64_t rows, columns;

  static int64_t Size(int64_t rows, int64_t columns) { return kProducts * Stride(rows, columns); }
  static int64_t Stride(int64_t rows, int64_t columns) { return rows * columns + kLanes; }
  float* At(int64_t product, int64_t row, int64_t column) const {
    return data + product * Stride(rows, columns) + row * columns + column;
  }
  void Read(int64_t row, int64_t column, Vector to[kWindow][kWindow]) const {
    for (int k = 0; k < kProducts; ++k) to[k / kWindow][k % kWindow] = Load(At(k, row, column));
  }
  void Write(int64_t row, int64_t column, const Vector from[kWindow][kWindow]) const {
    for (int k = 0; k < kProducts; ++k) Store(At(k, row, column), from[k / kWindow][k % kWindow]);
  }
};

// Pictures in tiles, row by row. Those at the right and lower border may reach beyond it.
struct Pictures {
  int64_t count, height, width, channels;

  int64_t Rows() const { return CeilDivide(height, kTile); }
  int64_t Columns() const { return CeilDivide(width, kTile); }
  int64_t Tiles() const { return count * Rows() * Columns(); }
  int64_t Top(int64_t tile) const { return tile / Columns() % Rows() * kTile; }
  int64_t Left(int64_t tile) const { return tile % Columns() * kTile; }
  bool Holds(int64_t y, int64_t x) const { return 0 <= y && y < height && 0 <= x && x < width; }
  // Where the pixel is whose place in the tile's picture is (y, x).
  int64_t Place(int64_t tile, int64_t y, int64_t x) const {
    const int64_t picture = tile / (Rows() * Columns());
    return ((picture * height + y) * width + x) * channels;
  }
};

// kSide×kSide pixels of a tile, from `border` before its corner on; zeros outside of the picture.
template <int kSide, int kBorder>
inline void ReadTile(const float* data, const Pictures& pictures, int64_t tile, int64_t channel,
                     Vector to[kSide][kSide]) {
  const int64_t top = pictures.Top(tile) - kBorder, left = pictures.Left(tile) - kBorder;
  const float* from = data + pictures.Place(tile, top, left) + channel;
  for (int64_t i = 0; i < kSide; ++i)
    for (int64_t j = 0; j < kSide; ++j) {
      const float* pixel = from + (i * pictures.width + j) * pictures.channels;
      to[i][j] = pictures.Holds(top + i, left + j) ? Load(pixel) : Vector{};
    }
}

inline void WriteTile(const Vector from[kTile][kTile], const Pictures& pictures, int64_t tile,
                      int64_t channel, float* data) {
  const int64_t top = pictures.Top(tile), left = pictures.Left(tile);
  float* to = data + pictures.Place(tile, top, left) + channel;
  for (int64_t i = 0; i < std::min<int64_t>(kTile, pictures.height - top); ++i)
    for (int64_t j = 0; j < std::min<int64_t>(kTile, pictures.width - left); ++j)
      Store(to + (i * pictures.width + j) * pictures.channels, from[i][j]);
}

// Transforms `count` tiles, from `first` on, into the rows of `planes` from `row` on.
template <int kSide, int kBorder, void (*Line)(const Vector*, Vector*)>
void TransformTiles(const float* data, const Pictures& pictures, int64_t first, int64_t count,
                    const Planes& planes, int64_t row) {
  Vector tile[kSide][kSide], products[kWindow][kWindow];
  for (int64_t t = 0; t < count; ++t)
    for (int64_t channel = 0; channel < pictures.channels; channel += kLanes) {
      ReadTile<kSide, kBorder>(data, pictures, first + t, channel, tile);
      BothWays<kSide, kWindow, Line>(tile, products);
      planes.Write(row + t, channel, products);
    }
}

void TransformInputs(const float* x, const Pictures& pictures, int64_t first, int64_t count,
                     const Planes& planes, int64_t row = 0) {
  TransformTiles<kWindow, 1, Inputs>(x, pictures, first, count, planes, row);
}

// --- y = x * w -----------------------------------------------------------------------------------

// The products' kernels [c, f] of one channel c. Columns are kept in blocks of kColumns, one after
// the other, so that a product of matrices reads them in order.
void TransformKernel(const float* w, int64_t channels, int64_t features, int64_t channel,
                     float* kernels) {
  Vector kernel[kKernel][kKernel], products[kWindow][kWindow];
  for (int64_t feature = 0; feature < features; feature += kLanes) {
    for (int i = 0; i < kKernel * kKernel; ++i)
      kernel[i / kKernel][i % kKernel] = Load(w + (i * channels + channel) * features + feature);
    BothWays<kKernel, kWindow, Kernels>(kernel, products);
    const int64_t block = feature / kColumns * kColumns;
    const int64_t width = std::min<int64_t>(kColumns, features - block);
    float* to = kernels + channels * block + channel * width + feature - block;
    for (int k = 0; k < kProducts; ++k, to += channels * features)
      Store(to, products[k / kWindow][k % kWindow]);
  }
}

// y[t, f] = Σ_c x[t, c] kernel[c, f] for one of the 36 products.
void MultiplyTiles(const Planes& x, const float* kernel, int64_t tiles, const Planes& y, int k) {
  for (int64_t feature = 0; feature < y.columns; feature += kColumns)
    for (int64_t tile = 0; tile < tiles; tile += kRows) {
      const int64_t columns = std::min<int64_t>(kColumns, y.columns - feature);
      MultiplyColumns<kRows, false>({x.At(k, tile, 0), x.columns, 1}, kernel + x.columns * feature,
                                    columns, x.columns, y.At(k, tile, feature), y.columns,
                                    columns);
    }
}

void TransformOutputs(const Planes& planes, const Pictures& pictures, int64_t first, int64_t count,
                      float* y) {
  Vector products[kWindow][kWindow], tile[kTile][kTile];
  for (int64_t t = 0; t < count; ++t)
    for (int64_t feature = 0; feature < pictures.channels; feature += kLanes) {
      planes.Read(t, feature, products);
      BothWays<kWindow, kTile, Outputs>(products, tile);
      WriteTile(tile, pictures, first + t, feature, y);
    }
}

void Convolve(ffi::ThreadPool& pool, const float* x, const float* w, const Pictures& in,
              const Pictures& out, float* y) {
  const int64_t size = in.channels * out.channels, tiles = in.Tiles();
  const Memory kernels = Allocate(kProducts * size);
  ParallelFor(pool, in.channels, [&](int64_t channel, int64_t) {
    TransformKernel(w, in.channels, out.channels, channel, kernels.get());
  });

  const int64_t bytes = kProducts * (in.channels + out.channels) * sizeof(float);
  const int64_t most = CeilDivide(tiles, Workers(pool));  // some for each worker
  const int64_t fit = std::max<int64_t>(std::min(kOwnCache / bytes, most), 1);
  const int64_t block = RoundUp(fit, kRows), blocks = CeilDivide(tiles, block);
  const int64_t in_size = Planes::Size(block, in.channels);
  const int64_t each = in_size + Planes::Size(block, out.channels);
  const int64_t total = std::min(Workers(pool), blocks) * each;
  const Memory memory = Allocate(total);
  std::memset(memory.get(), 0, total * sizeof(float));  // rows beyond the last tile
  ParallelFor(pool, blocks, [&](int64_t index, int64_t worker) {
    const int64_t first = index * block, count = std::min(block, tiles - first);
    const Planes inputs{memory.get() + worker * each, block, in.channels};
    const Planes outputs{inputs.data + in_size, block, out.channels};
    TransformInputs(x, in, first, count, inputs);
    for (int k = 0; k < kProducts; ++k)
      MultiplyTiles(inputs, kernels.get() + k * size, count, outputs, k);
    TransformOutputs(outputs, out, first, count, y);
  });
}

// --- The gradient of ⟨x * w, y⟩ in w -------------------------------------------------------------

// kernel[c, f] += Σ_t x[t, c] y[t, f] for one of the 36 products.
void MultiplyChannels(const Planes& x, const Planes& y, int64_t tiles, const Planes& kernel,
                      int k) {
  for (int64_t feature = 0; feature < y.columns; feature += kColumns)
    for (int64_t channel = 0; channel < x.columns; channel += kShortRows)
      MultiplyColumns<kShortRows, true>({x.At(k, 0, channel), 1, x.columns}, y.At(k, 0, feature),
                                        y.columns, tiles, kernel.At(k, channel, feature),
                                        kernel.columns, y.columns - feature);
}

void TransformGradient(const Planes& planes, int64_t channel, float* w) {
  Vector products[kWindow][kWindow], kernel[kKernel][kKernel];
  for (int64_t feature = 0; feature < planes.columns; feature += kLanes) {
    planes.Read(channel, feature, products);
    BothWays<kWindow, kKernel, KernelCotangents>(products, kernel);
    for (int i = 0; i < kKernel * kKernel; ++i)
      Store(w + (i * planes.rows + channel) * planes.columns + feature,
            kernel[i / kKernel][i % kKernel]);
  }
}

void KernelGradient(ffi::ThreadPool& pool, const float* x, const float* y, const Pictures& in,
                    const Pictures& out, float* w) {
  constexpr int64_t kPart = 8;  // tiles that a worker transforms at a time
  const int64_t bytes = kProducts * (in.channels + out.channels) * sizeof(float);
  const int64_t tiles = in.Tiles();
  const int64_t block = std::min(std::max(kSharedCache / bytes, kFewestTiles), tiles);
  const int64_t in_size = Planes::Size(block, in.channels);
  const int64_t out_size = Planes::Size(block, out.channels);
  const int64_t kernel_size = Planes::Size(in.channels, out.channels);
  const Memory memory = Allocate(in_size + out_size + kernel_size);
  const Planes inputs{memory.get(), block, in.channels};
  const Planes outputs{inputs.data + in_size, block, out.channels};
  const Planes kernels{outputs.data + out_size, in.channels, out.channels};
  std::memset(kernels.data, 0, kernel_size * sizeof(float));
  for (int64_t first = 0; first < tiles; first += block) {
    const int64_t count = std::min(block, tiles - first);
    ParallelFor(pool, CeilDivide(count, kPart), [&](int64_t part, int64_t) {
      const int64_t row = part * kPart, length = std::min(kPart, count - row);
      TransformInputs(x, in, first + row, length, inputs, row);
      TransformTiles<kTile, 0, Cotangents>(y, out, first + row, length, outputs, row);
    });
    ParallelFor(pool, kProducts, [&](int64_t k, int64_t) {
      MultiplyChannels(inputs, outputs, count, kernels, k);
    });
  }
  ParallelFor(pool, in.channels,
              [&](int64_t channel, int64_t) { TransformGradient(kernels, channel, w); });
}

// --- What XLA calls ------------------------------------------------------------------------------

using Array = ffi::Buffer<ffi::F32, 4>;

Pictures Of(Array array) {
  const auto size = array.dimensions();
  return {size[0], size[1], size[2], size[3]};
}

ffi::Error ConvolveCall(ffi::ThreadPool pool, Array x, Array w, ffi::Result<Array> y) try {
  Convolve(pool, x.typed_data(), w.typed_data(), Of(x), Of(*y), y->typed_data());
  return ffi::Error::Success();
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "no memory for a convolution");
}

ffi::Error KernelGradientCall(ffi::ThreadPool pool, Array x, Array y, ffi::Result<Array> w) try {
  KernelGradient(pool, x.typed_data(), y.typed_data(), Of(x), Of(y), w->typed_data());
  return ffi::Error::Success();
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "no memory for a kernel's gradient");
}

auto Signature() {
  return ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<Array>().Arg<Array>().Ret<Array>();
}

}  // namespace
}  // namespace invclr

XLA_FFI_DEFINE_HANDLER_SYMBOL(invclr_convolve, invclr::ConvolveCall, invclr::Signature());
XLA_FFI_DEFINE_HANDLER_SYMBOL(invclr_kernel_gradient, invclr::KernelGradientCall,
                              invclr::Signature());
