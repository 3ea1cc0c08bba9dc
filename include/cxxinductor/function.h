// C++ functions of tensors, compiled: beside cxxinductor.h, for programs that compute with LibTorch.
//
//   auto step = cxxinductor::compile([&](at::Tensor x, at::Tensor y) { return at::mse_loss(net->forward(x), y); });
//   step(x, y).backward();
#pragma once

#include <ATen/core/Tensor.h>
#include <cxxinductor/error.h>
#include <cxxinductor/options.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace cxxinductor {

using Tensors = std::vector<at::Tensor>;

// A compiled function. Copies share what was compiled.
class Function {
 public:
  // The results, with the gradients of eager's. Thread-safe, as far as the function is.
  Tensors operator()(Tensors arguments) const;
  // What became of it, for people: the kernels of each compiled form, or why calls run as they are.
  std::string explain() const;

 private:
  class Impl;
  friend Function compile(std::function<Tensors(Tensors)> function, const Options& options);
  explicit Function(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// The function is called once for each kind of arguments (dtypes, devices, ranks, layouts; which of them require gradients, grad
// mode), with tensors that have no memory, and recorded; sizes that change from call to call become symbols. Afterwards its code
// does not run, so that
//  - what it does may depend on sizes and dtypes of its arguments, not on their elements, and on no other state: a network
//    in training mode and the same one in evaluation mode are two functions;
//  - tensors that it reads beside its arguments (parameters of a module) are kept: they may change, but not be replaced.
// Buffers that it updates in place are updated. A function that reads elements (item(), a data-dependent size), calls under autocast,
// and writes to tensors that require gradients run as they are; explain() says so. Where a function cannot be recorded or compiled, there is
// also a warning.
Function compile(std::function<Tensors(Tensors)> function, const Options& options = without_waiting());

namespace detail {

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Result = std::decay_t<R>;
  static constexpr size_t arity = sizeof...(A);
  static constexpr bool takes_tensors = (std::is_same_v<std::decay_t<A>, at::Tensor> && ...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};

inline Tensors to_list(Tensors results) { return results; }
inline Tensors to_list(at::Tensor result) { return {std::move(result)}; }
template <class... T>
Tensors to_list(std::tuple<T...> results) {
  return std::apply([](auto&... each) { return Tensors{std::move(each)...}; }, results);
}

template <class Callable, size_t... i>
auto spread(Callable& callable, const Tensors& arguments, std::index_sequence<i...>) {
  return callable(arguments.at(i)...);
}

template <class R>
struct FromList;
template <>
struct FromList<Tensors> {
  static Tensors make(Tensors results) { return results; }
};
template <>
struct FromList<at::Tensor> {
  static at::Tensor make(Tensors results) { return std::move(results.at(0)); }
};
template <class... T>
struct FromList<std::tuple<T...>> {
  static std::tuple<T...> make(Tensors results) { return make(results, std::index_sequence_for<T...>()); }
  template <size_t... i>
  static std::tuple<T...> make(Tensors& results, std::index_sequence<i...>) {
    return {std::move(results.at(i))...};
  }
};

}  // namespace detail

// A compiled function with the signature of the one that it was made of.
template <class Result>
class TypedFunction {
 public:
  explicit TypedFunction(Function function, size_t arity) : function_(std::move(function)), arity_(arity) {}
  template <class... Arguments>
  Result operator()(Arguments&&... arguments) const {
    if (sizeof...(arguments) != arity_) throw Error(Error::Kind::User, "a compiled function of " + std::to_string(arity_) + " tensors was called with " + std::to_string(sizeof...(arguments)));
    return detail::FromList<Result>::make(function_(Tensors{std::forward<Arguments>(arguments)...}));
  }
  std::string explain() const { return function_.explain(); }

 private:
  Function function_;
  size_t arity_;
};

// The same for a callable that takes tensors one by one, and returns a tensor, a std::tuple of tensors or a list of them.
template <class Callable, class S = detail::Signature<std::decay_t<Callable>>, std::enable_if_t<S::takes_tensors, int> = 0>
TypedFunction<typename S::Result> compile(Callable callable, const Options& options = without_waiting()) {
  std::function<Tensors(Tensors)> function = [callable = std::move(callable)](Tensors arguments) mutable {
    return detail::to_list(detail::spread(callable, arguments, std::make_index_sequence<S::arity>()));
  };
  return TypedFunction<typename S::Result>(compile(std::move(function), options), S::arity);
}

}  // namespace cxxinductor
