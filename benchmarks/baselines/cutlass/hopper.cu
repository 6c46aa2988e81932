// CUTLASS 3.x: implicit GEMM on wgmma with TMA im2col loads, int8 to int32, output scaled by one number, int8.
// Compiled once for each tile: -DTILE_M, -DTILE_N, -DTILE_K, -DCLUSTER_M, -DCLUSTER_N. Of the schedules CUTLASS 4 has, convolutions
// take the plain warp-specialized one alone ("Persistent schedules not support for conv yet").
#include "driver.h"

#include "cute/tensor.hpp"
#include "cutlass/kernel_hardware_info.hpp"
#include "cutlass/conv/collective/collective_builder.hpp"
#include "cutlass/conv/convnd_problem_shape.hpp"
#include "cutlass/conv/device/conv_universal_adapter.hpp"
#include "cutlass/conv/kernel/conv_universal.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"

namespace {

constexpr auto kForward = cutlass::conv::Operator::kFprop;
using Tile = cute::Shape<cute::Int<TILE_M>, cute::Int<TILE_N>, cute::Shape<cute::Int<TILE_K>>>;
using Cluster = cute::Shape<cute::Int<CLUSTER_M>, cute::Int<CLUSTER_N>, cute::_1>;
using Layout = cutlass::layout::TensorNHWC;

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, int32_t, float, void, Layout, 16, int8_t, Layout, 16,
    cutlass::epilogue::TmaWarpSpecialized>::CollectiveOp;
using Mainloop = typename cutlass::conv::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, kForward, int8_t, Layout, 16, int8_t, Layout, 16, int32_t,
    Tile, Cluster,
    cutlass::conv::collective::StageCountAutoCarveout<sizeof(typename Epilogue::SharedStorage)>,
    cutlass::conv::KernelImplicitTmaWarpSpecializedSm90>::CollectiveOp;
using Problem = cutlass::conv::ConvProblemShape<kForward, 2>;
using Kernel = cutlass::conv::kernel::ConvUniversal<Problem, Mainloop, Epilogue, void>;
using Adapter = cutlass::conv::device::ConvUniversalAdapter<Kernel>;

struct Hopper : Running {
  Adapter adapter;
  void* workspace = nullptr;
  ~Hopper() override { cudaFree(workspace); }
  bool launch(cudaStream_t stream) override {
    auto params = adapter.params();
    return Adapter::run(params, stream) == cutlass::Status::kSuccess;
  }
};

std::unique_ptr<Running> open(const Convolution& v) {
  if (v.c % 16 != 0 || v.k % 16 != 0) return nullptr;
  Problem problem(cutlass::conv::Mode::kCrossCorrelation, {v.n, v.h, v.w, v.c}, {v.k, v.r, v.s, v.c}, {v.pad, v.pad},
                  {v.pad, v.pad}, {v.stride, v.stride}, {v.dilation, v.dilation}, 1);
  typename Adapter::Arguments arguments{};
  arguments.problem_shape = problem;
  arguments.mainloop.ptr_A = static_cast<const int8_t*>(v.x);
  arguments.mainloop.ptr_B = static_cast<const int8_t*>(v.f);
  arguments.epilogue.ptr_C = nullptr;
  arguments.epilogue.ptr_D = static_cast<int8_t*>(v.y);
  using Stride = typename Kernel::StrideD;
  Stride stride{};
  // Output pixels are rows of K values; n, p and q follow each other without gaps.
  cute::for_each(cute::make_seq<cute::rank<0>(Stride{})>{}, [&](auto i) {
    constexpr int place = decltype(i)::value;
    const int64_t steps[] = {int64_t(v.k), int64_t(v.k) * v.q(), int64_t(v.k) * v.q() * v.p()};
    cute::get<0, place>(stride) = steps[place];
  });
  arguments.epilogue.dD = stride;
  arguments.epilogue.thread.alpha = v.alpha;
  arguments.epilogue.thread.beta = 0.0f;
  int device = 0;
  cudaGetDevice(&device);
  arguments.hw_info.device_id = device;
  cudaDeviceGetAttribute(&arguments.hw_info.sm_count, cudaDevAttrMultiProcessorCount, device);
  if (Adapter::can_implement(arguments) != cutlass::Status::kSuccess) return nullptr;
  auto made = std::make_unique<Hopper>();
  if (auto bytes = Adapter::get_workspace_size(arguments); bytes && cudaMalloc(&made->workspace, bytes) != cudaSuccess)
    return nullptr;
  if (made->adapter.initialize(arguments, made->workspace) != cutlass::Status::kSuccess) return nullptr;
  return made;
}

const Registered registered("sm90 wgmma im2col " + std::to_string(TILE_M) + "x" + std::to_string(TILE_N) + "x" +
                                std::to_string(TILE_K) + " cluster " + std::to_string(CLUSTER_M) + "x" +
                                std::to_string(CLUSTER_N),
                            open);

}  // namespace
