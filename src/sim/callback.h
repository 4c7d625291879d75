#pragma once
// A callable without arguments that is moved, never copied, and that keeps up to 48 bytes in place:
// what the simulator schedules millions of times a second must not allocate, and with its timer's
// state it fills one cache line.

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace pallas::sim {

class Callback {
 public:
  static constexpr std::size_t kInPlace = 48;
  static constexpr std::size_t kAlign = alignof(void*);

  Callback() = default;
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Callback>>>
  Callback(F&& f) {  // NOLINT(google-explicit-constructor): any callable is one
    using Fn = std::decay_t<F>;
    if constexpr (sizeof(Fn) <= kInPlace && alignof(Fn) <= kAlign &&
                  std::is_nothrow_move_constructible_v<Fn>) {
      ::new (static_cast<void*>(store_)) Fn(std::forward<F>(f));
      table_ = &kTable<Fn>;
    } else {
      ::new (static_cast<void*>(store_)) Boxed<Fn>{new Fn(std::forward<F>(f))};
      table_ = &kTable<Boxed<Fn>>;
    }
  }
  Callback(Callback&& other) noexcept { take(other); }
  Callback& operator=(Callback&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback() { reset(); }

  explicit operator bool() const { return table_ != nullptr; }
  void operator()() { table_->call(store_); }
  void reset() {
    if (table_ != nullptr) table_->destroy(store_);
    table_ = nullptr;
  }

 private:
  struct Table {
    void (*call)(void*);
    void (*move)(void* to, void* from);  // and destroys `from`
    void (*destroy)(void*);
  };
  template <class Fn>
  struct Boxed {
    Fn* fn;
    explicit Boxed(Fn* f) : fn(f) {}
    Boxed(Boxed&& other) noexcept : fn(std::exchange(other.fn, nullptr)) {}
    ~Boxed() { delete fn; }
    void operator()() { (*fn)(); }
  };
  template <class Fn>
  static constexpr Table kTable{[](void* f) { (*static_cast<Fn*>(f))(); },
                                [](void* to, void* from) {
                                  ::new (to) Fn(std::move(*static_cast<Fn*>(from)));
                                  static_cast<Fn*>(from)->~Fn();
                                },
                                [](void* f) { static_cast<Fn*>(f)->~Fn(); }};

  void take(Callback& other) noexcept {
    table_ = std::exchange(other.table_, nullptr);
    if (table_ != nullptr) table_->move(store_, other.store_);
  }

  const Table* table_ = nullptr;
  alignas(kAlign) std::byte store_[kInPlace];
};

}  // namespace pallas::sim
