// Copies of parts of pictures with the zeros around them, so that products can read the pixels that
// an output sees at fixed distances from it.

#ifndef INVCLR_NATIVE_PADDED_H_
#define INVCLR_NATIVE_PADDED_H_

#include <vector>

#include "elements.h"
#include "pictures.h"

namespace invclr {

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

// Rows of outputs that are computed at a time: all of some pictures, or some of one picture.
struct Band {
  int64_t picture, pictures, row, rows;
};

// A division of pictures with `rows` rows of outputs into bands.
struct Bands {
  int64_t pictures, rows, pictures_each, rows_each;

  // Bands of about `most` rows, as many for each worker.
  Bands(int64_t pictures, int64_t rows, int64_t most, int64_t workers)
      : pictures(pictures), rows(rows), pictures_each(1), rows_each(rows) {
    const int64_t whole = most / std::max<int64_t>(rows, 1);
    if (whole >= 1 && pictures >= workers) {
      pictures_each = Even(pictures, whole, workers);
    } else {
      const int64_t parts = CeilDivide(workers, std::max<int64_t>(pictures, 1));
      rows_each = Even(rows, std::max<int64_t>(most, 1), parts);
    }
  }

  int64_t Parts() const { return CeilDivide(rows, std::max<int64_t>(rows_each, 1)); }
  int64_t Count() const { return CeilDivide(pictures, pictures_each) * Parts(); }
  Band At(int64_t index) const {
    const int64_t picture = index / Parts() * pictures_each, row = index % Parts() * rows_each;
    return {picture, std::min(pictures_each, pictures - picture), row,
            std::min(rows_each, rows - row)};
  }

 private:
  // At most `most` of `count`, such that all parts are of about one size and their number is a
  // multiple of `workers`.
  static int64_t Even(int64_t count, int64_t most, int64_t workers) {
    const int64_t parts = RoundUp(CeilDivide(count, most), workers);
    return std::max<int64_t>(CeilDivide(count, std::max<int64_t>(parts, 1)), 1);
  }
};

// The pixels (top + step i, left + step j) of a picture for i < height and j < width; those outside
// of it are zeros.
struct Frame {
  int64_t top, left, height, width, step;

  int64_t Pixels() const { return height * width; }
  bool Within(const Pictures& pictures) const {
    return top >= 0 && left >= 0 && top + (height - 1) * step < pictures.height &&
           left + (width - 1) * step < pictures.width;
  }
  // Columns from First to Last are within the picture.
  int64_t First() const { return std::clamp<int64_t>(CeilDivide(-left, step), 0, width); }
  int64_t Last(const Pictures& pictures) const {
    return std::clamp<int64_t>(CeilDivide(pictures.width - left, step), First(), width);
  }
};

// Row i of a frame; pixels have `channels`, as many as in the picture or one more, which is zero.
template <class T>
void CopyPixels(const T* x, const Pictures& in, int64_t picture, const Frame& frame, int64_t i,
                int64_t channels, T* to) {
  const int64_t row = frame.top + i * frame.step;
  const bool inside = 0 <= row && row < in.height;
  const int64_t first = inside ? frame.First() : frame.width;
  const int64_t last = inside ? frame.Last(in) : frame.width;
  std::fill(to, to + first * channels, T{});
  std::fill(to + last * channels, to + frame.width * channels, T{});
  if (first == last) return;
  const T* from = x + in.Place(picture, row, frame.left + first * frame.step);
  if (frame.step == 1 && channels == in.channels) {
    std::copy(from, from + (last - first) * channels, to + first * channels);
    return;
  }
  for (int64_t j = first; j < last; ++j, from += frame.step * in.channels) {
    std::copy(from, from + in.channels, to + j * channels);
    if (channels > in.channels) to[j * channels + in.channels] = T{};
  }
}

// Row i of a frame; the words of a pixel hold its channels, the last one filled up with a zero.
template <class T>
void CopyRow(const T* x, const Pictures& in, int64_t picture, const Frame& frame, int64_t i,
             Word<T>* to) {
  const int64_t channels = RoundUp(in.channels, kPair<T>);
  CopyPixels(x, in, picture, frame, i, channels, reinterpret_cast<T*>(to));
}

// The elements from k on of a row of which those from `begin` to `end` exist; the others are zeros.
template <class T>
Vector ReadWithin(const T* row, int64_t k, int64_t begin, int64_t end) {
  if (begin <= k && k + kLanes <= end) return Read(row + k);
  T elements[kLanes] = {};
  for (int64_t i = std::max(k, begin); i < std::min(k + kLanes, end); ++i) elements[i - k] = row[i];
  return Read(elements);
}

// Row i of a frame; a word holds a channel of a pixel and, if it is a pair, of the pixel `distance`
// further to the right.
template <class T>
void CopyRowInPairs(const T* x, const Pictures& in, int64_t picture, const Frame& frame, int64_t i,
                    int64_t distance, Word<T>* to) {
  if constexpr (kPair<T> == 1) return CopyRow(x, in, picture, frame, i, to);
  Frame longer = frame;
  longer.width += distance;
  const int64_t y = frame.top + i * frame.step, words = frame.width * in.channels;
  std::vector<T> near;  // pixels that are apart in the picture
  const T* row = x + in.Place(picture, y, frame.left);
  int64_t begin = 0, end = 0;
  if (frame.step > 1) {
    near.resize(longer.width * in.channels);
    CopyPixels(x, in, picture, longer, i, in.channels, near.data());
    row = near.data(), end = near.size();
  } else if (0 <= y && y < in.height) {
    begin = longer.First() * in.channels, end = longer.Last(in) * in.channels;
  }
  for (int64_t k = 0; k < words; k += kLanes) {
    const int64_t count = words - k;
    Word<T> some[kLanes];
    Word<T>* pairs = count < kLanes ? some : to + k;
    WriteHalf(pairs, ReadWithin(row, k, begin, end), 0);
    WriteHalf(pairs, ReadWithin(row, k + distance * in.channels, begin, end), 1);
    if (count < kLanes) std::copy(some, some + count, to + k);
  }
}

}  // namespace invclr

#endif  // INVCLR_NATIVE_PADDED_H_
