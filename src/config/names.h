// Tables of the names that configuration files use for the values of an enumeration.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace weft::config {

template <typename E>
struct Name {
  std::string_view name;
  E value;
};

template <typename E, std::size_t N>
constexpr std::optional<E> value_named(const Name<E> (&names)[N], std::string_view name) {
  for (const Name<E>& entry : names) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

template <typename E, std::size_t N>
constexpr std::string_view name_of(const Name<E> (&names)[N], E value) {
  for (const Name<E>& entry : names) {
    if (entry.value == value) return entry.name;
  }
  return "?";
}

}  // namespace weft::config
