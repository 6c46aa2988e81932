// Fibers: one stack per CUDA thread and a switch between them. Linux on x86-64 switches with ten
// instructions; everything else goes through ucontext.
#pragma once
#if defined(__x86_64__) && defined(__linux__) && !defined(EMULATOR_UCONTEXT)
#define EMULATOR_FAST_SWITCH 1
#else
#define EMULATOR_FAST_SWITCH 0
#ifdef __APPLE__  // declares ucontext only with these
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#endif
#include <ucontext.h>
#endif

#include <sys/mman.h>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace emulator {

#if EMULATOR_FAST_SWITCH

struct Fiber {
  void* stack_pointer = nullptr;
};

extern "C" __attribute__((visibility("hidden"))) void emulator_switch(void** save, void* load);
// Pushes the registers a callee must keep, stores the stack pointer, and undoes both for the other fiber.
asm(R"(
.text
.hidden emulator_switch
.globl emulator_switch
.type emulator_switch, @function
emulator_switch:
 pushq %rbp
 pushq %rbx
 pushq %r12
 pushq %r13
 pushq %r14
 pushq %r15
 movq %rsp, (%rdi)
 movq %rsi, %rsp
 popq %r15
 popq %r14
 popq %r13
 popq %r12
 popq %rbx
 popq %rbp
 ret
.size emulator_switch, .-emulator_switch
)");

inline void switch_fiber(Fiber& from, Fiber& to) { emulator_switch(&from.stack_pointer, to.stack_pointer); }

inline void start_fiber(Fiber& fiber, char* stack, size_t bytes, void (*body)()) {
  void** top = (void**)((uintptr_t)(stack + bytes) & ~uintptr_t(63));
  *--top = nullptr;        // the return address of body, which never returns; keeps the ABI's alignment
  *--top = (void*)body;    // what emulator_switch returns to
  for (int i = 0; i < 6; i++) *--top = nullptr;
  fiber.stack_pointer = top;
}

#else

struct Fiber {
  ucontext_t context;
};

inline void switch_fiber(Fiber& from, Fiber& to) { swapcontext(&from.context, &to.context); }

inline void start_fiber(Fiber& fiber, char* stack, size_t bytes, void (*body)()) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = stack;
  fiber.context.uc_stack.ss_size = bytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, body, 0);
}

#endif

// Stacks for the threads of a block; pages are only used once touched.
class Stacks {
 public:
  static constexpr size_t bytes = 256 * 1024;
  explicit Stacks(int count) : total_(bytes * count) {
    void* memory = mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_ = memory == MAP_FAILED ? nullptr : (char*)memory;
  }
  ~Stacks() {
    if (base_) munmap(base_, total_);
  }
  Stacks(const Stacks&) = delete;
  bool ok() const { return base_ != nullptr; }
  char* operator[](int i) const { return base_ + bytes * i; }

 private:
  char* base_;
  size_t total_;
};

}  // namespace emulator
