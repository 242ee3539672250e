// Sums over the pixels of a group, for each channel.

#ifndef INVCLR_NATIVE_MOMENTS_H_
#define INVCLR_NATIVE_MOMENTS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "elements.h"
#include "parallel.h"

namespace invclr::moments {

// Arrays [groups, pixels, channels]; channels are whole vectors.
struct Size {
  int64_t groups, pixels, channels;
};

// So many pixels are summed up in registers; the same for any number of threads, so sums are too.
constexpr int64_t kChunk = 256;

// For kCount vectors of channels, Σ w and Σ (u - s) w of `pixels` pixels; Σ w alone if u is null.
template <int kCount, class W, class U>
void SumChunk(const W* w, const U* u, const float* shift, int64_t pixels, int64_t channels,
              float* sums, float* products) {
  Vector total[kCount] = {}, product[kCount] = {}, s[kCount] = {};
  if (u != nullptr)
    for (int j = 0; j < kCount; ++j) s[j] = Load(shift + j * kLanes);
  for (int64_t pixel = 0; pixel < pixels; ++pixel, w += channels) {
    for (int j = 0; j < kCount; ++j) {
      const Vector value = Read(w + j * kLanes);
      total[j] += value;
      if (u != nullptr) product[j] += (Read(u + j * kLanes) - s[j]) * value;
    }
    if (u != nullptr) u += channels;
  }
  for (int j = 0; j < kCount; ++j) {
    Store(sums + j * kLanes, total[j]);
    if (u != nullptr) Store(products + j * kLanes, product[j]);
  }
}

// For kCount vectors of channels, Σ (x - s)².
template <int kCount, class X>
void SquareChunk(const X* x, const float* shift, int64_t pixels, int64_t channels, float* squares) {
  Vector total[kCount] = {}, s[kCount];
  for (int j = 0; j < kCount; ++j) s[j] = Load(shift + j * kLanes);
  for (int64_t pixel = 0; pixel < pixels; ++pixel, x += channels)
    for (int j = 0; j < kCount; ++j) {
      const Vector distance = Read(x + j * kLanes) - s[j];
      total[j] += distance * distance;
    }
  for (int j = 0; j < kCount; ++j) Store(squares + j * kLanes, total[j]);
}

// Calls sum(count, channel) for all channels, with four vectors at a time (a constant) or one.
template <class Sum>
void EachVectors(int64_t channels, Sum sum) {
  int64_t channel = 0;
  for (; channel + 4 * kLanes <= channels; channel += 4 * kLanes)
    sum(std::integral_constant<int, 4>(), channel);
  for (; channel < channels; channel += kLanes) sum(std::integral_constant<int, 1>(), channel);
}

// Sums up chunks of pixels on all threads, and adds up the chunks in order, in double.
// chunk(place, pixels, group, parts) writes `results` sums for each channel, one result after another.
template <class Pool, class Chunk>
void Sum(Pool& pool, Size size, int results, const std::vector<float*>& out, Chunk chunk) {
  const int64_t chunks = CeilDivide(size.pixels, kChunk), width = results * size.channels;
  std::vector<float> parts(size.groups * chunks * width);
  ParallelFor(pool, size.groups * chunks, [&](int64_t i, int64_t) {
    const int64_t group = i / chunks, first = i % chunks * kChunk;
    const int64_t place = (group * size.pixels + first) * size.channels;
    chunk(place, std::min(kChunk, size.pixels - first), group * size.channels, &parts[i * width]);
  });
  std::vector<double> total(width);
  for (int64_t group = 0; group < size.groups; ++group) {
    std::fill(total.begin(), total.end(), 0.0);
    for (int64_t i = group * chunks; i < (group + 1) * chunks; ++i)
      for (int64_t j = 0; j < width; ++j) total[j] += parts[i * width + j];
    for (int64_t j = 0; j < width; ++j)
      out[j / size.channels][group * size.channels + j % size.channels] = total[j];
  }
}

// Σ w.
template <class Pool, class W>
void Sums(Pool& pool, const W* w, Size size, float* sums) {
  Sum(pool, size, 1, {sums}, [&](int64_t place, int64_t pixels, int64_t, float* parts) {
    EachVectors(size.channels, [&](auto count, int64_t c) {
      SumChunk<count, W, W>(w + place + c, nullptr, nullptr, pixels, size.channels, parts + c,
                            nullptr);
    });
  });
}

// Σ w and Σ (u - s) w, with s [groups, 1, channels].
template <class Pool, class W, class U>
void Products(Pool& pool, const W* w, const U* u, const float* shift, Size size, float* sums,
              float* products) {
  const auto chunk = [&](int64_t place, int64_t pixels, int64_t group, float* parts) {
    EachVectors(size.channels, [&](auto count, int64_t c) {
      SumChunk<count>(w + place + c, u + place + c, shift + group + c, pixels, size.channels,
                      parts + c, parts + size.channels + c);
    });
  };
  Sum(pool, size, 2, {sums, products}, chunk);
}

// Σ (x - s)².
template <class Pool, class X>
void Squares(Pool& pool, const X* x, const float* shift, Size size, float* squares) {
  const auto chunk = [&](int64_t place, int64_t pixels, int64_t group, float* parts) {
    EachVectors(size.channels, [&](auto count, int64_t c) {
      SquareChunk<count>(x + place + c, shift + group + c, pixels, size.channels, parts + c);
    });
  };
  Sum(pool, size, 1, {squares}, chunk);
}

}  // namespace invclr::moments

#endif  // INVCLR_NATIVE_MOMENTS_H_
