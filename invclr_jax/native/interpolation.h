// Bilinear interpolation of pictures, its derivatives in the positions, and its gradients.
//
// An interpolated pixel is a sum over the four corners of the cell that it lies in. So are its
// derivatives, with other factors: (1 - f, f) along an axis becomes (-1, 1). With weights w, one for
// each derivative o that is asked for,
//
//   y = sum over o, corners of w[o] row[o][corner] column[o][corner] x[corner],
//
// which is linear in x and in w. Positions are clipped to the picture, where derivatives are 0.

#ifndef INVCLR_NATIVE_INTERPOLATION_H_
#define INVCLR_NATIVE_INTERPOLATION_H_

#include <algorithm>
#include <type_traits>
#include <vector>

#include "parallel.h"
#include "pictures.h"

namespace invclr {
namespace interpolation {

// Pixels that are computed together: what is known of them stays in the nearest cache.
constexpr int64_t kBlock = 64;

// A derivative: differentiated in the row (kDown), in the column (kRight), in both, or in neither.
constexpr int64_t kDown = 1, kRight = 2;
using Orders = std::vector<int64_t>;

// Where to read, one number for each interpolated pixel.
template <class T>
struct Positions {
  const T *rows, *columns;
};

// Some pixels' cells along one axis.
template <class T>
struct Axis {
  int32_t before[kBlock];
  T factors[2][2][kBlock];  // of the value and of the derivative, for the corners before and after

  void Find(const T* positions, int64_t pixels, int64_t length) {
    const T last = static_cast<T>(length - 1);
    const int32_t last_cell = static_cast<int32_t>(std::max<int64_t>(length - 2, 0));
    // Without branches, so that compilers make vectors of it. What is not a number is read from 0
    // and passed on.
    for (int64_t i = 0; i < pixels; ++i) {
      const T position = positions[i];
      const T clipped = std::min(std::max(T{0}, position), last);
      const int32_t whole = static_cast<int32_t>(clipped);
      before[i] = whole < last_cell ? whole : last_cell;
      const T offset = clipped - static_cast<T>(before[i]);
      const T fraction = position == position ? offset : position;
      const T slope = static_cast<T>((position > 0) & (position < last));
      factors[0][0][i] = 1 - fraction;
      factors[0][1][i] = fraction;
      factors[1][0][i] = -slope;
      factors[1][1][i] = slope;
    }
  }
};

// Some pixels of a picture: where their cells are, and the corners' share in every derivative.
template <class T>
class Block {
 public:
  explicit Block(const Pictures& in)
      : in_(in),
        // There is no next pixel along a side of length 1: let it be the same.
        corners_{0, in.width > 1 ? in.channels : 0, 0, 0} {
    corners_[2] = in.height > 1 ? in.width * in.channels : 0;
    corners_[3] = corners_[1] + corners_[2];
  }

  void Find(const Positions<T>& positions, int64_t first, int64_t pixels) {
    pixels_ = pixels;
    rows_.Find(positions.rows + first, pixels, in_.height);
    columns_.Find(positions.columns + first, pixels, in_.width);
    const int32_t width = static_cast<int32_t>(in_.width);
    const int32_t channels = static_cast<int32_t>(in_.channels);
    for (int64_t i = 0; i < pixels; ++i) {
      cells_[i] = (rows_.before[i] * width + columns_.before[i]) * channels;
    }
  }

  int64_t pixels() const { return pixels_; }
  // Where a pixel's cell begins within its picture, and how far from there a corner is.
  int64_t Cell(int64_t i) const { return cells_[i]; }
  int64_t Corner(int corner) const { return corners_[corner]; }

  const T* Row(int64_t order, int corner) const {
    return rows_.factors[order & kDown ? 1 : 0][corner / 2];
  }
  const T* Column(int64_t order, int corner) const {
    return columns_.factors[order & kRight ? 1 : 0][corner % 2];
  }

 private:
  Pictures in_;
  int64_t corners_[4], pixels_ = 0;
  int32_t cells_[kBlock];
  Axis<T> rows_, columns_;
};

// What each corner is multiplied with. Without orders: in the value, with weight 1.
template <class T>
struct Shares {
  T of[4][kBlock];

  void Add(const Block<T>& block, int64_t order, const T* weights, bool first) {
    for (int corner = 0; corner < 4; ++corner) {
      const T *row = block.Row(order, corner), *column = block.Column(order, corner);
      T* share = of[corner];
      for (int64_t i = 0; i < block.pixels(); ++i) {
        const T product = (weights == nullptr ? 1 : weights[i]) * row[i] * column[i];
        share[i] = first ? product : share[i] + product;
      }
    }
  }
  void Find(const Block<T>& block, const Orders& orders, const std::vector<const T*>& weights,
            int64_t pixel) {
    if (orders.empty()) Add(block, 0, nullptr, true);
    for (size_t o = 0; o < orders.size(); ++o) {
      Add(block, orders[o], weights[o] + pixel, o == 0);
    }
  }
};

// Calls work(block, first pixel of the block) for all pixels of a picture, counted over pictures.
template <class T, class Work>
void ForBlocks(const Positions<T>& positions, const Pictures& in, const Pictures& out,
               int64_t picture, Work work) {
  Block<T> block(in);
  const int64_t size = out.height * out.width;
  for (int64_t first = 0; first < size; first += kBlock) {
    const int64_t pixel = picture * size + first;
    block.Find(positions, pixel, std::min(kBlock, size - first));
    work(block, pixel);
  }
}

// Four numbers. Three channels are computed as four: the fourth is the next pixel's and not used.
template <class T>
struct Four {
  typedef T Numbers __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
};
template <class T>
typename Four<T>::Numbers& At(T* place) {
  return *reinterpret_cast<typename Four<T>::Numbers*>(place);
}
template <class T>
const typename Four<T>::Numbers& At(const T* place) {
  return *reinterpret_cast<const typename Four<T>::Numbers*>(place);
}

// Sums of corners, from the block's pixel `first` on.
template <class T>
void Combine(const Block<T>& block, const Shares<T>& shares, int64_t channels, int64_t first,
             const T* x, T* y) {
  for (int64_t i = first; i < block.pixels(); ++i) {
    const T* from = x + block.Cell(i);
    for (int64_t c = 0; c < channels; ++c) {
      T sum = 0;
      for (int corner = 0; corner < 4; ++corner) {
        sum += shares.of[corner][i] * from[block.Corner(corner) + c];
      }
      y[i * channels + c] = sum;
    }
  }
}
// The same for three channels, followed in memory by a fourth number. Returns how many pixels are
// done: all but the last, which is not followed by one in y.
template <class T>
int64_t CombineThree(const Block<T>& block, const Shares<T>& shares, const T* x, T* y) {
  const int64_t right = block.Corner(1), below = block.Corner(2), both = block.Corner(3);
  const int64_t pixels = block.pixels() - 1;
  for (int64_t i = 0; i < pixels; ++i) {
    const T* from = x + block.Cell(i);
    At(y + 3 * i) = shares.of[0][i] * At(from) + shares.of[1][i] * At(from + right) +
                    shares.of[2][i] * At(from + below) + shares.of[3][i] * At(from + both);
  }
  return pixels;
}

// Products of y with each of the corners, summed over channels.
template <class T>
struct Products {
  T of[4][kBlock];
  T channels[4][4 * kBlock];  // before they are summed, in FindThree

  void Find(const Block<T>& block, int64_t channels, int64_t first, const T* x, const T* y) {
    for (int64_t i = first; i < block.pixels(); ++i) {
      const T *a = x + block.Cell(i), *b = y + i * channels;
      for (int corner = 0; corner < 4; ++corner) {
        T sum = 0;
        for (int64_t c = 0; c < channels; ++c) sum += a[block.Corner(corner) + c] * b[c];
        of[corner][i] = sum;
      }
    }
  }
  // As CombineThree.
  int64_t FindThree(const Block<T>& block, const T* x, const T* y) {
    const int64_t right = block.Corner(1), below = block.Corner(2), both = block.Corner(3);
    const int64_t pixels = block.pixels() - 1;
    for (int64_t i = 0; i < pixels; ++i) {
      const T* from = x + block.Cell(i);
      const auto to = At(y + 3 * i);
      At(channels[0] + 4 * i) = to * At(from);
      At(channels[1] + 4 * i) = to * At(from + right);
      At(channels[2] + 4 * i) = to * At(from + below);
      At(channels[3] + 4 * i) = to * At(from + both);
    }
    for (int corner = 0; corner < 4; ++corner) {
      const T* from = channels[corner];
      for (int64_t i = 0; i < pixels; ++i) {
        of[corner][i] = from[4 * i] + from[4 * i + 1] + from[4 * i + 2];
      }
    }
    return pixels;
  }
  void Sum(const Block<T>& block, int64_t order, T* to) const {
    const T* row[4];
    const T* column[4];
    for (int corner = 0; corner < 4; ++corner) {
      row[corner] = block.Row(order, corner);
      column[corner] = block.Column(order, corner);
    }
    for (int64_t i = 0; i < block.pixels(); ++i) {
      T sum = 0;
      for (int corner = 0; corner < 4; ++corner) {
        sum += of[corner][i] * row[corner][i] * column[corner][i];
      }
      to[i] = sum;
    }
  }
};

// The transpose of Combine. `channels` is a number or a constant.
template <class T, class Channels>
void Spread(const Block<T>& block, const Shares<T>& shares, Channels channels, const T* y, T* x) {
  for (int64_t i = 0; i < block.pixels(); ++i) {
    for (int corner = 0; corner < 4; ++corner) {
      T* to = x + block.Cell(i) + block.Corner(corner);
      for (int64_t c = 0; c < channels; ++c) to[c] += shares.of[corner][i] * y[i * channels + c];
    }
  }
}

// Whether a picture is of three channels and followed by another one.
inline bool Three(const Pictures& in, int64_t picture) {
  return in.channels == 3 && picture + 1 < in.count;
}

// y, of size `out`, from x, of size `in`.
template <class T, class Pool>
void Interpolate(Pool& pool, const T* x, const Positions<T>& positions, const Orders& orders,
                 const std::vector<const T*>& weights, const Pictures& in, const Pictures& out,
                 T* y) {
  ParallelFor(pool, in.count, [&](int64_t picture, int64_t) {
    const T* from = x + in.Place(picture, 0, 0);
    Shares<T> shares;
    ForBlocks(positions, in, out, picture, [&](const Block<T>& block, int64_t pixel) {
      T* to = y + pixel * in.channels;
      shares.Find(block, orders, weights, pixel);
      const int64_t done = Three(in, picture) ? CombineThree(block, shares, from, to) : 0;
      Combine(block, shares, in.channels, done, from, to);
    });
  });
}

// The gradient of <y, Interpolate(x, …)> in x.
template <class T, class Pool>
void ImageGradient(Pool& pool, const T* y, const Positions<T>& positions, const Orders& orders,
                   const std::vector<const T*>& weights, const Pictures& in, const Pictures& out,
                   T* x) {
  ParallelFor(pool, in.count, [&](int64_t picture, int64_t) {
    T* to = x + in.Place(picture, 0, 0);
    std::fill(to, to + in.Place(1, 0, 0), T{0});
    Shares<T> shares;
    ForBlocks(positions, in, out, picture, [&](const Block<T>& block, int64_t pixel) {
      const T* from = y + pixel * in.channels;
      shares.Find(block, orders, weights, pixel);
      if (in.channels == 3) {
        Spread(block, shares, std::integral_constant<int64_t, 3>(), from, to);
      } else {
        Spread(block, shares, in.channels, from, to);
      }
    });
  });
}

// The gradient of <y, Interpolate(x, …)> in each of the weights.
template <class T, class Pool>
void WeightGradients(Pool& pool, const T* x, const Positions<T>& positions, const T* y,
                     const Orders& orders, const Pictures& in, const Pictures& out,
                     const std::vector<T*>& gradients) {
  ParallelFor(pool, in.count, [&](int64_t picture, int64_t) {
    const T* a = x + in.Place(picture, 0, 0);
    Products<T> products;
    ForBlocks(positions, in, out, picture, [&](const Block<T>& block, int64_t pixel) {
      const T* b = y + pixel * in.channels;
      const int64_t done = Three(in, picture) ? products.FindThree(block, a, b) : 0;
      products.Find(block, in.channels, done, a, b);
      for (size_t o = 0; o < orders.size(); ++o) {
        products.Sum(block, orders[o], gradients[o] + pixel);
      }
    });
  });
}

}  // namespace interpolation
}  // namespace invclr

#endif  // INVCLR_NATIVE_INTERPOLATION_H_
