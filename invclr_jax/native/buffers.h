// XLA's arrays as ours.

#ifndef INVCLR_NATIVE_BUFFERS_H_
#define INVCLR_NATIVE_BUFFERS_H_

#include <new>

#include "elements.h"
#include "pictures.h"
#include "xla/ffi/api/ffi.h"

namespace invclr {

using Result = xla::ffi::Result<xla::ffi::AnyBuffer>;

inline Pictures Of(const xla::ffi::AnyBuffer& array) {
  const auto size = array.dimensions();
  return {size[0], size[1], size[2], size[3]};
}

template <class T>
const T* Data(const xla::ffi::AnyBuffer& array) {
  return static_cast<const T*>(array.untyped_data());
}
template <class T>
T* Data(Result array) {
  return static_cast<T*>(array->untyped_data());
}

// Calls compute(T{}), T being the type of elements, float or bfloat16.
template <class Compute>
xla::ffi::Error ForElements(xla::ffi::DataType type, Compute compute) try {
  using xla::ffi::Error, xla::ffi::ErrorCode;
  if (type == xla::ffi::F32) {
    compute(float{});
#if defined(__AVX512BF16__)
  } else if (type == xla::ffi::BF16) {
    compute(BFloat16{});
#endif
  } else {
    return Error(ErrorCode::kInvalidArgument, "this library has no such elements");
  }
  return Error::Success();
} catch (const std::bad_alloc&) {
  return xla::ffi::Error(xla::ffi::ErrorCode::kResourceExhausted, "no memory");
}

}  // namespace invclr

#endif  // INVCLR_NATIVE_BUFFERS_H_
