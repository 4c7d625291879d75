#pragma once
// Memory for rows and frames: kv::Bytes.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace pallas::kv {

// Leaves elements as they are where no value is given. Rows are written in whole by the engine or
// the socket right after; zeros before that would be a second write of every byte that is moved.
template <class T>
struct Uninitialized : std::allocator<T> {
  template <class U>
  struct rebind {                    // NOLINT(readability-identifier-naming)
    using other = Uninitialized<U>;  // NOLINT(readability-identifier-naming)
  };

  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
};

// `Bytes(n)` and `resize(n)` hold anything; zeros are asked for: `Bytes(n, std::byte{})`.
using Bytes = std::vector<std::byte, Uninitialized<std::byte>>;

}  // namespace pallas::kv
