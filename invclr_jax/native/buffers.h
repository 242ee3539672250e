// XLA's arrays as ours.

#ifndef INVCLR_NATIVE_BUFFERS_H_
#define INVCLR_NATIVE_BUFFERS_H_

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

}  // namespace invclr

#endif  // INVCLR_NATIVE_BUFFERS_H_
