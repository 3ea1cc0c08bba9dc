// The kinds of error, and the check macro.
//
// Unsupported    this graph or op is outside what we compile; the caller falls back to ATen and says why.
// UserError      the user's input is wrong; the message says what was expected, what was found, what to do.
// InternalError  a bug of this library; KernelMismatch: one that the check option found, a kernel whose result is wrong.
//
// The library never prints and never aborts: it throws one of these, and the bridge decides what the user sees.
#pragma once

#include <cxxinductor/error.h>
#include <fmt/format.h>

#include <string>
#include <utility>

namespace cxxinductor {

class Unsupported : public Error {
 public:
  explicit Unsupported(const std::string& message) : Error(Kind::Unsupported, message) {}
};

class UserError : public Error {
 public:
  explicit UserError(const std::string& message) : Error(Kind::User, message) {}
};

// What the model asserts does not hold for this call's data. The message is the assertion's alone.
class FailedAssertion : public Error {
 public:
  explicit FailedAssertion(const std::string& message) : Error(Kind::Assertion, message) {}
};

class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(Kind::Internal, message) {}
};

class KernelMismatch : public InternalError {
 public:
  using InternalError::InternalError;
};

template <class... Args>
[[noreturn]] void throw_unsupported(fmt::format_string<Args...> format, Args&&... args) {
  throw Unsupported(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void throw_user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void throw_internal(fmt::format_string<Args...> format, Args&&... args) {
  throw InternalError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cxxinductor

// An invariant of this library: CXXI_CHECK(rank == 2, "mm needs rank 2, found {}", rank);
#define CXXI_CHECK(condition, ...)                                                                                                                      \
  do {                                                                                                                                                  \
    if (!(condition)) [[unlikely]]                                                                                                                      \
      throw ::cxxinductor::InternalError(::fmt::format("{}:{}: check failed: {}: ", __FILE_NAME__, __LINE__, #condition) + ::fmt::format(__VA_ARGS__)); \
  } while (false)

#ifndef __FILE_NAME__
#define __FILE_NAME__ __builtin_FILE()
#endif
