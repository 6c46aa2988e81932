// Matrix descriptors: where a wgmma operand lies in shared memory (PTX ISA, "Matrix Descriptor Format").
#pragma once
#include <cstdint>

namespace emulator {

// A K-major operand: rows of 32 bytes (one k step of 32 bytes or 256 bits), eight rows in a core group.
struct Descriptor {
  uint32_t start, leading, stride;  // bytes
  uint32_t width;                   // of the swizzle: 0, 32, 64 or 128 bytes
  bool well_formed;                 // no base offset, reserved bits zero

  explicit Descriptor(uint64_t bits) {
    static const uint32_t widths[] = {0, 128, 64, 32};
    const auto field = [&](int shift) { return uint32_t(bits >> shift & 0x3FFF) << 4; };
    start = field(0);
    leading = field(16);
    stride = field(32);
    width = widths[bits >> 62];
    well_formed = !(bits & 0x3FFFC000C000C000ull);
  }

  // Byte in the shared window of 16 bytes of a row: half 0 or 1 of its 32 bytes. Swizzling exchanges 16-byte pieces by
  // the address bits 7 to 9: every `width` bytes in turn.
  uint32_t address(uint32_t row, uint32_t half) const {
    if (!width) return start + row / 8 * stride + half * leading + row % 8 * 16;
    const uint32_t plain = start + row / 8 * stride + row % 8 * width + half * 16;
    return plain ^ (plain >> 7 & (width / 16 - 1)) << 4;
  }
};

}  // namespace emulator
