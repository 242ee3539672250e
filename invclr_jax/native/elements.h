// What images and kernels are made of, float or bfloat16, and how products read it.
//
// A product of matrices reads words of 32 bits: one float, or a pair of bfloat16 that are neighbours
// along the axis that is summed over. Sums and transformations are in float32.

#ifndef INVCLR_NATIVE_ELEMENTS_H_
#define INVCLR_NATIVE_ELEMENTS_H_

#include <cstdint>

#include "vector.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace invclr {

struct BFloat16 {
  uint16_t bits;
};

// Word: what products read. kPair: how many elements a word holds.
template <class T>
struct Element;

template <>
struct Element<float> {
  using Word = float;
  static constexpr int kPair = 1;
};

inline Vector Read(const float* from) { return Load(from); }
inline void Write(float* to, Vector vector) { Store(to, vector); }
// Puts elements into words, the first (half 0) or the second of each.
inline void WriteHalf(float* to, Vector vector, int) { Store(to, vector); }

// sum + a b, lane by lane; a stands for all lanes.
inline Vector MultiplyAdd(float a, const float* b, Vector sum) { return sum + a * Load(b); }

#if defined(__AVX512BF16__)

template <>
struct Element<BFloat16> {
  using Word = uint32_t;
  static constexpr int kPair = 2;
};

inline Vector Read(const BFloat16* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return (Vector)_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16);
}
// To the nearest, ties to even. (Numbers below 2^-126 become 0.)
inline __m256i Round(Vector vector) { return (__m256i)_mm512_cvtneps_pbh((__m512)vector); }
inline void Write(BFloat16* to, Vector vector) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), Round(vector));
}
// The first half clears the second.
inline void WriteHalf(uint32_t* to, Vector vector, int half) {
  __m512i words = _mm512_cvtepu16_epi32(Round(vector));
  if (half == 1) words = _mm512_or_si512(_mm512_slli_epi32(words, 16), _mm512_loadu_si512(to));
  _mm512_storeu_si512(to, words);
}

// sum + a[0] b[0] + a[1] b[1] for the pairs of a word.
inline Vector MultiplyAdd(uint32_t a, const uint32_t* b, Vector sum) {
  return (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)),
                                  (__m512bh)_mm512_loadu_si512(b));
}

#endif

template <class T>
using Word = typename Element<T>::Word;
template <class T>
constexpr int kPair = Element<T>::kPair;

}  // namespace invclr

#endif  // INVCLR_NATIVE_ELEMENTS_H_
