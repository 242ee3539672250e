// Every kernel on arrays of exactly their size, against sums by the definition; test_sanitizers.py
// compiles it with the compiler's sanitizers, which end it at the first access beyond an array.

#include <cmath>
#include <cstdio>
#include <thread>

#include "direct.h"
#include "kernel_gradient.h"
#include "interpolation.h"
#include "moments.h"
#include "winograd.h"

namespace {

using invclr::BFloat16;
using invclr::Pictures;

// A thread for each piece of work, all of them waited for at the end.
struct Pool {
  std::vector<std::thread> threads;

  int64_t num_threads() const { return 3; }
  template <class Work>
  void Schedule(Work work) {
    threads.emplace_back(work);
  }
  ~Pool() {
    for (std::thread& thread : threads) thread.join();
  }
};

double Number(double value) { return value; }
float Number(float value) { return value; }
float Number(BFloat16 value) {
  const uint32_t bits = uint32_t{value.bits} << 16;
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}
void Set(double& element, float value) { element = value; }
void Set(float& element, float value) { element = value; }
void Set(BFloat16& element, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  element.bits = bits >> 16;
}

template <class T>
std::vector<T> Random(int64_t size) {
  static uint32_t state = 1;
  std::vector<T> values(size);
  for (T& value : values) {
    state = state * 1664525u + 1013904223u;
    Set(value, static_cast<int32_t>(state) / 2147483648.0f);
  }
  return values;
}

int failures = 0;

template <class T>
void Compare(const char* what, const std::vector<T>& found, const std::vector<double>& expected,
             double tolerance) {
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(Number(found[i]) - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  if (std::sqrt(error) <= tolerance * std::sqrt(size)) return;
  std::printf("%s: error %g of %g\n", what, std::sqrt(error), std::sqrt(size));
  ++failures;
}

template <class T>
void Check(const Pictures& in, int64_t features, int64_t k, int64_t stride, bool winograd) {
  using invclr::CeilDivide;
  const Pictures out{in.count, CeilDivide(in.height, stride), CeilDivide(in.width, stride),
                     features};
  const int64_t sizes[] = {in.Place(in.count, 0, 0), k * k * in.channels * features,
                           out.Place(out.count, 0, 0)};
  const std::vector<T> x = Random<T>(sizes[0]), w = Random<T>(sizes[1]), y = Random<T>(sizes[2]);
  std::vector<double> dx(sizes[0]), dw(sizes[1]), z(sizes[2]);
  for (int64_t place = 0; place < in.count * out.height * out.width * k * k; ++place) {
    const int64_t entry = place % (k * k), pixel = place / (k * k);
    const int64_t column = pixel % out.width, row = pixel / out.width % out.height;
    const int64_t picture = pixel / out.width / out.height;
    const int64_t v = row * stride + entry / k - k / 2, u = column * stride + entry % k - k / 2;
    if (!in.Holds(v, u)) continue;
    for (int64_t c = 0; c < in.channels; ++c)
      for (int64_t f = 0; f < features; ++f) {
        const int64_t a = in.Place(picture, v, u) + c, b = (entry * in.channels + c) * features + f;
        const int64_t o = out.Place(picture, row, column) + f;
        z[o] += double{Number(x[a])} * Number(w[b]);
        dx[a] += double{Number(y[o])} * Number(w[b]);
        dw[b] += double{Number(x[a])} * Number(y[o]);
      }
  }
  std::vector<T> found_z(sizes[2]), found_dx(sizes[0]), found_dw(sizes[1]);
  {
    Pool pool;
    if (winograd) {
      invclr::winograd::Convolve(pool, x.data(), w.data(), false, in, out, found_z.data());
      invclr::winograd::InputGradient(pool, y.data(), w.data(), out, in, found_dx.data());
      invclr::winograd::KernelGradient(pool, x.data(), y.data(), in, out, found_dw.data());
    } else {
      invclr::direct::Convolve(pool, x.data(), w.data(), k, stride, in, out, found_z.data());
      invclr::direct::InputGradient(pool, y.data(), w.data(), k, stride, out, in, found_dx.data());
      invclr::direct::KernelGradient(pool, x.data(), y.data(), k, stride, in, out,
                                     found_dw.data());
    }
  }
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 0.02;
  Compare("convolution", found_z, z, tolerance);
  Compare("gradient in the input", found_dx, dx, tolerance);
  Compare("gradient in the kernel", found_dw, dw, tolerance);
}

template <class T>
void CheckAll() {
  Check<T>({1, 1, 1, 16}, 16, 3, 1, true);
  Check<T>({2, 7, 10, 16}, 48, 3, 1, true);
  Check<T>({7, 9, 5, 48}, 32, 3, 1, true);
  Check<T>({0, 4, 4, 16}, 16, 3, 1, true);
  Check<T>({2, 3, 4, 416}, 416, 3, 1, true);     // kernels transformed feature by feature
  Check<T>({310, 16, 16, 16}, 16, 3, 1, true);   // several blocks of tiles
  Check<T>({2, 7, 10, 16}, 48, 3, 1, false);
  Check<T>({2, 7, 10, 3}, 5, 3, 2, false);
  Check<T>({3, 9, 8, 17}, 33, 1, 2, false);
  Check<T>({2, 12, 11, 3}, 20, 7, 2, false);
  Check<T>({1, 1, 1, 3}, 20, 3, 2, false);
  Check<T>({1, 5, 5, 6}, 20, 5, 3, false);
  Check<T>({40, 9, 9, 31}, 16, 3, 2, false);  // several blocks of pixels
  Check<T>({2, 6, 6, 60}, 16, 1, 1, false);   // several parts of a kernel with few features
  Check<T>({1, 40, 33, 64}, 8, 3, 2, false);  // several bands of one picture
  Check<T>({3, 5, 4, 70}, 72, 7, 4, false);
  Check<T>({5, 2, 1, 5}, 100, 3, 2, false);
  Check<T>({0, 6, 6, 30}, 33, 3, 1, false);
}

// The corners' factors along an axis: in the value (slope 0) or in the derivative (slope 1).
struct Factors {
  int64_t before, after;
  double factor[2][2];

  Factors(double position, int64_t length) {
    const double last = length - 1, clipped = std::min(std::max(position, 0.0), last);
    before = std::min<int64_t>(clipped, std::max<int64_t>(length - 2, 0));
    after = std::min<int64_t>(before + 1, length - 1);
    const double fraction = clipped - before, slope = position > 0 && position < last;
    const double all[2][2] = {{1 - fraction, fraction}, {-slope, slope}};
    std::memcpy(factor, all, sizeof all);
  }
};

template <class T>
void CheckInterpolation(const Pictures& in, int64_t height, int64_t width,
                        const std::vector<int64_t>& orders) {
  const Pictures out{in.count, height, width, in.channels};
  const int64_t pixels = in.count * height * width;
  const int64_t sizes[] = {in.Place(in.count, 0, 0), out.Place(out.count, 0, 0)};
  const std::vector<T> x = Random<T>(sizes[0]), y = Random<T>(sizes[1]);
  std::vector<T> rows = Random<T>(pixels), columns = Random<T>(pixels);
  for (T& row : rows) row = (row + T{0.5}) * in.height * T{1.2};
  for (T& column : columns) column = (column + T{0.5}) * in.width * T{1.2};
  std::vector<std::vector<T>> w;
  for (size_t o = 0; o < orders.size(); ++o) w.push_back(Random<T>(pixels));
  std::vector<double> z(sizes[1]), dx(sizes[0]);
  std::vector<std::vector<double>> dw(orders.size(), std::vector<double>(pixels));
  for (int64_t i = 0; i < pixels; ++i) {
    const Factors row(rows[i], in.height), column(columns[i], in.width);
    for (size_t o = 0; o < std::max<size_t>(orders.size(), 1); ++o) {
      const int64_t order = orders.empty() ? 0 : orders[o];
      for (int corner = 0; corner < 4; ++corner) {
        const int64_t v = corner / 2 ? row.after : row.before;
        const int64_t u = corner % 2 ? column.after : column.before;
        const double factor = row.factor[order % 2][corner / 2] * column.factor[order / 2][corner % 2];
        const double weighted = orders.empty() ? factor : factor * w[o][i];
        for (int64_t c = 0; c < in.channels; ++c) {
          const int64_t a = in.Place(i / (height * width), v, u) + c, b = i * in.channels + c;
          z[b] += weighted * x[a];
          dx[a] += weighted * y[b];
          if (!orders.empty()) dw[o][i] += factor * x[a] * y[b];
        }
      }
    }
  }
  std::vector<T> found_z(sizes[1]), found_dx(sizes[0]);
  std::vector<std::vector<T>> found_dw(orders.size(), std::vector<T>(pixels));
  std::vector<const T*> weights;
  for (const std::vector<T>& values : w) weights.push_back(values.data());
  std::vector<T*> gradients;
  for (std::vector<T>& values : found_dw) gradients.push_back(values.data());
  const auto compute = [&] {
    Pool pool;
    const invclr::interpolation::Positions<T> at{rows.data(), columns.data()};
    invclr::interpolation::Interpolate(pool, x.data(), at, orders, weights, in, out,
                                       found_z.data());
    invclr::interpolation::ImageGradient(pool, y.data(), at, orders, weights, in, out,
                                         found_dx.data());
    invclr::interpolation::WeightGradients(pool, x.data(), at, y.data(), orders, in, out,
                                           gradients);
  };
  compute();
  Compare("interpolation", found_z, z, 1e-5);
  Compare("gradient in the pictures", found_dx, dx, 1e-5);
  for (size_t o = 0; o < orders.size(); ++o) Compare("in a weight", found_dw[o], dw[o], 1e-5);
  // Wherever it is, and if it is nowhere, a position is read from within the picture.
  const T far[] = {T(NAN), T(INFINITY), T(-INFINITY), T(1e30), T(-1e30)};
  for (int64_t i = 0; i < pixels; ++i) {
    rows[i] = far[i % 5];
    columns[i] = far[i / 5 % 5];
  }
  compute();
}

template <class T>
void CheckInterpolations() {
  for (const std::vector<int64_t>& orders :
       {std::vector<int64_t>{}, {0}, {1, 2}, {3}, {2, 3, 0, 1}}) {
    CheckInterpolation<T>({3, 9, 12, 3}, 11, 13, orders);  // several blocks
    CheckInterpolation<T>({2, 5, 4, 1}, 1, 1, orders);
    CheckInterpolation<T>({2, 4, 6, 5}, 8, 8, orders);
    CheckInterpolation<T>({2, 1, 5, 3}, 4, 4, orders);
    CheckInterpolation<T>({2, 5, 1, 3}, 4, 4, orders);
    CheckInterpolation<T>({1, 1, 1, 3}, 2, 3, orders);
    CheckInterpolation<T>({0, 4, 4, 3}, 4, 4, orders);
    CheckInterpolation<T>({2, 4, 4, 3}, 0, 4, orders);
  }
}

template <class W, class U>
void CheckMoments(const invclr::moments::Size& size) {
  const int64_t width = size.groups * size.channels, count = width * size.pixels;
  const std::vector<W> w = Random<W>(count);
  const std::vector<U> u = Random<U>(count);
  const std::vector<float> shift = Random<float>(width);
  std::vector<double> sums(width), products(width), squares(width);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t c = i / (size.pixels * size.channels) * size.channels + i % size.channels;
    const double distance = Number(u[i]) - shift[c];
    sums[c] += Number(w[i]);
    products[c] += distance * Number(w[i]);
    squares[c] += distance * distance;
  }
  std::vector<float> found(width), found_sums(width), found_products(width), found_squares(width);
  {
    Pool pool;
    invclr::moments::Sums(pool, w.data(), size, found.data());
    invclr::moments::Products(pool, w.data(), u.data(), shift.data(), size, found_sums.data(),
                              found_products.data());
    invclr::moments::Squares(pool, u.data(), shift.data(), size, found_squares.data());
  }
  Compare("sums", found, sums, 1e-5);
  Compare("sums beside products", found_sums, sums, 1e-5);
  Compare("products", found_products, products, 1e-5);
  Compare("squares", found_squares, squares, 1e-5);
}

template <class W, class U>
void CheckAllMoments() {
  CheckMoments<W, U>({1, 1, 16});
  CheckMoments<W, U>({2, 300, 16});   // more than a chunk of pixels
  CheckMoments<W, U>({3, 256, 80});   // four vectors and one
  CheckMoments<W, U>({1, 1000, 64});
  CheckMoments<W, U>({0, 5, 16});
}

}  // namespace

int main() {
  CheckInterpolations<float>();
  CheckInterpolations<double>();
  CheckAll<float>();
  CheckAllMoments<float, float>();
#if defined(__AVX512BF16__)
  CheckAll<BFloat16>();
  CheckAllMoments<BFloat16, BFloat16>();
  CheckAllMoments<BFloat16, float>();
  CheckAllMoments<float, BFloat16>();
#endif
  return failures;
}
