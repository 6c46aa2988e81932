// The C interface of the driver, for ctypes: which instances there are, open one on a convolution, launch it.
#include "driver.h"

std::vector<Instance>& instances() {
  static std::vector<Instance> all;
  return all;
}

extern "C" {

int baseline_count() { return static_cast<int>(instances().size()); }

const char* baseline_name(int index) { return instances()[index].name.c_str(); }

// sizes: n, h, w, c, k, r, s, pad, stride, dilation. Null when the instance does not take them.
void* baseline_open(int index, const int* sizes, const void* x, const void* f, void* y, float alpha) {
  Convolution conv{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6],
                   sizes[7], sizes[8], sizes[9], x,        f,        y,        alpha};
  return instances()[index].open(conv).release();
}

int baseline_launch(void* running, void* stream) {
  return static_cast<Running*>(running)->launch(static_cast<cudaStream_t>(stream)) ? 0 : 1;
}

void baseline_close(void* running) { delete static_cast<Running*>(running); }
}
