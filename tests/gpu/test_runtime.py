"""What the GPU runtime takes from cuda-core and what it keeps: loading, launches, graphs, views, telemetry, faults.

Its kernels are compiled where it runs (NVRTC, no TVM) and no bundle is needed:
``PYTHONPATH=toolkit python -m pytest -m gpu tests/gpu/test_runtime.py``. What may break the context runs alone.
"""

import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from subbyte.device.launch import Argument, Launch
from subbyte.errors import BuildFailed, InvalidInput, MissingDependency
from subbyte.gpu.arrays import device_pointer, to_host
from subbyte.gpu.driver import CudaError, detect
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.telemetry import Telemetry, driver_version
from subbyte.gpu.timing import TimingProtocol, time_launch
from subbyte.kernel import nvrtc

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(60)]

TEXT = """
typedef unsigned long long u64;
__device__ u64 now() { u64 t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t; }
extern "C" __global__ void add(const unsigned* a, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[i] + 10;
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void fifty() { u64 start = now(); while (now() < start + 50000) ; }
extern "C" __global__ void shared(unsigned* out) {
  extern __shared__ unsigned held[];
  held[threadIdx.x + 12288] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = held[12288 + (threadIdx.x ^ 1)];
}
extern "C" __global__ void stray(unsigned* out) { out[1ull << 44] = 1; }
extern "C" __global__ void spin(volatile unsigned* out) { while (out[0] != 12345) ; }
"""
HOPPER = """
extern "C" __global__ void __cluster_dims__(2, 1, 1) ranks(unsigned* out) {
  unsigned rank, count;
  asm("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %cluster_nctarank;" : "=r"(count));
  if (threadIdx.x == 0) out[blockIdx.x] = 16 * count + rank;
}
extern "C" __global__ void ahead(volatile u64* t) {
  u64 start = now();
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  while (now() < start + 1000000) ;
  t[0] = now();
}
extern "C" __global__ void behind(volatile u64* t) {
  u64 start = now();
  asm volatile("griddepcontrol.wait;" ::: "memory");
  t[1] = start;
  t[2] = t[0];
}
"""
N = 256
WORDS = np.arange(N, dtype=np.uint32)
ADD = Launch(
    "add", (2, 1, 1), (N // 2, 1, 1), 0,
    (Argument("A", "uint32", (N,), "in"), Argument("Out", "uint32", (N,), "out")),
)  # fmt: skip
QUICK = TimingProtocol(min_total_ms=6, warmup_ms=1, repeats=3, cold_launches=5, cold_repeats=3, spin_up_ms=50)


@pytest.fixture(scope="module")
def cubin(device):
    try:
        return nvrtc.compile_cubin(TEXT + ("" if _before_hopper(device) else HOPPER), device.info.arch)[0]
    except MissingDependency as error:
        pytest.skip(str(error))


@pytest.fixture
def load(device, cubin):
    """Loads kernels by name; unloads them at the end."""
    loaded = []

    def one(entry):
        if entry in ("ranks", "ahead", "behind") and _before_hopper(device):
            pytest.skip(f"{device.info.arch} has neither clusters nor programmatic launches")
        loaded.append(device.load(cubin, entry))
        return loaded[-1]

    yield one
    device.synchronize()
    for function in loaded:
        function.unload()


def _before_hopper(device):
    return int(re.sub(r"\D", "", device.info.arch)) < 90


@pytest.fixture
def words(device):
    """Device buffers of so many words, zeroed or holding an array; freed at the end."""
    made = []

    def buffer(content):
        array = np.zeros(content, np.uint32) if isinstance(content, int) else content
        made.append(device.upload(array))
        return made[-1]

    yield buffer
    for one in made:
        one.free()


@pytest.fixture
def gpu(device, cubin):
    with GpuKernel(cubin, ADD, device) as kernel:
        yield kernel


def test_the_device_is_described(device):
    (info, *_) = detect()
    assert info == device.info
    assert re.fullmatch(r"sm_\d+a?", info.arch)
    assert re.fullmatch(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.0", info.bus_id)
    assert info.sms > 1
    assert info.l2_bytes > 1 << 20
    assert info.memory_bytes > 1 << 30
    assert info.shared_per_block >= 48 << 10


def test_nvrtc_compiles_and_refuses_here_too(device):
    cubin, ptx, log = nvrtc.compile_both(TEXT, device.info.arch)
    assert cubin.startswith(b"\x7fELF")
    assert ".entry add" in ptx
    assert "Used" in log
    with pytest.raises(BuildFailed, match=r"NVRTC refused the kernel for .*undefined"):
        nvrtc.compile_cubin('extern "C" __global__ void k(int* p) { *p = missing; }', device.info.arch)


def test_a_kernel_is_loaded_launched_and_unloaded(device, load, words):
    function = load("add")
    assert 0 < function.attributes.registers < 256
    assert function.attributes.max_threads >= N
    source, target = words(WORDS), words(N)
    function.launch((2, 1, 1), (N // 2, 1, 1), 0, [source.pointer, target.pointer])
    assert (target.download((N,), np.uint32) == WORDS + 10).all()
    function.launch((1, 1, 1), (N, 1, 1), 0, [target.pointer, target.pointer])
    assert (target.download((N,), np.uint32) == WORDS + 20).all(), "another geometry of the same kernel"
    load("nothing").launch((1, 1, 1), (1, 1, 1), 0, [])


def test_dynamic_shared_memory_past_the_default(device, load, words):
    function, out = load("shared"), words(64)
    function.allow_shared(64 << 10)
    function.launch((1, 1, 1), (64, 1, 1), 64 << 10, [out.pointer])
    assert (out.download((64,), np.uint32) == np.arange(64) ^ 1).all()


def test_a_cluster_is_formed(device, load, words):
    out = words(4)
    load("ranks").launch((4, 1, 1), (32, 1, 1), 0, [out.pointer])
    assert out.download((4,), np.uint32).tolist() == [32, 33, 32, 33]


@pytest.mark.parametrize("through", ["stream", "graph"])
@pytest.mark.parametrize("overlap", [True, False])
def test_a_programmatic_launch_begins_before_the_one_ahead_has_ended(device, load, words, overlap, through):
    ahead, behind, times = load("ahead"), load("behind"), words(6)

    def both():
        ahead.launch((1, 1, 1), (1, 1, 1), 0, [times.pointer])
        behind.launch((1, 1, 1), (1, 1, 1), 0, [times.pointer], overlap)

    both()  # loads the code
    device.synchronize()
    if through == "stream":
        both()
        device.synchronize()
    else:
        with device.graph(both) as replay:
            replay()
            device.synchronize()
    ended, began, seen = (int(value) for value in times.download((3,), np.uint64))
    assert seen == ended, "it waited for what was written"
    assert (began < ended - 100_000) == overlap, (began - ended, "ns after the end")


def test_a_graph_replays_what_was_captured(device, load, words):
    function, out = load("add"), words(N)
    with device.graph(lambda: function.launch((1, 1, 1), (N, 1, 1), 0, [out.pointer, out.pointer])) as replay:
        device.synchronize()
        assert not out.download((N,), np.uint32).any(), "a capture runs nothing"
        for _ in range(3):
            replay()
        assert (out.download((N,), np.uint32) == 30).all()


def test_a_failed_capture_leaves_the_stream_usable(device, load, words):
    function, out = load("add"), words(N)
    with pytest.raises(ZeroDivisionError), device.graph(lambda: 1 / 0):
        pass
    with pytest.raises(CudaError) as caught, device.graph(lambda: device.call("cuStreamSynchronize", device.stream)):
        pass
    assert caught.value.kind == "launch"
    function.launch((1, 1, 1), (N, 1, 1), 0, [out.pointer, out.pointer])
    assert (out.download((N,), np.uint32) == 10).all()


def test_a_kernel_of_fifty_microseconds_is_timed(device, load):
    function = load("fifty")
    timing = time_launch(device, lambda: function.launch((1, 1, 1), (1, 1, 1), 0, []), QUICK)
    assert 49 < timing.microseconds < 58, timing.samples
    assert timing.spread < 0.05, timing.samples
    assert 45 < timing.cold_microseconds < 70, timing.cold_samples


def test_a_launch_costs_the_processor_little(device, load):
    function = load("nothing")

    def launches():
        for _ in range(2000):
            function.launch((1, 1, 1), (32, 1, 1), 0, [])

    launches()
    device.synchronize()
    start = time.perf_counter()
    launches()
    microseconds = (time.perf_counter() - start) / 2000 * 1e6
    device.synchronize()
    print(f"{microseconds:.2f} us a launch")
    assert microseconds < 15


def test_telemetry_reads_what_the_gpu_does(device):
    pytest.importorskip("pynvml")
    telemetry = Telemetry(device.info.bus_id)
    device.elapsed_us(device.flush_l2)
    snapshot = telemetry.snapshot()
    assert 100 < snapshot.sm_mhz < 4000
    assert 100 < snapshot.memory_mhz < 20000
    assert 10 < snapshot.power_watts < 2000
    assert 10 < snapshot.temperature_c < 110
    assert isinstance(snapshot.throttle, tuple)
    assert telemetry.uuid().startswith("GPU-")
    assert re.match(r"\d+\.\d+", driver_version())
    assert device.info.driver_version == driver_version()


# Views of other libraries' arrays


def _torch():
    return pytest.importorskip("torch")


def _cupy():
    return pytest.importorskip("cupy")


def _of_torch(array):
    return _torch().from_numpy(array.view(np.int32)).cuda()


def _of_cupy(array):
    return _cupy().asarray(array)


def _by_interface(array):
    held = _cupy().asarray(array)
    return SimpleNamespace(__cuda_array_interface__=held.__cuda_array_interface__, held=held)


def _by_dlpack(array):
    held = _cupy().asarray(array)
    return SimpleNamespace(__dlpack__=held.__dlpack__, __dlpack_device__=held.__dlpack_device__, held=held)


KINDS = [_of_torch, _of_cupy, _by_interface, _by_dlpack]


@pytest.mark.parametrize("made", KINDS)
def test_arrays_of_other_libraries_run_in_place(gpu, made):
    given, out = made(WORDS), made(np.zeros(N, np.uint32))
    gpu.run_device({"A": given, "Out": out})
    host, _ = to_host(out, "out")
    assert (host.view(np.uint32) == WORDS + 10).all()
    host, _ = to_host(given, "given")
    assert (host.view(np.uint32) == WORDS).all()


@pytest.mark.parametrize("made", [_of_torch, _of_cupy])
def test_the_pointer_is_the_arrays_own(device, made):
    whole = made(WORDS.reshape(4, 64))
    address = whole.data_ptr() if made is _of_torch else whole.data.ptr
    ordinal = device.info.ordinal
    assert device_pointer(whole, "A", (N,), ordinal) == address
    assert device_pointer(whole[1:], "A", (3, 64), ordinal) == address + 4 * 64
    assert device_pointer(whole[2:3], "A", (64,), ordinal) == address + 4 * 128
    with pytest.raises(InvalidInput, match="not C-contiguous"):
        device_pointer(whole.T, "A", (N,), ordinal)
    with pytest.raises(InvalidInput, match="not C-contiguous"):
        device_pointer(whole[:, ::2], "A", (N // 2,), ordinal)
    with pytest.raises(InvalidInput, match="must hold 256 words"):
        device_pointer(whole[1:], "A", (N,), ordinal)
    with pytest.raises(InvalidInput, match="is on cuda:0: must be on cuda:1"):
        device_pointer(whole, "A", (N,), 1)


def test_torch_tensors_that_do_not_fit_are_refused():
    torch = _torch()
    good = torch.zeros(N, dtype=torch.int32, device="cuda")
    for wrong, words in (
        (good.cpu(), "host memory: must be on cuda:0"),
        (good.to(torch.int64), "elements of type int64"),
        (good.to(torch.float32), "elements of type float32"),
        (good.to(torch.bfloat16), "A "),
        (good.to(torch.float32).requires_grad_(), "cannot be viewed"),
        (good.to_sparse(), "A "),
        (WORDS, "A is a ndarray in host memory"),
        ([1, 2], "A is a list"),
    ):
        with pytest.raises(InvalidInput, match=words):
            device_pointer(wrong, "A", (N,), 0)


# Faults


def test_faults_of_a_request_have_their_kind(device, cubin, load, words):
    other = nvrtc.compile_cubin(TEXT, "sm_80" if device.info.arch != "sm_80" else "sm_90")[0]
    for image, entry, said in (
        (b"no cubin at all" + bytes(64), "add", "cannot be loaded"),
        (other, "add", "was it built for"),
        (cubin, "no_such_kernel", "no kernel called"),
    ):
        with pytest.raises(CudaError, match=said) as caught:
            device.load(image, entry)
        assert caught.value.kind == "launch"
    function, out = load("shared"), words(64)
    with pytest.raises(CudaError, match="16777216 bytes of dynamic shared memory are refused") as caught:
        function.allow_shared(1 << 24)
    assert caught.value.kind == "launch"
    for grid, block, shared in (((1, 1, 1), (2048, 1, 1), 0), ((1, 70000, 1), (1, 1, 1), 0)):
        with pytest.raises(CudaError, match=r"the launch of shared failed: CUDA_ERROR_[A-Z_]+$") as caught:
            function.launch(grid, block, shared, [out.pointer])
        assert caught.value.kind == "launch"
    with pytest.raises(CudaError) as caught:
        device.alloc(1 << 50)
    assert caught.value.kind == "memory"
    assert (out.download((64,), np.uint32) == 0).all()


SCRIPT = """
import gc, os, sys
import numpy as np
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.driver import CudaError

cubin, entry = open(sys.argv[1], "rb").read(), sys.argv[2]
device = CudaDevice(0)
function, out = device.load(cubin, entry), device.upload(np.zeros(64, np.uint32))
function.launch((1, 1, 1), (1, 1, 1), 0, [out.pointer])
try:
    device.synchronize(1.0)
    print("nothing happened")
except CudaError as error:
    print(error.kind, error.code)
try:
    function.launch((1, 1, 1), (1, 1, 1), 0, [out.pointer])
except CudaError as error:
    print("again", error.kind, error.code)
if entry == "stray":
    try:
        device.reset()
        function.unload(), out.free()
        good, held = device.load(cubin, "add"), device.upload(np.zeros(64, np.uint32))
        good.launch((1, 1, 1), (64, 1, 1), 0, [held.pointer, held.pointer])
        with device.graph(lambda: good.launch((1, 1, 1), (64, 1, 1), 0, [held.pointer, held.pointer])) as replay:
            replay()
        print("recovered", held.download((64,), np.uint32).tolist() == [20] * 64)
    except CudaError as lost:
        print("lost", lost)
else:
    out.free(), function.unload()
    try:
        device.alloc(64)
    except CudaError as lost:
        print("lost", lost.kind)
del function, out, device
gc.collect()
print("let go")
sys.stdout.flush()
os._exit(0)
"""


def _broken(cubin, entry, folder):
    (folder / "broken.cubin").write_bytes(cubin)
    command = [sys.executable, "-c", SCRIPT, str(folder / "broken.cubin"), entry]
    done = subprocess.run(command, capture_output=True, text=True, timeout=45, env={**os.environ})
    print(done.stdout, done.stderr)
    assert "Warning" not in done.stderr, "what is gone with its context is not destroyed once more"
    return done.stdout.splitlines()


def test_a_stray_store_is_a_crash_and_the_context_comes_back(cubin, tmp_path):
    first, again, after, last = _broken(cubin, "stray", tmp_path)
    assert first == "crash CUDA_ERROR_ILLEGAL_ADDRESS"
    assert again.startswith("again crash CUDA_ERROR_"), "cuda-core's error has the driver's name"
    assert after == "recovered True" or after.startswith("lost")
    assert last == "let go"


def test_a_kernel_that_never_ends_is_given_up_and_waited_for_by_nobody(cubin, tmp_path):
    start = time.monotonic()
    first, *_, after, last = _broken(cubin, "spin", tmp_path)
    assert first == "timeout CUDA_ERROR_TIMEOUT"
    assert after == "lost crash"
    assert last == "let go"
    assert time.monotonic() - start < 30
