// CUTLASS 3.x: a matrix product on sparse wgmma, 2:4 int8 weights by int8 activations, output scaled by one number, int8.
// Compiled once for each tile: -DTILE_M (filters), -DTILE_N (pixels), -DTILE_K, -DCLUSTER_M, -DCLUSTER_N, -DSCHEDULE.
#include "driver.h"

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/dispatch_policy.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/transform/device/transform_universal_adapter.hpp"
#include "cutlass/transform/kernel/sparse_gemm_compressor.hpp"
#include "cutlass/util/packed_stride.hpp"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)

namespace {

using Tile = cute::Shape<cute::Int<TILE_M>, cute::Int<TILE_N>, cute::Int<TILE_K>>;
using Cluster = cute::Shape<cute::Int<CLUSTER_M>, cute::Int<CLUSTER_N>, cute::_1>;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
using Sizes = cute::Shape<int, int, int, int>;

using Schedule = cutlass::gemm::JOINED(KernelTmaWarpSpecialized, SCHEDULE);
using Store = cute::conditional_t<cute::is_same_v<Schedule, cutlass::gemm::KernelTmaWarpSpecializedCooperative>,
                                  cutlass::epilogue::TmaWarpSpecializedCooperative,
                                  cutlass::epilogue::TmaWarpSpecialized>;
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassSparseTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, int32_t, float, void, Columns, 16, int8_t, Columns, 16,
    Store>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassSparseTensorOp, int8_t, Rows, 32, int8_t, Columns, 16, int32_t, Tile,
    Cluster, cutlass::gemm::collective::StageCountAutoCarveout<sizeof(typename Epilogue::SharedStorage)>,
    Schedule>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Sizes, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
using Config = typename Mainloop::SparseConfig;
using Utility = cutlass::transform::kernel::StructuredSparseCompressorUtility<Sizes, int8_t, Rows, Config>;
using Compressor = cutlass::transform::device::TransformUniversalAdapter<
    cutlass::transform::kernel::StructuredSparseCompressor<Sizes, int8_t, Rows, Config, cutlass::arch::Sm90>>;

struct Sparse : Running {
  Gemm gemm;
  void *kept = nullptr, *metadata = nullptr, *workspace = nullptr;
  ~Sparse() override {
    cudaFree(kept);
    cudaFree(metadata);
    cudaFree(workspace);
  }
  bool launch(cudaStream_t stream) override { return gemm.run(stream) == cutlass::Status::kSuccess; }
};

bool zeros(void** memory, size_t bytes) {
  return cudaMalloc(memory, bytes) == cudaSuccess && cudaMemset(*memory, 0, bytes) == cudaSuccess;
}

std::unique_ptr<Running> open(const Product& v) {
  if (v.channels % 32 != 0 || v.filters % 16 != 0) return nullptr;
  const Sizes sizes{v.filters, v.pixels, v.channels, 1};
  using StrideA = cutlass::gemm::TagToStrideA_t<Rows>;
  const auto stride_a = cutlass::make_cute_packed_stride(StrideA{}, cute::make_shape(v.filters, v.channels, 1));
  const auto stride_b =
      cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, cute::make_shape(v.pixels, v.channels, 1));
  const auto stride_d =
      cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, cute::make_shape(v.filters, v.pixels, 1));
  Utility utility(sizes, stride_a);
  auto made = std::make_unique<Sparse>();
  const size_t kept = size_t(utility.get_tensorA_m_physical()) * utility.get_tensorA_k_physical();
  const size_t metadata = size_t(utility.get_metadata_m_physical()) * utility.get_metadata_k_physical();
  if (!zeros(&made->kept, kept) || !zeros(&made->metadata, metadata)) return nullptr;
  cutlass::KernelHardwareInfo hardware;
  cudaGetDevice(&hardware.device_id);
  hardware.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(hardware.device_id);
  typename Compressor::Arguments given{sizes, {v.w, stride_a, made->kept, made->metadata}, {hardware}};
  Compressor compressor;
  if (compressor.can_implement(given) != cutlass::Status::kSuccess ||
      compressor.initialize(given, nullptr) != cutlass::Status::kSuccess ||
      compressor.run() != cutlass::Status::kSuccess || cudaDeviceSynchronize() != cudaSuccess)
    return nullptr;
  using Value = typename Mainloop::ArrayElementA;
  using Meta = typename Mainloop::ElementE;
  typename Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm, sizes,
      {static_cast<Value*>(made->kept), Config::fill_layoutA(sizes), static_cast<const int8_t*>(v.x), stride_b,
       static_cast<Meta*>(made->metadata), Config::fill_layoutE(sizes)},
      {{v.alpha, 0.0f}, nullptr, {}, static_cast<int8_t*>(v.y), stride_d},
      hardware};
  if (Gemm::can_implement(arguments) != cutlass::Status::kSuccess) return nullptr;
  if (size_t bytes = Gemm::get_workspace_size(arguments); bytes && !zeros(&made->workspace, bytes)) return nullptr;
  if (made->gemm.initialize(arguments, made->workspace) != cutlass::Status::kSuccess) return nullptr;
  return made;
}

const Registered registered("sm90 wgmma.sp " TEXT(TILE_M) "x" TEXT(TILE_N) "x" TEXT(TILE_K) " cluster " TEXT(
                                CLUSTER_M) "x" TEXT(CLUSTER_N) " " TEXT(SCHEDULE),
                            open);

}  // namespace
