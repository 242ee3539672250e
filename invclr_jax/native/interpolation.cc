// The interpolation that XLA calls through its foreign function interface, in float and double.

#include "interpolation.h"

#include "buffers.h"

namespace invclr {
namespace {

namespace ffi = xla::ffi;

using interpolation::Orders;
using interpolation::Positions;
using Attribute = ffi::Span<const int64_t>;

// Calls compute(T{}), T being the elements' type.
template <class Compute>
ffi::Error For(ffi::DataType type, Compute compute) {
  if (type == ffi::F32) {
    compute(float{});
  } else if (type == ffi::F64) {
    compute(double{});
  } else {
    return ffi::Error(ffi::ErrorCode::kInvalidArgument, "only floats and doubles are interpolated");
  }
  return ffi::Error::Success();
}

template <class T>
Positions<T> At(const ffi::AnyBuffer& rows, const ffi::AnyBuffer& columns) {
  return {Data<T>(rows), Data<T>(columns)};
}

template <class T>
std::vector<const T*> All(const ffi::RemainingArgs& arrays) {
  std::vector<const T*> all;
  for (size_t i = 0; i < arrays.size(); ++i) all.push_back(Data<T>(*arrays.get<ffi::AnyBuffer>(i)));
  return all;
}
template <class T>
std::vector<T*> All(const ffi::RemainingRets& arrays) {
  std::vector<T*> all;
  for (size_t i = 0; i < arrays.size(); ++i) all.push_back(Data<T>(*arrays.get<ffi::AnyBuffer>(i)));
  return all;
}

ffi::Error Interpolate(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer rows,
                       ffi::AnyBuffer columns, ffi::RemainingArgs weights, Result y,
                       Attribute orders) {
  return For(x.element_type(), [&](auto element) {
    using T = decltype(element);
    interpolation::Interpolate(pool, Data<T>(x), At<T>(rows, columns),
                               Orders(orders.begin(), orders.end()), All<T>(weights), Of(x), Of(*y),
                               Data<T>(y));
  });
}

ffi::Error ImageGradient(ffi::ThreadPool pool, ffi::AnyBuffer y, ffi::AnyBuffer rows,
                         ffi::AnyBuffer columns, ffi::RemainingArgs weights, Result x,
                         Attribute orders) {
  return For(y.element_type(), [&](auto element) {
    using T = decltype(element);
    interpolation::ImageGradient(pool, Data<T>(y), At<T>(rows, columns),
                                 Orders(orders.begin(), orders.end()), All<T>(weights), Of(*x),
                                 Of(y), Data<T>(x));
  });
}

ffi::Error WeightGradients(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer rows,
                           ffi::AnyBuffer columns, ffi::AnyBuffer y, ffi::RemainingRets gradients,
                           Attribute orders) {
  return For(x.element_type(), [&](auto element) {
    using T = decltype(element);
    interpolation::WeightGradients(pool, Data<T>(x), At<T>(rows, columns), Data<T>(y),
                                   Orders(orders.begin(), orders.end()), Of(x), Of(y),
                                   All<T>(gradients));
  });
}

auto Ternary() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .Arg<ffi::AnyBuffer>()
      .Arg<ffi::AnyBuffer>()
      .Arg<ffi::AnyBuffer>();
}
auto Weighted() {
  return Ternary().RemainingArgs().Ret<ffi::AnyBuffer>().Attr<Attribute>("orders");
}
auto Weighting() {
  return Ternary().Arg<ffi::AnyBuffer>().RemainingRets().Attr<Attribute>("orders");
}

}  // namespace
}  // namespace invclr

XLA_FFI_DEFINE_HANDLER_SYMBOL(invclr_interpolate, invclr::Interpolate, invclr::Weighted());
XLA_FFI_DEFINE_HANDLER_SYMBOL(invclr_image_gradient, invclr::ImageGradient, invclr::Weighted());
XLA_FFI_DEFINE_HANDLER_SYMBOL(invclr_weight_gradients, invclr::WeightGradients,
                              invclr::Weighting());
