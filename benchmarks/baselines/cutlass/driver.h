// What every CUTLASS instance of the driver offers: see driver.cu. Sizes are those of a channels-last convolution.
#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

struct Convolution {
  int n, h, w, c, k, r, s, pad, stride, dilation;
  const void* x;  // int8 [n,h,w,c] on the device
  const void* f;  // int8 [k,r,s,c]
  void* y;        // int8 [n,p,q,k] = clip(round(alpha * sum))
  float alpha;
  int p() const { return (h + 2 * pad - (r - 1) * dilation - 1) / stride + 1; }
  int q() const { return (w + 2 * pad - (s - 1) * dilation - 1) / stride + 1; }
};

struct Running {
  virtual ~Running() = default;
  virtual bool launch(cudaStream_t stream) = 0;
};

struct Instance {
  std::string name;
  std::unique_ptr<Running> (*open)(const Convolution&);  // null: this instance cannot compute it
};

std::vector<Instance>& instances();

struct Registered {
  Registered(std::string name, std::unique_ptr<Running> (*open)(const Convolution&)) {
    instances().push_back({std::move(name), open});
  }
};
