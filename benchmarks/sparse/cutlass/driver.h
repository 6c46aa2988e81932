// What every CUTLASS instance of the driver offers: see driver.cu.
#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

struct Product {
  int filters, pixels, channels;
  const void* w;  // int8 [filters,channels] on the device; of four neighbouring channels two at most differ from 0
  const void* x;  // int8 [pixels,channels]
  void* y;        // int8 [pixels,filters] = clip(round(alpha * sum))
  float alpha;
};

struct Running {
  virtual ~Running() = default;
  virtual bool launch(cudaStream_t stream) = 0;
};

struct Instance {
  std::string name;
  std::unique_ptr<Running> (*open)(const Product&);  // null: this instance cannot compute it
};

std::vector<Instance>& instances();

struct Registered {
  Registered(std::string name, std::unique_ptr<Running> (*open)(const Product&)) {
    instances().push_back({std::move(name), open});
  }
};
