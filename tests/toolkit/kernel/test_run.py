"""Running kernels: arrays in, arrays out, and what is said when they do not fit; devices; conv2d."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from subbyte import conv2d
from subbyte.errors import InvalidInput, MissingDependency, SubbyteError, Unsupported
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import plan
from subbyte.gpu import driver
from subbyte.kernel import Kernel, build
from subbyte.kernel.execute import device_arch, expected, random_operands, resolve_device
from subbyte.numerics import Requantization, reference
from subbyte.workload import ConvWorkload

WORKLOAD = ConvWorkload(2, 5, 4, 40, 24, 3, 3, 1)
CONFIG = MmaConfig(1, 1, 2, 4)


@dataclass(frozen=True)
class Gpu:
    """As the driver describes one."""

    ordinal: int
    name: str
    arch: str


def _no_driver() -> list[Gpu]:
    raise MissingDependency("no NVIDIA driver on this machine")


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every machine looks as if it had no GPU."""
    monkeypatch.setattr(driver, "detect", _no_driver)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    """A small kernel with an int4 output."""
    return Kernel(plan(WORKLOAD, CONFIG, "sm_80"))


@pytest.fixture(scope="module")
def raw() -> Kernel:
    """The same with an int32 output."""
    return Kernel(plan(WORKLOAD, CONFIG, "sm_80", output="int32"))


# ---- Kernel.run ------------------------------------------------------------


@pytest.mark.parametrize("device", ["auto", "emulator"])
def test_run_gives_int4_values(kernel: Kernel, device: str) -> None:
    x, w, requant = random_operands(kernel, 1)
    y = kernel.run(x, w, requant, device=device)
    assert (type(y), y.dtype, y.shape) == (np.ndarray, np.int8, (2, 5, 4, 24))
    np.testing.assert_array_equal(y, expected(kernel, x, w, requant))


def test_run_gives_raw_sums(raw: Kernel) -> None:
    x, w, _ = random_operands(raw, 1)
    y = raw.run(x, w)
    assert (y.dtype, y.shape) == (np.int32, (2, 5, 4, 24))
    np.testing.assert_array_equal(y, reference(WORKLOAD, x, w))


def test_inputs_are_left_alone_and_may_be_strided_views(raw: Kernel) -> None:
    x, w, _ = random_operands(raw, 2)
    views = [np.ascontiguousarray(array.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1) for array in (x, w)]
    assert not any(view.flags.c_contiguous for view in views)
    before = [view.copy() for view in views]
    for view in views:
        view.flags.writeable = False
    np.testing.assert_array_equal(raw.run(*views), reference(WORKLOAD, x, w))
    assert all((view == old).all() for view, old in zip(views, before, strict=True))


def test_kernel_takes_the_form_and_clip_of_the_requantization(kernel: Kernel) -> None:
    """A kernel built for the fixed form and no ReLU runs a requantization that needs neither."""
    x, w, _ = random_operands(kernel, 3)
    wide = Requantization.random(WORKLOAD, np.random.default_rng(3), relu=True, wide=True)
    twin = kernel.for_requantization(wide)
    assert (twin.plan.requant, twin.plan.clip) == ("general", (0, 7))
    np.testing.assert_array_equal(kernel.run(x, w, wide), wide.apply(reference(WORKLOAD, x, w)))
    assert kernel.for_requantization(random_operands(kernel, 3)[2]) is kernel


def test_pack_and_unpack_by_hand(emulate: Callable[..., Any], kernel: Kernel) -> None:
    operands = random_operands(kernel, 4)
    buffers = kernel.pack(*operands)
    assert set(buffers) == {"A", "Wt", "Prm"}
    for name, buffer in buffers.items():
        argument = kernel.argument(name)
        assert (buffer.shape, str(buffer.dtype)) == (argument.shape, argument.dtype)
    _, words = emulate(kernel, operands)
    np.testing.assert_array_equal(kernel.unpack(words), expected(kernel, *operands))


def _x(shape: tuple[int, ...] = (2, 5, 4, 40), dtype: Any = np.int8, value: int = 1) -> Any:
    return np.full(shape, value, dtype)


W = np.ones((24, 3, 3, 40), np.int8)
REQUANT = Requantization.per_tensor(24, 1 << 20, 24)


@pytest.mark.parametrize(
    ("x", "w", "message"),
    [
        (_x(dtype=np.int32), W, "x is int32 [2, 5, 4, 40]: expected a numpy array int8 [2, 5, 4, 40]"),
        (_x(dtype=np.float32), W, "x is float32"),
        (_x(dtype=np.uint8), W, "x is uint8"),
        (_x((2, 4, 5, 40)), W, "x is int8 [2, 4, 5, 40]: expected int8 [2, 5, 4, 40]"),
        (_x((2, 5, 4)), W, "x is int8 [2, 5, 4]: expected int8 [2, 5, 4, 40]"),
        (_x(value=8), W, "x holds values from 8 to 8: expected int4 values -8 to 7"),
        (_x(value=-9), W, "x holds values from -9 to -9"),
        (_x(), W.astype(np.int16), "w is int16"),
        (_x(), W.transpose(3, 1, 2, 0), "w is int8 [40, 3, 3, 24]: expected int8 [24, 3, 3, 40]"),
        (_x(), W * np.int8(9), "w holds values from 9 to 9"),
    ],
)
def test_operands_that_do_not_fit(kernel: Kernel, x: Any, w: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        kernel.run(x, w, REQUANT)
    assert message in str(refused.value)
    assert refused.value.exit_code == 2


def test_operands_that_are_no_arrays(kernel: Kernel) -> None:
    with pytest.raises(InvalidInput, match=r"^x is a list"):
        kernel.run([[1]], W, REQUANT)


def test_requantization_must_be_there_and_fit(kernel: Kernel, raw: Kernel) -> None:
    with pytest.raises(InvalidInput, match=r"needs requant=, for example subbyte.Requantization.from_scale"):
        kernel.run(_x(), W)
    with pytest.raises(InvalidInput, match=r'requant given, but this kernel was built with output="int32"'):
        raw.run(_x(), W, REQUANT)
    for channels in (23, 25, 64):
        with pytest.raises(InvalidInput, match=r"24 channels|channels: the layer has 24|output channels"):
            kernel.run(_x(), W, Requantization.per_tensor(channels, 1 << 20, 24))


def test_fixed_kernel_refuses_to_pack_what_its_form_cannot_express(kernel: Kernel) -> None:
    wide = Requantization.random(WORKLOAD, np.random.default_rng(0), wide=True)
    with pytest.raises(InvalidInput, match=r'build with requant="general"'):
        kernel.pack(_x(), W, wide)
    with pytest.raises(InvalidInput, match="needs requant="):
        kernel.pack(_x(), W)


# ---- devices ------------------------------------------------------------


@pytest.mark.parametrize("device", ["cuda:0", "cuda", "cuda:1"])
def test_gpu_that_is_not_there(kernel: Kernel, device: str) -> None:
    with pytest.raises(MissingDependency, match="no NVIDIA driver") as missing:
        kernel.run(_x(), W, REQUANT, device=device)
    assert missing.value.exit_code == 3


def test_timing_needs_a_gpu(kernel: Kernel) -> None:
    with pytest.raises(MissingDependency, match="no NVIDIA driver"):
        kernel.time()
    with pytest.raises(InvalidInput, match="the emulator has no meaningful times"):
        kernel.time(device="emulator")


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:-1", "CUDA 0", "", "emulator:0"])
def test_unknown_device(kernel: Kernel, device: str) -> None:
    with pytest.raises(InvalidInput, match=r"allowed: auto, cuda:0 \(or another number\), emulator"):
        kernel.run(_x(), W, REQUANT, device=device)


def test_choice_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [Gpu(0, "V100", "sm_70"), Gpu(1, "A100", "sm_80"), Gpu(2, "H100", "sm_90a")]
    monkeypatch.setattr(driver, "detect", lambda: gpus)
    assert resolve_device("auto", "sm_80") == "cuda:1"
    assert resolve_device("auto", "sm_86") == "emulator"
    assert resolve_device("emulator", "sm_80") == "emulator"
    assert resolve_device("cuda:2", "sm_90a") == "cuda:2"
    with pytest.raises(MissingDependency, match=r"there is no GPU 5 here; found: 0, 1, 2"):
        resolve_device("cuda:5", "sm_80")
    with pytest.raises(MissingDependency, match=r"GPU 0 \(V100\) is sm_70, the kernel is built for sm_80"):
        resolve_device("cuda", "sm_80")
    assert [device_arch(device) for device in ("auto", "cuda:1", "cuda:2", "emulator")] == [
        "sm_80", "sm_80", "sm_90a", "sm_90a",
    ]  # fmt: skip


def test_architecture_without_a_gpu() -> None:
    assert {device_arch(device) for device in ("auto", "cuda:0", "emulator")} == {"sm_90a"}


# ---- conv2d ------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("pad", "stride", "dilation", "kernel"),
    [(0, 1, 1, (1, 1)), (1, 2, 1, (3, 3)), (2, 1, 2, (3, 2)), (3, 2, 1, (5, 4))],
)
def test_conv2d_raw(pad: int, stride: int, dilation: int, kernel: tuple[int, int]) -> None:
    rng = np.random.default_rng(pad)
    x = rng.integers(-8, 8, (2, 6, 7, 20), np.int8)
    w = rng.integers(-8, 8, (12, *kernel, 20), np.int8)
    y = conv2d(x, w, pad=pad, stride=stride, dilation=dilation, device="emulator")
    workload = ConvWorkload(2, 6, 7, 20, 12, *kernel, pad, stride, dilation)
    np.testing.assert_array_equal(y, reference(workload, x, w))


@pytest.mark.sample(2)
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", None])
def test_conv2d_requantized(arch: str | None) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-8, 8, shape, np.int8) for shape in ((3, 6, 6, 32), (32, 3, 3, 32)))
    requant = Requantization.from_scale(0.012, bias=-70, relu=True, k=32)
    y = conv2d(x, w, requant, pad=1, arch=arch, device="emulator", config=MmaConfig(1, 1, 2, 2))
    sums = reference(ConvWorkload(3, 6, 6, 32, 32, 3, 3, 1), x, w)
    np.testing.assert_array_equal(y, requant.apply(sums))
    assert (y.min(), y.max()) == (0, 7)


X = np.ones((1, 4, 4, 32), np.int8)


@pytest.mark.parametrize(
    ("x", "w", "options", "error", "message"),
    [
        (X, np.ones((32, 3, 3, 16), np.int8), {}, InvalidInput, "w has 16 input channels, x has 32"),
        (
            X,
            np.ones((32, 3, 3, 16), np.int8),
            {},
            InvalidInput,
            "for 2 groups convolve x[..., 16*g:16*(g+1)] with w[16*",
        ),
        (X, np.ones((32, 3, 3, 12), np.int8), {}, InvalidInput, "with as many channels as x"),
        (X, np.ones((32, 3, 3, 32), np.int8), {"pad": (0, 1, 0, 1)}, InvalidInput, "put zeros around x first"),
        (X, np.ones((32, 3, 3, 32), np.int8), {"pad": True}, InvalidInput, "pad=True"),
        (X[0], np.ones((32, 3, 3, 32), np.int8), {}, InvalidInput, "x has shape (4, 4, 32)"),
        (X, np.ones((32, 3, 3), np.int8), {}, InvalidInput, "[K,R,S,C]"),
        (X.tolist(), np.ones((32, 3, 3, 32), np.int8), {}, InvalidInput, "x has shape ()"),
        (X[:0], np.ones((32, 3, 3, 32), np.int8), {}, InvalidInput, "n=0"),
        (X, np.ones((32, 5, 5, 32), np.int8), {}, InvalidInput, "does not fit"),
        (X, np.ones((32, 3, 3, 32), np.int8), {"pad": -1}, InvalidInput, "pad=-1"),
        (X, np.ones((32, 3, 3, 32), np.int8), {"stride": 0}, InvalidInput, "stride=0"),
        (X, np.ones((32, 3, 3, 32), np.int8), {"stride": 3, "arch": "sm_80"}, Unsupported, "stride 3"),
        (X, np.ones((32, 8, 8, 32), np.int8), {"pad": 4, "arch": "sm_80"}, Unsupported, "kernel size 8x8"),
        (X, np.ones((32, 3, 3, 32), np.float32), {}, InvalidInput, "w is float32"),
        (X * np.int8(8), np.ones((32, 3, 3, 32), np.int8), {}, InvalidInput, "x holds values from 8 to 8"),
        (X, np.ones((32, 3, 3, 32), np.int8), {"arch": "sm_70"}, InvalidInput, "unknown architecture 'sm_70'"),
        (X, np.ones((32, 3, 3, 32), np.int8), {"device": "tpu"}, InvalidInput, "device 'tpu'"),
        (X, np.ones((32, 3, 3, 32), np.int8), {"device": "cuda:0"}, MissingDependency, "no NVIDIA driver"),
        (X, np.ones((32, 3, 3, 32), np.int8), {"config": MmaConfig(chunk=8)}, Unsupported, "divisibility"),
    ],
)
def test_conv2d_refuses(x: Any, w: Any, options: dict[str, Any], error: type[SubbyteError], message: str) -> None:
    with pytest.raises(error) as refused:
        conv2d(x, w, **options)
    assert message in str(refused.value)


def test_groups_and_uneven_padding_done_as_conv2d_says_are_exact() -> None:
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-8, 8, shape, np.int8) for shape in ((1, 4, 5, 8), (6, 3, 2, 4)))
    padded = np.pad(x, ((0, 0), (0, 2), (1, 0), (0, 0)))
    found = [conv2d(padded[..., 4 * g : 4 * (g + 1)], w[3 * g : 3 * (g + 1)], device="emulator") for g in range(2)]
    right = np.zeros((1, 4, 5, 6), np.int64)
    for p, q, k, r, s, c in np.ndindex(4, 5, 6, 3, 2, 4):
        row, col = p + r, q + s - 1
        if row < 4 and 0 <= col < 5:
            right[0, p, q, k] += int(x[0, row, col, k // 3 * 4 + c]) * int(w[k, r, s, c])
    np.testing.assert_array_equal(np.concatenate(found, axis=-1), right)


def test_what_the_usual_family_lacks_is_computed_by_another() -> None:
    """The first candidates are refused for what the compiler made of them; a later one computes every element."""
    rng = np.random.default_rng(7)
    x, w = rng.integers(-8, 8, (2, 7, 7, 32), np.int8), rng.integers(-8, 8, (32, 3, 3, 32), np.int8)
    sums = reference(ConvWorkload(2, 7, 7, 32, 32, 3, 3, 1, 3), x, w)
    np.testing.assert_array_equal(conv2d(x, w, pad=1, stride=3, device="emulator"), sums)


def test_same_kernel_is_built_once() -> None:
    from subbyte.kernel.conv2d import _built

    _built.cache_clear()
    for _ in range(2):
        conv2d(X, np.ones((32, 1, 1, 32), np.int8), device="emulator")
    assert (_built.cache_info().misses, _built.cache_info().hits) == (1, 1)


def test_built_kernel_is_plain_data() -> None:
    """Equal plans are equal kernels, so that caches and sets work."""
    one, two = (build(WORKLOAD, CONFIG, "sm_80") for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert (one.workload, one.config, one.arch, one.output) == (WORKLOAD, CONFIG, "sm_80", "int4")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: build(WORKLOAD, {"chunk": 1}), "expected a Configuration"),
        (lambda: build(WORKLOAD, arch=80), "arch=80: expected an Arch"),
        (lambda: build(WORKLOAD, arch=None), "arch=None: expected an Arch"),
        (lambda: build(WORKLOAD, clip=(0,)), "clip=.*expected 2 values, each an integer"),
        (lambda: build(WORKLOAD, clip=(0.5, 6.7)), "clip=.*expected 2 values, each an integer"),
        (lambda: build(WORKLOAD).run(None, None, 0.01), "expected a Requantization"),
    ],
)
def test_wrong_kinds_of_arguments_are_named(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


@pytest.mark.parametrize("device", [0, None])
def test_a_device_is_named_by_text(device):
    kernel = build(WORKLOAD, output="int32")
    x, w, _ = random_operands(kernel, 0)
    with pytest.raises(InvalidInput, match="allowed: auto, cuda:0"):
        kernel.run(x, w, device=device)
