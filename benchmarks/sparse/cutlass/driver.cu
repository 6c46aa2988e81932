// The C interface of the driver, for ctypes: which instances there are, open one on a product, launch it.
#include "driver.h"

std::vector<Instance>& instances() {
  static std::vector<Instance> all;
  return all;
}

extern "C" {

int sparse_count() { return static_cast<int>(instances().size()); }

const char* sparse_name(int index) { return instances()[index].name.c_str(); }

// sizes: filters, pixels, channels. Null when the instance does not take them. The weights are compressed here.
void* sparse_open(int index, const int* sizes, const void* w, const void* x, void* y, float alpha) {
  return instances()[index].open({sizes[0], sizes[1], sizes[2], w, x, y, alpha}).release();
}

int sparse_launch(void* running, void* stream) {
  return static_cast<Running*>(running)->launch(static_cast<cudaStream_t>(stream)) ? 0 : 1;
}

void sparse_close(void* running) { delete static_cast<Running*>(running); }
}
