// The emulator's runtime, compiled once: it runs every block of a launch, one after the other.
#include "accesses.h"

namespace emulator {

ThreadView* current;
Index block_index, block_dim, grid_dim;
uint64_t step_limit;
Machine machine;
alignas(1024) static char shared_memory[512 * 1024];

// What Python passes in and reads back; run.py mirrors the layout.
struct Request {
  uint32_t grid[3], block[3];
  uint64_t step_limit, seed;
  uint32_t checking, tracing;
  uint32_t region_count, block_count;
  Region* regions;         // private, shared window, arguments, shared arrays; shared bases are offsets
  const uint32_t* blocks;  // indices of the blocks to run
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
  me.state = State::finished;
  machine.finished++;
  release_block_if_complete();
  for (;;) to_scheduler(me);
}

static void reset_thread(Thread& thread, int index) {
  thread.index = index;
  thread.thread_index = {unsigned(index) % block_dim.x, unsigned(index) / block_dim.x % block_dim.y,
                         unsigned(index) / (block_dim.x * block_dim.y)};
  thread.line = 0;
  thread.steps = 0;
  thread.state = State::ready;
  thread.phase = thread.warp_phase = thread.group = 0;
  thread.copies.clear();
}

static void run_block(const Request& request, const Stacks& stacks, uint32_t block) {
  block_index = {block % request.grid[0], block / request.grid[0] % request.grid[1],
                 block / (request.grid[0] * request.grid[1])};
  machine.block = block;
  machine.arrived = machine.finished = 0;
  std::memset(machine.shared, 0xB7, machine.shared_bytes);
  if (machine.checking) shadow.start_block(++machine.epoch);
  for (size_t i = 0; i < machine.threads.size(); i++) {
    reset_thread(machine.threads[i], int(i));
    start_fiber(machine.threads[i].fiber, stacks[int(i)], Stacks::bytes, thread_body);
  }
  run_block_threads();
}

static bool prepare(const Request& request) {
  machine.regions.assign(request.regions, request.regions + request.region_count);
  machine.shared = shared_memory;
  machine.shared_bytes = uint32_t(machine.regions[shared_window].size);
  if (machine.shared_bytes > sizeof(shared_memory)) return false;
  for (size_t i = 1; i < machine.regions.size(); i++)
    if (machine.regions[i].argument < 0) machine.regions[i].base = shared_memory + uintptr_t(machine.regions[i].base);
  block_dim = {request.block[0], request.block[1], request.block[2]};
  grid_dim = {request.grid[0], request.grid[1], request.grid[2]};
  step_limit = request.step_limit;
  machine.threads.assign(size_t(block_dim.x) * block_dim.y * block_dim.z, Thread());
  machine.warp_order.clear();
  for (size_t warp = 0; warp * 32 < machine.threads.size(); warp++) machine.warp_order.push_back(int(warp));
  machine.lane_order.clear();
  for (int lane = 0; lane < 32; lane++) machine.lane_order.push_back(lane);
  machine.random = Random(request.seed);
  machine.findings.rows().start(Findings::limit + 1);
  machine.trace.start(request.trace_limit);
  machine.checking = request.checking;
  machine.tracing = request.tracing;
  machine.aborted = false;
  machine.epoch = 1;
  machine.sequence = 0;
  if (machine.checking) shadow.resize(machine.shared_bytes);
  return true;
}

// Returns 0, or 1 when the request is too large for this machine.
extern "C" __attribute__((visibility("default"))) int emulator_run(Request* request) {
  if (!prepare(*request)) return 1;
  const Stacks stacks(int(machine.threads.size()));
  if (!stacks.ok()) return 1;
  for (uint32_t i = 0; i < request->block_count && !machine.aborted; i++)
    run_block(*request, stacks, request->blocks[i]);
  request->findings = machine.findings.rows().data();
  request->finding_count = machine.findings.rows().size();
  request->trace = machine.trace.data();
  request->trace_count = machine.trace.size();
  request->trace_full = machine.trace.full();
  return 0;
}

}  // namespace emulator
