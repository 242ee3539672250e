// Vectors as wide as the processor's registers.

#ifndef INVCLR_NATIVE_VECTOR_H_
#define INVCLR_NATIVE_VECTOR_H_

namespace invclr {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif

// A compiler's own vectors, read from and written to any place in an array of numbers. Arithmetic
// goes lane by lane, and a number stands for all lanes.
typedef float Vector __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

inline Vector Load(const float* from) { return *reinterpret_cast<const Vector*>(from); }
inline void Store(float* to, Vector vector) { *reinterpret_cast<Vector*>(to) = vector; }

}  // namespace invclr

#endif  // INVCLR_NATIVE_VECTOR_H_
