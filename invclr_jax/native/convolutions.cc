// The convolutions that XLA calls through its foreign function interface, in float and bfloat16.

#include "buffers.h"
#include "direct.h"
#include "kernel_gradient.h"
#include "winograd.h"

namespace invclr {
namespace {

namespace ffi = xla::ffi;

ffi::Error WinogradConvolve(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer w, Result y) {
  return ForElements(x.element_type(), [&](auto element) {
    using T = decltype(element);
    winograd::Convolve(pool, Data<T>(x), Data<T>(w), /*flipped=*/false, Of(x), Of(*y), Data<T>(y));
  });
}

ffi::Error WinogradInputGradient(ffi::ThreadPool pool, ffi::AnyBuffer y, ffi::AnyBuffer w,
                                 Result x) {
  return ForElements(y.element_type(), [&](auto element) {
    using T = decltype(element);
    winograd::InputGradient(pool, Data<T>(y), Data<T>(w), Of(y), Of(*x), Data<T>(x));
  });
}

ffi::Error WinogradKernelGradient(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer y,
                                  Result w) {
  return ForElements(x.element_type(), [&](auto element) {
    using T = decltype(element);
    winograd::KernelGradient(pool, Data<T>(x), Data<T>(y), Of(x), Of(y), Data<T>(w));
  });
}

ffi::Error DirectConvolve(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer w, Result y,
                          int64_t stride) {
  return ForElements(x.element_type(), [&](auto element) {
    using T = decltype(element);
    direct::Convolve(pool, Data<T>(x), Data<T>(w), w.dimensions()[0], stride, Of(x), Of(*y),
                   Data<T>(y));
  });
}

ffi::Error DirectInputGradient(ffi::ThreadPool pool, ffi::AnyBuffer y, ffi::AnyBuffer w, Result x,
                               int64_t stride) {
  return ForElements(y.element_type(), [&](auto element) {
    using T = decltype(element);
    direct::InputGradient(pool, Data<T>(y), Data<T>(w), w.dimensions()[0], stride, Of(y), Of(*x),
                        Data<T>(x));
  });
}

ffi::Error DirectKernelGradient(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer y, Result w,
                                int64_t stride) {
  return ForElements(x.element_type(), [&](auto element) {
    using T = decltype(element);
    direct::KernelGradient(pool, Data<T>(x), Data<T>(y), w->dimensions()[0], stride, Of(x), Of(y),
                         Data<T>(w));
  });
}

auto Binary() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .Arg<ffi::AnyBuffer>()
      .Arg<ffi::AnyBuffer>()
      .Ret<ffi::AnyBuffer>();
}
auto Strided() { return Binary().Attr<int64_t>("stride"); }

}  // namespace
}  // namespace invclr

#define INVCLR_DEFINE(name, function, signature) \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(invclr_##name, invclr::function, invclr::signature())

INVCLR_DEFINE(winograd_convolve, WinogradConvolve, Binary);
INVCLR_DEFINE(winograd_input_gradient, WinogradInputGradient, Binary);
INVCLR_DEFINE(winograd_kernel_gradient, WinogradKernelGradient, Binary);
INVCLR_DEFINE(direct_convolve, DirectConvolve, Strided);
INVCLR_DEFINE(direct_input_gradient, DirectInputGradient, Strided);
INVCLR_DEFINE(direct_kernel_gradient, DirectKernelGradient, Strided);
