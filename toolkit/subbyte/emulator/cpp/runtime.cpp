// The emulator's runtime, compiled once: it runs every cluster of blocks of a launch, one after the other.
#include "barriers.h"
#include "collectives.h"
#include "matrices.h"
#include "scheduler.h"
#include "wgmma.h"

namespace emulator {

ThreadView* current;
Index block_dim, grid_dim;
uint64_t step_limit;
Machine machine;
constexpr size_t most_shared = 512 * 1024, window_gap = 1024, window_alignment = 1024;

// What Python passes in and reads back; run.py mirrors the layout.
struct Request {
  uint32_t grid[3], block[3], cluster[3];
  uint32_t registers_per_thread;
  uint64_t step_limit, seed;
  uint32_t checking, tracing;
  uint32_t region_count, block_count;
  Region* regions;         // private, shared window, arguments, shared arrays; shared bases are offsets
  const uint32_t* blocks;  // indices of the blocks to run, the blocks of a cluster by rank
  Finding* findings;
  uint64_t finding_count;
  TraceRow* trace;
  uint64_t trace_count;
  uint64_t trace_limit, trace_full;
};

extern "C" void emulator_kernel();

static void thread_body() {
  emulator_kernel();
  Thread& me = machine.self();
  if (checked) check_ended(me);
  me.state = State::finished;
  machine.own_block().finished++;
  machine.finished++;
  machine.events++;
  release_block_if_complete(machine.own_block());
  release_cluster_if_complete();
  for (;;) to_scheduler(me);
}

// Special registers of the cluster: %cluster_ctarank, %cluster_nctarank, %laneid, %warpid.
uint32_t special_register(int which) {
  const Thread& me = machine.self();
  const uint32_t values[] = {uint32_t(me.rank), uint32_t(machine.blocks.size()), uint32_t(me.lane()),
                             uint32_t(me.warp())};
  return values[which];
}

static void reset_thread(const Request& request, Thread& thread, int index, int rank, uint32_t block) {
  thread.thread_index = {unsigned(index) % block_dim.x, unsigned(index) / block_dim.x % block_dim.y,
                         unsigned(index) / (block_dim.x * block_dim.y)};
  thread.block_index = {block % request.grid[0], block / request.grid[0] % request.grid[1],
                        block / (request.grid[0] * request.grid[1])};
  thread.index = index;
  thread.rank = rank;
  thread.block = block;
  thread.slot = rank * machine.slots_per_block + index;
  thread.register_count = request.registers_per_thread;
  if (!machine.checking) return;
  thread.clock = machine.clocks.data() + size_t(rank * machine.block_threads + index) * 2 * machine.slots;
  std::memset(thread.clock, 0, 2 * machine.slots * sizeof(uint32_t));
  own_time(thread) = 1;
}

static void reset_block(Block& block, uint32_t number) {
  block.number = number;
  block.arrived = block.finished = 0;
  block.free_registers = 0;
  for (NamedBarrier& barrier : block.named) {
    barrier.arrived = 0;
    if (machine.checking) barrier.clock.reset(machine.slots);
  }
}

static void reset_cluster() {
  machine.finished = machine.cluster_arrived = 0;
  machine.cluster_generation = 0;
  if (machine.checking) {
    machine.cluster_clock.reset(machine.slots);
    machine.cluster_done.reset(machine.slots);
    meeting_clock.reset(machine.slots);
    shadow.start_blocks();
  }
  mbarriers.clear();
  bulk_copies.clear();
  warpgroups.assign(machine.blocks.size() * size_t(machine.warpgroups()), Warpgroup());
  engine_times.assign(machine.blocks.size() * copy_engines, 0);
}

static void run_cluster(const Request& request, const Stacks& stacks, const uint32_t* numbers) {
  reset_cluster();
  std::memset(machine.shared, 0xB7, machine.blocks.size() * size_t(machine.stride));
  for (size_t rank = 0; rank < machine.blocks.size(); rank++) {
    reset_block(machine.blocks[rank], numbers[rank]);
    for (int i = 0; i < machine.block_threads; i++) {
      const size_t place = rank * size_t(machine.block_threads) + size_t(i);
      Thread& thread = machine.threads[place];
      thread = Thread();
      reset_thread(request, thread, i, int(rank), numbers[rank]);
      start_fiber(thread.fiber, stacks[int(place)], Stacks::bytes, thread_body);
    }
  }
  run_threads();
  if (checked && !machine.aborted) check_copies_left();
}

static void prepare_clocks() {
  const size_t ranks = machine.blocks.size();
  machine.slots_per_block = (machine.block_threads + 31) / 32 * 32;
  machine.copy_slots = ranks * copy_engines;
  machine.dependency_slot = ranks * size_t(machine.slots_per_block + machine.warpgroups());
  machine.slots = machine.dependency_slot + 1 + machine.copy_slots;
  machine.slots = (machine.slots + 31) / 32 * 32;
  if (!machine.checking) return;
  machine.clocks.assign(machine.threads.size() * 2 * machine.slots, 0);
  shadow.resize(ranks * machine.stride);
}

static bool prepare(const Request& request, std::vector<char>& memory) {
  machine.regions.assign(request.regions, request.regions + request.region_count);
  machine.shared_bytes = uint32_t(machine.regions[shared_window].size);
  if (machine.shared_bytes > most_shared) return false;
  const size_t ranks = size_t(request.cluster[0]) * request.cluster[1] * request.cluster[2];
  machine.stride = uint32_t((machine.shared_bytes + window_gap + window_alignment - 1) & ~(window_alignment - 1));
  memory.resize(ranks * machine.stride + window_alignment);
  machine.shared = (char*)((uintptr_t(memory.data()) + window_alignment - 1) & ~uintptr_t(window_alignment - 1));
  block_dim = {request.block[0], request.block[1], request.block[2]};
  grid_dim = {request.grid[0], request.grid[1], request.grid[2]};
  step_limit = request.step_limit;
  machine.block_threads = int(block_dim.x * block_dim.y * block_dim.z);
  machine.blocks.assign(ranks, Block());
  machine.threads.assign(ranks * size_t(machine.block_threads), Thread());
  machine.warp_order.clear();
  const int warps = (machine.block_threads + 31) / 32;
  for (int warp = 0; warp < int(ranks) * warps; warp++) machine.warp_order.push_back(warp);
  machine.lane_order.clear();
  for (int lane = 0; lane < 32; lane++) machine.lane_order.push_back(lane);
  machine.random = Random(request.seed);
  machine.findings.rows().start(Findings::limit + 1);
  machine.trace.start(request.trace_limit);
  machine.checking = request.checking;
  machine.tracing = request.tracing;
  machine.aborted = false;
  machine.sequence = 0;
  prepare_clocks();
  return true;
}

// Returns 0, or 1 when the request is too large for this machine.
extern "C" __attribute__((visibility("default"))) int emulator_run(Request* request) {
  static std::vector<char> memory;
  if (!prepare(*request, memory)) return 1;
  const Stacks stacks(int(machine.threads.size()));
  if (!stacks.ok()) return 1;
  const uint32_t ranks = uint32_t(machine.blocks.size());
  for (uint32_t i = 0; i + ranks <= request->block_count && !machine.aborted; i += ranks)
    run_cluster(*request, stacks, request->blocks + i);
  request->findings = machine.findings.rows().data();
  request->finding_count = machine.findings.rows().size();
  request->trace = machine.trace.data();
  request->trace_count = machine.trace.size();
  request->trace_full = machine.trace.full();
  return 0;
}

}  // namespace emulator
