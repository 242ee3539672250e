// The sums over pixels that XLA calls through its foreign function interface, of float and bfloat16.

#include "moments.h"

#include "buffers.h"

namespace invclr {
namespace {

namespace ffi = xla::ffi;

moments::Size SizeOf(const ffi::AnyBuffer& array) {
  const auto size = array.dimensions();
  return {size[0], size[1], size[2]};
}

ffi::Error PixelSums(ffi::ThreadPool pool, ffi::AnyBuffer w, Result sums) {
  return ForElements(w.element_type(), [&](auto element) {
    using W = decltype(element);
    moments::Sums(pool, Data<W>(w), SizeOf(w), Data<float>(sums));
  });
}

ffi::Error PixelProducts(ffi::ThreadPool pool, ffi::AnyBuffer w, ffi::AnyBuffer u,
                         ffi::AnyBuffer shift, Result sums, Result products) {
  ffi::Error inner;
  const ffi::Error outer = ForElements(w.element_type(), [&](auto w_element) {
    inner = ForElements(u.element_type(), [&](auto u_element) {
      using W = decltype(w_element);
      using U = decltype(u_element);
      moments::Products(pool, Data<W>(w), Data<U>(u), Data<float>(shift), SizeOf(w),
                        Data<float>(sums), Data<float>(products));
    });
  });
  return outer.failure() ? outer : inner;
}

ffi::Error PixelSquares(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer shift,
                        Result squares) {
  return ForElements(x.element_type(), [&](auto element) {
    using X = decltype(element);
    moments::Squares(pool, Data<X>(x), Data<float>(shift), SizeOf(x), Data<float>(squares));
  });
}

auto Unary() {
  return ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>();
}
auto Shifted() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .Arg<ffi::AnyBuffer>()
      .Arg<ffi::AnyBuffer>()
      .Ret<ffi::AnyBuffer>();
}
auto Product() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .Arg<ffi::AnyBuffer>()
      .Arg<ffi::AnyBuffer>()
      .Arg<ffi::AnyBuffer>()
      .Ret<ffi::AnyBuffer>()
      .Ret<ffi::AnyBuffer>();
}

}  // namespace
}  // namespace invclr

XLA_FFI_DEFINE_HANDLER_SYMBOL(invclr_pixel_sums, invclr::PixelSums, invclr::Unary());
XLA_FFI_DEFINE_HANDLER_SYMBOL(invclr_pixel_products, invclr::PixelProducts, invclr::Product());
XLA_FFI_DEFINE_HANDLER_SYMBOL(invclr_pixel_squares, invclr::PixelSquares, invclr::Shifted());
