// Pointers of the kernel text. Unchecked builds use plain pointers; checked builds use these classes,
// so that every load and store of global or shared memory passes through the runtime.
#pragma once
#include "machine.h"

namespace emulator {

void load_bytes(void* value, const char* address, int region, int bytes, int alignment);
void store_bytes(const void* value, char* address, int region, int bytes, int alignment);
[[noreturn]] void private_array_overrun(long index, long length);
char* region_base(int region);

#if EMULATOR_CHECKED

template <class T> class Pointer;

// The object a Pointer points at: reading converts it to T, assigning stores.
template <class T> class Reference {
 public:
  Reference(char* address, int region) : address_(address), region_(region) {}
  Reference(const Reference&) = default;
  operator T() const {
    T value;
    if (region_ == private_region) std::memcpy(&value, address_, sizeof(T));
    else load_bytes(&value, address_, region_, sizeof(T), alignof(T));
    return value;
  }
  T operator=(T value) const {
    if (region_ == private_region) std::memcpy(address_, &value, sizeof(T));
    else store_bytes(&value, address_, region_, sizeof(T), alignof(T));
    return value;
  }
  T operator=(const Reference& other) const { return *this = T(other); }
  template <class V> T operator+=(V value) const { return *this = T(T(*this) + value); }
  template <class V> T operator-=(V value) const { return *this = T(T(*this) - value); }
  template <class V> T operator|=(V value) const { return *this = T(T(*this) | value); }
  template <class V> T operator&=(V value) const { return *this = T(T(*this) & value); }
  template <class V> T operator^=(V value) const { return *this = T(T(*this) ^ value); }
  Pointer<T> operator&() const { return Pointer<T>(address_, region_); }

 private:
  char* address_;
  int region_;
};

template <class T> class Pointer {
 public:
  Pointer(char* address, int region) : address_(address), region_(region) {}
  template <class U> Pointer(U* native) : address_((char*)native), region_(private_region) {}
  template <class U> Pointer(Pointer<U> other) : address_(other.address()), region_(other.region()) {}
  Reference<T> operator[](long index) const { return {address_ + index * long(sizeof(T)), region_}; }
  Reference<T> operator*() const { return {address_, region_}; }
  Pointer operator+(long count) const { return {address_ + count * long(sizeof(T)), region_}; }
  Pointer operator-(long count) const { return {address_ - count * long(sizeof(T)), region_}; }
  char* address() const { return address_; }
  int region() const { return region_; }

 private:
  char* address_;
  int region_;
};

template <> class Pointer<void> {
 public:
  Pointer(char* address, int region) : address_(address), region_(region) {}
  template <class U> Pointer(U* native) : address_((char*)native), region_(private_region) {}
  template <class U> Pointer(Pointer<U> other) : address_(other.address()), region_(other.region()) {}
  char* address() const { return address_; }
  int region() const { return region_; }

 private:
  char* address_;
  int region_;
};

inline char* address_of(Pointer<void> pointer) { return pointer.address(); }
inline int region_of(Pointer<void> pointer) { return pointer.region(); }

// An array in registers: bounds are checked and it starts with a pattern, not with zeros.
template <class T, long N> class Local {
 public:
  Local() { std::memset(values_, 0xB7, sizeof(values_)); }
  T& operator[](long index) {
    if (index < 0 || index >= N) private_array_overrun(index, N);
    return values_[index];
  }
  T* operator+(long index) { return &(*this)[index]; }
  operator T*() { return values_; }

 private:
  T values_[N];
};

template <class T> Pointer<T> region_pointer(int region) { return {region_base(region), region}; }
inline Pointer<void> pointer_into(char* address, int region) { return {address, region}; }

#else

template <class T> using Pointer = T*;
template <class T, long N> using Local = T[N];
inline char* address_of(void* pointer) { return (char*)pointer; }
inline int region_of(void*) { return private_region; }
template <class T> T* region_pointer(int region) { return (T*)region_base(region); }
inline void* pointer_into(char* address, int) { return address; }

#endif

}  // namespace emulator
