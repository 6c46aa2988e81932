// CUTLASS 2.x: implicit GEMM on mma.sync m16n8k32 with cp.async, int8 to int32, output scaled by one number, int8.
#include "driver.h"

#include "cutlass/conv/kernel/default_conv2d_fprop.h"
// (before the device header, which does not include all it uses)
#include "cutlass/conv/device/implicit_gemm_convolution.h"
#include "cutlass/epilogue/thread/linear_combination_clamp.h"

namespace {

using Layout = cutlass::layout::TensorNHWC;

template <int M, int N, int WarpM, int WarpN, int Stages, int TileK = 64>
struct Form {
  using Op = cutlass::epilogue::thread::LinearCombinationClamp<int8_t, 8, int32_t, float>;
  using Kernel = typename cutlass::conv::kernel::DefaultConv2dFprop<
      int8_t, Layout, int8_t, Layout, int8_t, Layout, int32_t, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
      cutlass::gemm::GemmShape<M, N, TileK>, cutlass::gemm::GemmShape<WarpM, WarpN, TileK>,
      cutlass::gemm::GemmShape<16, 8, 32>, Op, cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<4>, Stages,
      cutlass::arch::OpMultiplyAddSaturate, cutlass::conv::IteratorAlgorithm::kOptimized>::Kernel;
  using Device = cutlass::conv::device::ImplicitGemmConvolution<Kernel>;

  struct Ampere : Running {
    Device device;
    bool launch(cudaStream_t stream) override { return device.run(stream) == cutlass::Status::kSuccess; }
  };

  static std::unique_ptr<Running> open(const Convolution& v) {
    if (v.c % 16 != 0 || v.k % 16 != 0) return nullptr;
    cutlass::conv::Conv2dProblemSize size({v.n, v.h, v.w, v.c}, {v.k, v.r, v.s, v.c}, {v.pad, v.pad, v.pad, v.pad},
                                          {v.stride, v.stride}, {v.dilation, v.dilation}, {v.n, v.p(), v.q(), v.k},
                                          cutlass::conv::Mode::kCrossCorrelation, 1);
    auto tensor = [](const void* data, int d1, int d2, int d3) {
      return cutlass::TensorRef<int8_t, Layout>(static_cast<int8_t*>(const_cast<void*>(data)),
                                                Layout::packed({1, d1, d2, d3}));
    };
    typename Device::Arguments arguments(size, tensor(v.x, v.h, v.w, v.c), tensor(v.f, v.r, v.s, v.c),
                                         tensor(v.y, v.p(), v.q(), v.k), tensor(v.y, v.p(), v.q(), v.k),
                                         {v.alpha, 0.0f});
    if (Device::can_implement(arguments) != cutlass::Status::kSuccess) return nullptr;
    auto made = std::make_unique<Ampere>();
    if (Device::get_workspace_size(arguments) != 0) return nullptr;
    if (made->device.initialize(arguments, nullptr) != cutlass::Status::kSuccess) return nullptr;
    return made;
  }

  static std::string name() {
    return "sm80 mma.sync " + std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(TileK) + " stages " +
           std::to_string(Stages);
  }
};

template <class F>
bool add() {
  instances().push_back({F::name(), F::open});
  return true;
}

const bool added = add<Form<64, 64, 32, 32, 4>>() && add<Form<128, 64, 64, 32, 4>>() &&
                   add<Form<128, 128, 64, 64, 3>>() && add<Form<256, 64, 64, 64, 3>>() &&
                   add<Form<128, 64, 64, 32, 3, 128>>();

}  // namespace
