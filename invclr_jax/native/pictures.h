// Arrays of pictures, and memory to work in.

#ifndef INVCLR_NATIVE_PICTURES_H_
#define INVCLR_NATIVE_PICTURES_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "parallel.h"

namespace invclr {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
template <class Word>
using Memory = std::unique_ptr<Word[], Free>;

template <class Word>
Memory<Word> Allocate(int64_t words) {
  void* memory = std::aligned_alloc(64, RoundUp(std::max<int64_t>(words * sizeof(Word), 1), 64));
  if (memory == nullptr) throw std::bad_alloc();
  return Memory<Word>(static_cast<Word*>(memory));
}

// The size of an array [count, height, width, channels].
struct Pictures {
  int64_t count, height, width, channels;

  bool Holds(int64_t y, int64_t x) const { return 0 <= y && y < height && 0 <= x && x < width; }
  // Where the first channel of a pixel is.
  int64_t Place(int64_t picture, int64_t y, int64_t x) const {
    return ((picture * height + y) * width + x) * channels;
  }
};

// kernel[f, c] of kernel[c, f], for each of `taps` of them.
template <class T, class Pool>
Memory<T> Transposed(Pool& pool, const T* kernel, int64_t taps, int64_t channels,
                     int64_t features) {
  constexpr int64_t kSide = 16;
  Memory<T> transposed = Allocate<T>(taps * channels * features);
  const int64_t blocks = CeilDivide(channels, kSide);
  ParallelFor(pool, taps * blocks, [&](int64_t index, int64_t) {
    const int64_t first = index % blocks * kSide, last = std::min(first + kSide, channels);
    const T* from = kernel + index / blocks * channels * features;
    T* to = transposed.get() + index / blocks * channels * features;
    for (int64_t f = 0; f < features; ++f)
      for (int64_t c = first; c < last; ++c) to[f * channels + c] = from[c * features + f];
  });
  return transposed;
}

}  // namespace invclr

#endif  // INVCLR_NATIVE_PICTURES_H_
