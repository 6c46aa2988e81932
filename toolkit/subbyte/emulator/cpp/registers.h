// Arrays in registers of kernels that use wgmma. A multiplication reads and writes registers on its own between its
// issue and the wgmma.wait_group that waits for it, so each register knows who may be using it.
#pragma once
#include "pointers.h"

namespace emulator {

// What is known about one register. `touched`: 1 + the wgmma.fence count at its last use by ordinary code.
// `multiplication`: 1 + the thread's number of the last wgmma that uses it, as accumulator or as part of A.
struct RegisterState {
  uint32_t touched = 0, multiplication = 0, line = 0;
  int32_t accumulator_of = -1;  // instruction number, or -1 for A
  bool operand = false;         // part of A
};

// A register as wgmma gets it; without state nothing is known of it, and then `copy` is its value.
struct RegisterOperand {
  uint32_t* value;
  RegisterState* state;
  uint32_t copy;
};

// Registers whose C++ scope ends keep their values for the multiplications that still read them.
void registers_end_in_flight(const RegisterState* first, long count);
void register_used_in_flight(const RegisterState& state, bool writes);

inline bool in_flight(const RegisterState& state) { return state.multiplication > current->multiplications_done; }

#if EMULATOR_CHECKED

inline void touch(RegisterState& state, bool writes) {
  if (in_flight(state) && (writes || state.accumulator_of >= 0)) register_used_in_flight(state, writes);
  state.touched = current->register_fences + 1;
}

// One register of an array: reading converts it to T.
template <class T> class Register {
 public:
  Register(T* value, RegisterState* state) : value_(value), state_(state) {}
  Register(const Register&) = default;
  operator T() const {
    touch(*state_, false);
    return *value_;
  }
  T operator=(T value) const {
    touch(*state_, true);
    return *value_ = value;
  }
  T operator=(const Register& other) const { return *this = T(other); }
  template <class V> T operator+=(V value) const { return *this = T(T(*this) + value); }
  template <class V> T operator-=(V value) const { return *this = T(T(*this) - value); }
  template <class V> T operator|=(V value) const { return *this = T(T(*this) | value); }
  template <class V> T operator&=(V value) const { return *this = T(T(*this) & value); }
  template <class V> T operator^=(V value) const { return *this = T(T(*this) ^ value); }
  T* operator&() const {
    touch(*state_, true);
    return value_;
  }
  RegisterOperand operand() const { return {(uint32_t*)value_, state_, 0}; }

 private:
  T* value_;
  RegisterState* state_;
};

template <class T, long N> class Registers {
 public:
  Registers() { std::memset(values_, 0xB7, sizeof(values_)); }
  ~Registers() {
    if (current->multiplications == current->multiplications_done) return;
    bool used = false;
    for (const RegisterState& state : states_) used |= in_flight(state);
    if (used) registers_end_in_flight(states_, N);
  }
  Register<T> operator[](long index) {
    if (index < 0 || index >= N) private_array_overrun(index, N);
    return {values_ + index, states_ + index};
  }
  // The address of a vector access: up to four registers from here on are used.
  T* operator+(long index) {
    if (index < 0 || index >= N) private_array_overrun(index, N);
    for (long i = index; i < N && i < index + 4; i++) touch(states_[i], true);
    return values_ + index;
  }

 private:
  alignas(16) T values_[N];
  RegisterState states_[N];
};

template <class T> RegisterOperand register_operand(Register<T> reg) { return reg.operand(); }

#else

template <class T, long N> using Registers = T[N];

#endif

template <class T> RegisterOperand register_operand(T& value) { return {(uint32_t*)&value, nullptr, uint32_t(value)}; }
template <class T> RegisterOperand register_operand(const T& value) { return {nullptr, nullptr, uint32_t(value)}; }

}  // namespace emulator
