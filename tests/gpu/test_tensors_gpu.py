"""Tensors of other libraries on the GPU: every element against the reference, on their streams, in their graphs.

Programs come from the cache that ``tensor_cases.py FOLDER`` built, where TVM is not installed:
SUBBYTE_CACHE=FOLDER/cache SUBBYTE_TENSORS=FOLDER."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensor_cases as cases

import subbyte
from subbyte.errors import InvalidInput
from subbyte.kernel.convert.build import thresholds
from subbyte.kernel.operands import activation_words
from subbyte.numerics import quantize, reference

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]
SMALL = ("stage4", "odd", "wide")
SCALE = 0.37


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def ready(device):
    if device.info.arch != cases.ARCH:
        pytest.skip(f"programs are built for {cases.ARCH}, this GPU is {device.info.arch}")


@pytest.fixture(scope="module")
def placed(ready):
    """``placed(name, sums=False)``: a layer on the GPU, made once."""
    held = {}

    def layer(name, sums=False):
        if (name, sums) not in held:
            _, _, w, requant = cases.drawn(name)
            kernel = cases.kernels(name)[1 if sums else 0]
            held[name, sums] = kernel.on_device(w, None if sums else requant)
        return held[name, sums]

    return layer


def _torch_x(torch, name):
    return torch.from_numpy(cases.drawn(name)[1]).cuda()


@pytest.mark.parametrize("name", [*SMALL, "few"])
@pytest.mark.parametrize("sums", [False, True])
def test_torch_values(torch, placed, name, sums):
    x = _torch_x(torch, name)
    y = placed(name, sums)(x)
    assert y.device == x.device
    assert np.array_equal(y.cpu().numpy(), cases.right(name, sums))
    out = torch.full_like(y, 99)
    assert placed(name, sums)(x, out) is out
    assert torch.equal(out, y)


def test_torch_words(torch, placed):
    for name in SMALL:
        kernel, (_, x, w, requant) = cases.kernels(name)[0], cases.drawn(name)
        words = torch.from_numpy(kernel.pack(x, w, requant)["A"].view(np.int32)).cuda()
        found = placed(name)(words)
        assert found.dtype == torch.int32
        assert np.array_equal(kernel.unpack(found.cpu().numpy().view(np.uint32)), cases.right(name))


@pytest.mark.parametrize("name", cases.POOLS)
def test_pooling(torch, ready, name):
    """Values in and out, and words in and out, of every type."""
    kernel, x, right = cases.pooled(name)
    layer = kernel.on_device()
    given = torch.from_numpy(x).cuda()
    assert np.array_equal(layer(given).cpu().numpy(), right)
    words = torch.from_numpy(activation_words(kernel.argument("A"), kernel.workload, x).view(np.int32)).cuda()
    assert np.array_equal(kernel.unpack(layer(words).cpu().numpy().view(np.uint32)), right)
    wrong = given.clone()
    wrong[0] = kernel.workload.precision.activations.least
    assert not np.array_equal(layer(wrong).cpu().numpy(), right)


@pytest.mark.parametrize("name", cases.TYPED)
def test_other_types(torch, ready, name):
    """Placed layers, ``conv2d`` and modules on 8 bits, unsigned int4 and zero points; real values quantized to them."""
    from subbyte.torch import Conv2d

    kernels, x, w, requant, right = cases.typed(name)
    wl, given = kernels[0].workload, torch.from_numpy(x).cuda()
    found = kernels[0].on_device(w, requant)(given)
    assert str(found.dtype) == f"torch.{wl.precision.output.dtype}"
    assert np.array_equal(found.cpu().numpy(), right)
    assert torch.equal(subbyte.conv2d(given, w, requant, pad=wl.pad, precision=wl.precision), found)
    weight = torch.from_numpy(np.ascontiguousarray(w.transpose(0, 3, 1, 2)))
    made = Conv2d(weight, requant, (wl.n, wl.h, wl.w), padding=wl.pad, precision=wl.precision, arch=cases.ARCH,
                  input_scale=SCALE).cuda()  # fmt: skip
    assert torch.equal(made(given.permute(0, 3, 1, 2)), found.permute(0, 3, 1, 2))
    real = (torch.randn(x.shape, device="cuda") * wl.precision.activations.magnitude * SCALE / 2).half()
    values = quantize(real.double().cpu().numpy(), SCALE, wl.precision.activations)
    wanted = torch.from_numpy(requant.apply(reference(wl, values, w)).transpose(0, 3, 1, 2))
    assert torch.equal(made(real.permute(0, 3, 1, 2)).cpu(), wanted)


@pytest.mark.parametrize("name", cases.ADDED)
def test_int8_values_are_added_in_a_chain(torch, ready, name):
    chain, x, right = cases.added(name)
    assert np.array_equal(chain.on_device()(torch.from_numpy(x).cuda()).cpu().numpy(), right)


def test_work_before_and_after_is_ordered(torch, placed):
    """On a side stream behind long work that fills x, then work on the result there: nothing is waited for."""
    layer, x = placed("stage4"), _torch_x(torch, "stage4")
    layer(x)
    busy, late = torch.randn(4096, 4096, device="cuda"), torch.zeros_like(x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(60):
            busy = busy @ busy
        late.copy_(x)
        y = layer(late)
        pending = not side.query()
        after = y.to(torch.int32) + 1
    assert pending, "the call waited for the stream"
    side.synchronize()
    assert np.array_equal(after.cpu().numpy(), cases.right("stage4").astype(np.int32) + 1)


def test_a_given_stream_is_taken(torch, placed):
    core = pytest.importorskip("cuda.core")
    layer, x = placed("stage4"), _torch_x(torch, "stage4")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    for stream in (side, core.Stream.from_handle(side.cuda_stream)):
        y = layer(x, stream=stream)
        side.synchronize()
        assert np.array_equal(y.cpu().numpy(), cases.right("stage4"))


def test_a_launch_on_another_stream_would_be_found(torch, placed):
    """The order test can fail: on a stream that does not wait, the layer reads x before it is filled."""
    layer, x = placed("stage4"), _torch_x(torch, "stage4")
    layer(x)
    busy, late = torch.randn(4096, 4096, device="cuda"), torch.zeros_like(x)
    side, other = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for _ in range(60):
            busy = busy @ busy
        late.copy_(x)
    y = layer(late, stream=other)
    torch.cuda.synchronize()
    assert not np.array_equal(y.cpu().numpy(), cases.right("stage4"))


def test_a_torch_graph_captures_it(torch, placed):
    layer, x = placed("stage4"), _torch_x(torch, "stage4")
    layer(x)
    static = torch.zeros_like(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(static)
    for turn in range(3):
        static.copy_(x if turn != 1 else torch.zeros_like(x))
        graph.replay()
        torch.cuda.synchronize()
        assert np.array_equal(y.cpu().numpy(), cases.right("stage4")) == (turn != 1)


def test_cupy_values_words_streams_and_graphs(placed):
    cupy = pytest.importorskip("cupy")
    for name in SMALL:
        y = placed(name)(cupy.asarray(cases.drawn(name)[1]))
        assert isinstance(y, cupy.ndarray)
        assert np.array_equal(cupy.asnumpy(y), cases.right(name))
    layer, x = placed("stage4"), cupy.asarray(cases.drawn("stage4")[1])
    kernel = cases.kernels("stage4")[0]
    words = layer(x, packed=True)
    assert np.array_equal(kernel.unpack(cupy.asnumpy(words).view(np.uint32)), cases.right("stage4"))
    stream = cupy.cuda.Stream(non_blocking=True)
    held = x.copy()
    out = cupy.zeros(cases.right("stage4").shape, cupy.int8)
    cupy.cuda.Device().synchronize()
    with stream:
        layer(held, out)
        stream.synchronize()
        stream.begin_capture()
        layer(held, out)
        graph = stream.end_capture()
        out.fill(99)
        graph.launch(stream)
        stream.synchronize()
    assert np.array_equal(cupy.asnumpy(out), cases.right("stage4"))


def test_jax_arrays(placed):
    jax = pytest.importorskip("jax")
    if not any(one.platform == "gpu" for one in jax.devices()):
        pytest.skip("this build of JAX knows no GPU")
    for name in SMALL:
        x = jax.device_put(cases.drawn(name)[1], jax.devices()[0])
        y = placed(name)(x)
        assert isinstance(y, jax.Array)
        assert np.array_equal(np.asarray(y), cases.right(name))
        assert np.array_equal(np.asarray(y.astype("int32") + 1), cases.right(name).astype(np.int32) + 1)


def test_conv2d_stays_on_the_gpu(torch, ready, monkeypatch):
    """With the kernel that ``compile`` takes, of whatever family, and without the host."""
    from subbyte.kernel import execute

    monkeypatch.setattr(execute, "run_outputs", lambda *_: pytest.fail("went through the host"))
    for name in [*SMALL, "few", "large"]:
        wl, _, w, requant = cases.drawn(name)
        x = _torch_x(torch, name)
        options = {"pad": wl.pad, "stride": wl.stride}
        for weights in (w, torch.from_numpy(w).cuda()):
            y = subbyte.conv2d(x, weights, requant, **options)
            assert y.device == x.device
            assert np.array_equal(y.cpu().numpy(), cases.right(name))
        sums = subbyte.conv2d(x, w, **options)
        assert np.array_equal(sums.cpu().numpy(), cases.right(name, True))
    other = w.copy()
    other[0] = -other[0].clip(-7, 7)
    assert not torch.equal(subbyte.conv2d(x, other, requant, **options), y)


@pytest.fixture(scope="module")
def module(torch, ready):
    from subbyte.torch import Conv2d

    def made(name, **options):
        wl, _, w, requant = cases.drawn(name)
        given = torch.from_numpy(np.ascontiguousarray(w.transpose(0, 3, 1, 2)))
        return Conv2d(given, requant, (wl.n, wl.h, wl.w), padding=wl.pad, stride=wl.stride, arch=cases.ARCH,
                      input_scale=SCALE, output_scale=0.5, **options).cuda()  # fmt: skip

    return made


@pytest.mark.parametrize("name", SMALL)
def test_the_module(torch, module, name):
    layer = module(name)
    x = _torch_x(torch, name).permute(0, 3, 1, 2)
    right = cases.right(name).transpose(0, 3, 1, 2)
    for given in (x, x.contiguous()):
        assert np.array_equal(layer(given).cpu().numpy(), right)


@pytest.mark.parametrize("dtype", cases.REALS)
def test_the_module_quantizes(torch, module, dtype):
    """Every value as the host's quantize gives it, ties and neighbours too: the words are compared."""
    from subbyte.kernel.operands import layout_words
    from subbyte.workload.precision import INT4

    for name in SMALL:
        layer = module(name, gives="packed")
        wl = cases.drawn(name)[0]
        real = torch.randn(wl.n, wl.h, wl.w, wl.c, generator=torch.Generator().manual_seed(0)) * 2
        ties = torch.from_numpy((np.arange(-9, 9) + 0.5) * SCALE).float()
        real.view(-1)[: 3 * len(ties)] = torch.cat([ties, ties.nextafter(ties + 1), ties.nextafter(ties - 1)])
        real = real.to(getattr(torch, dtype))
        values = quantize(real.double().numpy(), SCALE)
        words = torch.ops.subbyte.pack(real.cuda(), layer.thresholds, layer.reads, layer.arch)
        wanted = layout_words(layer.reads, values, INT4.activations).reshape(-1)
        assert np.array_equal(words.cpu().numpy().view(np.uint32), wanted)
        assert torch.equal(layer(real.cuda().permute(0, 3, 1, 2)), layer(words))
    assert thresholds(SCALE).shape == layer.thresholds.shape


@pytest.mark.parametrize("dtype", cases.REALS)
@pytest.mark.parametrize("name", cases.BYTES)
def test_reals_to_bytes(torch, ready, name, dtype):
    """Every value as the host's quantize gives it, those where it changes and their neighbours too."""
    from subbyte.kernel.operands import layout_words
    from subbyte.workload.operand import Operand

    (shape, scale), operand = cases.BYTES[name], Operand.named(name)
    steps = torch.from_numpy(thresholds(scale, operand))
    real = torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 60 * scale
    edges = steps[:255]
    real.view(-1)[: 3 * 255] = torch.cat([edges, edges.nextafter(edges + 1), edges.nextafter(edges - 1)])
    real = real.to(getattr(torch, dtype))
    words = torch.ops.subbyte.pack(real.cuda(), steps.cuda(), cases.PACKED, cases.ARCH, name)
    right = layout_words(cases.PACKED, quantize(real.double().numpy(), scale, operand), operand).reshape(-1)
    assert np.array_equal(words.cpu().numpy().view(np.uint32), right)
    real[0] = -real[0] - 100 * scale
    other = torch.ops.subbyte.pack(real.cuda(), steps.cuda(), cases.PACKED, cases.ARCH, name)
    assert not torch.equal(other, words)


def test_the_module_in_one_compiled_graph(torch, module):
    layer = module("stage4", gives="float")
    x = torch.randn(8, 256, 14, 14, device="cuda", dtype=torch.float16).to(memory_format=torch.channels_last)
    compiled = torch.compile(layer, fullgraph=True)
    assert torch.equal(compiled(x), layer(x))


def test_the_module_in_a_cuda_graph_and_exported(torch, module):
    layer = module("stage4")
    x = _torch_x(torch, "stage4").permute(0, 3, 1, 2)
    right = cases.right("stage4").transpose(0, 3, 1, 2)
    program = torch.export.export(layer, (x,))
    assert np.array_equal(program.module()(x).cpu().numpy(), right)
    static = torch.zeros_like(x)
    layer(static)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(static)
    static.copy_(x)
    graph.replay()
    assert np.array_equal(y.cpu().numpy(), right)


def test_operators_pass_opcheck(torch, module):
    layer = module("odd")
    x = _torch_x(torch, "odd")
    words = torch.ops.subbyte.pack(x, None, layer.reads, layer.arch)
    arguments = words, layer.weight, layer.requantization, layer.kernel
    found = torch.library.opcheck(torch.ops.subbyte.conv2d.default, arguments)
    assert set(found.values()) == {"SUCCESS"}


def test_what_does_not_fit_is_refused(torch, placed, module):
    layer, x = placed("stage4"), _torch_x(torch, "stage4")
    packed = layer(x, packed=True)
    for given, message in (
        (x.cpu(), "x is in host memory: must be on cuda:0"),
        (x.float(), "x is float32 .*: must be int8"),
        (x.transpose(1, 2), "x is not C-contiguous"),
        (x[:1], r"x is int8 \[1, 14, 14, 256\]: must be"),
        (torch.zeros(packed.numel() + 1, dtype=torch.int32, device="cuda")[1:], "must be a multiple of 16 bytes"),
    ):
        with pytest.raises(InvalidInput, match=message):
            layer(given)
    made = module("stage4", gives="packed")
    with pytest.raises(InvalidInput, match="weight is on cpu: must be on cuda:0"):
        torch.ops.subbyte.conv2d(packed, made.weight.cpu(), made.requantization, made.kernel)
    assert np.array_equal(layer(x).cpu().numpy(), cases.right("stage4"))  # nothing is left behind


def test_a_stream_that_is_gone_is_refused(torch, placed):
    """A closed one says so; of a number nobody knows, and the driver crashes on the handle of one that is gone."""
    core = pytest.importorskip("cuda.core")
    layer, x = placed("stage4"), _torch_x(torch, "stage4")
    owned = torch.cuda.Stream()
    closed = core.Stream.from_handle(owned.cuda_stream)
    closed.close()
    for gone, message in ((closed, "stream is closed"), (owned.cuda_stream, "a number does not say")):
        with pytest.raises(InvalidInput, match=message):
            layer(x, stream=gone)


def test_threads_without_a_context(torch, placed):
    """A thread that never met CUDA launches too."""
    layer, x = placed("stage4"), _torch_x(torch, "stage4")
    out, side = torch.zeros_like(layer(x)), torch.cuda.Stream()
    torch.cuda.synchronize()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(layer, x, out, stream=side).result()
    side.synchronize()
    assert np.array_equal(out.cpu().numpy(), cases.right("stage4"))


@pytest.fixture(scope="module")
def chain(ready):
    folder = os.environ.get("SUBBYTE_TENSORS")
    if not folder:
        pytest.skip("SUBBYTE_TENSORS names no folder with chain.safetensors: tests/gpu/tensor_cases.py makes it")
    return subbyte.load_chain(Path(folder) / "chain.safetensors")


def test_a_chain_from_a_file(torch, chain):
    right = cases.chain_right()
    assert np.array_equal(chain.run(cases.drawn("stage4")[1], "cuda:0"), right)
    layers = chain.on_device()
    x = _torch_x(torch, "stage4")
    assert np.array_equal(layers(x).cpu().numpy(), right)
    static = torch.zeros_like(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layers(static)
    static.copy_(x)
    graph.replay()
    assert np.array_equal(y.cpu().numpy(), right)
    for _ in range(50):  # back to back, overlapping: each result of its own
        found = layers(x)
    assert np.array_equal(found.cpu().numpy(), right)
