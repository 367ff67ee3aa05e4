// Result<T, E>: a value, or an error that says why there is none. Operations that can fail and
// parsers return it. It is our own class because g++ 12 has std::expected only under -std=c++2b,
// and clang 14 refuses it there.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace weft {

enum class ErrorKind : unsigned char {
  kInvalid,      // the arguments or the input are invalid
  kExhausted,    // a bound of the configuration is reached
  kNotFound,     // no such object
  kWrongState,   // the state of the object does not allow the operation
  kBusy,         // the object is in use elsewhere
  kUnsupported,  // this machine or this build does not have it
  kSystem,       // the operating system refused
};

// An error as one line for a person: what is wrong, where, and what was expected.
struct Error {
  ErrorKind kind = ErrorKind::kInvalid;
  std::string message;
};

template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }

  // REQUIRES has_value().
  T& value() & { return *check(); }
  const T& value() const& { return *const_cast<Result*>(this)->check(); }
  T&& value() && { return std::move(*check()); }
  T& operator*() & { return *check(); }
  const T& operator*() const& { return *const_cast<Result*>(this)->check(); }
  T* operator->() { return check(); }
  const T* operator->() const { return const_cast<Result*>(this)->check(); }

  // REQUIRES !has_value().
  const E& error() const {
    WEFT_ASSERT(state_.index() == 1);
    return *std::get_if<1>(&state_);
  }

 private:
  T* check() {
    WEFT_ASSERT(state_.index() == 0);
    return std::get_if<0>(&state_);
  }
  std::variant<T, E> state_;
};

// The result of an operation without a value: success, or the error.
template <typename E>
class [[nodiscard]] Result<void, E> {
 public:
  Result() = default;
  Result(E error) : error_(std::move(error)) {}
  explicit operator bool() const { return !error_; }
  bool has_value() const { return !error_; }
  void value() const { WEFT_ASSERT(!error_); }
  const E& error() const {
    WEFT_ASSERT(error_);
    return *error_;
  }

 private:
  std::optional<E> error_;
};

}  // namespace weft

#define WEFT_CONCAT_(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_(a, b)
#define WEFT_TRY_(declaration, expression, name) \
  auto name = (expression);                      \
  if (!name) return ::std::move(name).error();   \
  declaration = ::std::move(name).value()
// WEFT_TRY(auto port, open_port(config)) declares `port`, or returns the error from the enclosing
// function. WEFT_TRY and WEFT_CHECK are the only macros that return.
#define WEFT_TRY(declaration, expression) \
  WEFT_TRY_(declaration, expression, WEFT_CONCAT(weft_try_, __LINE__))
// WEFT_CHECK(do_it()): as WEFT_TRY, for a Result<void>.
#define WEFT_CHECK(expression)                                                        \
  do {                                                                                \
    if (auto weft_checked = (expression); !weft_checked) return weft_checked.error(); \
  } while (false)
