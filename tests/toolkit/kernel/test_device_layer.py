"""Layers on a device, called with arrays: on the emulator, whose memory is the host's, everything but the streams."""

import subprocess
import sys

import numpy as np
import pytest

import subbyte
from subbyte import Chain
from subbyte.errors import BrokenRecord, InvalidInput, MissingDependency, Unsupported
from subbyte.families.mma.config import MmaConfig
from subbyte.kernel import Kernel, device_layer, load_chain
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import best_known
from subbyte.kernel.device_layer import DeviceLayer
from subbyte.numerics import Requantization, reference
from subbyte.workload import ConvWorkload

LAYERS = (ConvWorkload(2, 4, 5, 40, 32, 1, 1, 0), ConvWorkload(2, 4, 5, 32, 40, 3, 3, 1),
          ConvWorkload(2, 4, 5, 40, 8, 1, 1, 0))  # fmt: skip
PLAIN = MmaConfig(blk_col_warps=1)


def _kernel(workload, output="int4", config=PLAIN):
    return Kernel(make_plan(workload, config, "sm_90a", output, (-8, 7) if output == "int4" else None, "fixed"))


def _best(spec, output):
    """The kernel that ``compile`` takes, without its machine code."""
    workload = subbyte.workload(spec)
    return Kernel(make_plan(workload, best_known(workload, output=output)[0], "sm_90a", output, None, "fixed"))


def _operands(seed=0):
    rng = np.random.default_rng(seed)
    first = LAYERS[0]
    x = rng.integers(-8, 8, (first.n, first.h, first.w, first.c), np.int8)
    weights = [rng.integers(-8, 8, (w.k, w.r, w.s, w.c), np.int8) for w in LAYERS]
    return x, weights, [Requantization.random(w, rng) for w in LAYERS]


def _expected(x, weights, requants):
    for workload, w, requant in zip(LAYERS, weights, requants, strict=False):
        x = requant.apply(reference(workload, x, w)) if requant is not None else reference(workload, x, w)
    return x


@pytest.fixture(scope="module")
def chain():
    x, weights, requants = _operands()
    return Chain([_kernel(w) for w in LAYERS], weights, requants), x, _expected(x, weights, requants)


@pytest.fixture(scope="module")
def layer():
    x, weights, requants = _operands()
    return _kernel(LAYERS[0]).on_device(weights[0], requants[0], "emulator"), x, _expected(x, weights[:1], requants)


def test_values_in_values_out(layer):
    placed, x, right = layer
    found = placed(x)
    assert found.dtype == np.int8
    assert np.array_equal(found, right)
    out = np.full(right.shape, 99, np.int8)
    assert placed(x, out) is out
    assert np.array_equal(out, right)


def test_words_in_words_out(layer):
    """What one layer gives packed is what the host would pack, and the next layer's input."""
    placed, x, right = layer
    kernel = _kernel(LAYERS[0])
    words = kernel.pack(x, _operands()[1][0], Requantization.random(LAYERS[0], np.random.default_rng(9)))["A"]
    packed = placed(words)
    assert packed.dtype == np.int32
    assert np.array_equal(kernel.unpack(packed.view(np.uint32)), right)
    assert np.array_equal(placed(words.view(np.int32), packed=False), right)
    assert np.array_equal(placed(x, packed=True), packed)


def test_sums_come_out_as_int32():
    x, weights, _ = _operands()
    found = _kernel(LAYERS[0], "int32").on_device(weights[0], device="emulator")(x)
    assert found.dtype == np.int32
    assert np.array_equal(found, reference(LAYERS[0], x, weights[0]))


def test_a_chain_hands_on_words(chain):
    layers, x, right = chain
    placed = layers.on_device("emulator")
    assert np.array_equal(placed(x), right)
    assert np.array_equal(placed(x), right)  # the plan of the first call, used again


def test_one_layer_too_few_launches_is_found(chain, monkeypatch):
    """The comparison that the tests above make can fail: with words of the wrong place between two layers."""
    layers, x, right = chain
    placed = layers.on_device("emulator")
    between = DeviceLayer._between
    monkeypatch.setattr(DeviceLayer, "_between", lambda *given: [0, *between(*given)[1:]])
    assert not np.array_equal(placed(x), right)


def _misaligned(array):
    space = np.zeros(array.nbytes + 32, np.uint8)
    start = -space.ctypes.data % 16 + 4
    return space[start : start + array.nbytes].view(array.dtype).reshape(array.shape)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            lambda x: x.astype(np.int64),
            r"x is int64 \[2, 4, 5, 40\]: must be int8 \[2, 4, 5, 40\] \[N,H,W,C\], or packed",
        ),
        (lambda x: x[:1], r"x is int8 \[1, 4, 5, 40\]: must be"),
        (lambda x: np.zeros(7, np.int32), r"x is int32 \[7\]: must be"),
        (lambda x: np.asfortranarray(x), "x is not C-contiguous: make it contiguous first"),
        (lambda x: _misaligned(np.zeros(1280, np.int32)), r"x starts at address 0x.*4: must be a multiple of 16"),
        (lambda x: [1, 2], "x is a list: must be an array"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(layer, given, message):
    placed, x, _ = layer
    with pytest.raises(InvalidInput, match=message):
        placed(given(x))


def test_outputs_that_do_not_fit_are_refused(layer):
    placed, x, right = layer
    for out, message in (
        (np.zeros(right.shape, np.int32), r"out is int32 \[2, 4, 5, 32\]: must be int8 \[2, 4, 5, 32\]"),
        (np.zeros((1, *right.shape), np.int8), r"out is int8 \[1, 2, 4, 5, 32\]: must be int8"),
        (np.zeros(right.shape[::-1], np.int8).T, "out is not C-contiguous"),
    ):
        with pytest.raises(InvalidInput, match=message):
            placed(x, out)
    for stream in ("0", -1, 1.5, 4660, object()):
        with pytest.raises(InvalidInput, match="must be a stream of torch, CuPy or cuda-core; a number does not"):
            placed(x, stream=stream)


def test_numpy_arrays_that_are_not_plain_are_refused(layer):
    placed, x, right = layer
    kept = np.zeros_like(right)
    kept.flags.writeable = False
    words = np.zeros(1280, ">i4")
    for given, message in (
        ((x, kept), "out is read-only"),
        ((np.ma.masked_array(x),), "x is a masked array"),
        ((words,), "x has the wrong byte order"),
    ):
        with pytest.raises(InvalidInput, match=message):
            placed(*given)
    assert not kept.any()


def test_weights_and_devices_that_do_not_fit_are_refused():
    _, weights, requants = _operands()
    kernel = _kernel(LAYERS[0])
    with pytest.raises(InvalidInput, match=r"w is int8 \[40, 3, 3, 32\]: expected int8 \[32, 1, 1, 40\]"):
        kernel.on_device(weights[1], requants[0], "emulator")
    with pytest.raises(InvalidInput, match="requantization of 40 channels: the layer has 32"):
        kernel.on_device(weights[0], requants[1], "emulator")
    with pytest.raises(MissingDependency):
        kernel.on_device(weights[0], requants[0], "cuda:0")
    fused = _best("n8h8w8c128k128r3s3p1:w1a1", "bipolar1+keep")
    with pytest.raises(Unsupported, match="reads or keeps what other layers have"):
        fused.on_device(weights[0], None, "emulator")


def test_values_without_a_conversion_are_refused_and_words_run():
    """One-bit values have no conversion on the device: the words go in and out."""
    kernel = _best("n8h3w3c128k128r1s1p0:w1a1", "int32")
    workload = kernel.workload
    rng = np.random.default_rng(0)
    x, w = (rng.choice(np.int8([-1, 1]), size) for size in ((8, 3, 3, 128), (128, 1, 1, 128)))
    placed = kernel.on_device(w, device="emulator")
    with pytest.raises(InvalidInput, match=r"conversions on the device are of 4 or 8 bits, .*give packed words"):
        placed(x)
    words = placed(kernel.pack(x, w)["A"])
    assert np.array_equal(kernel.unpack(words), reference(workload, x, w))


# ---- files ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(chain, tmp_path_factory):
    path = tmp_path_factory.mktemp("chains") / "three.safetensors"
    assert chain[0].save(path) == path
    return path


def test_a_saved_chain_gives_the_same(chain, saved):
    _, x, right = chain
    loaded = load_chain(saved)
    assert loaded.arch == "sm_90a"
    assert [layer["workload"] for layer in loaded.layers] == [w.spec for w in LAYERS]
    assert np.array_equal(loaded.run(x, "emulator"), right)
    assert np.array_equal(loaded.on_device("emulator")(x), right)
    assert not list(saved.parent.glob("*.partial"))


WITHOUT_TVM = """
import sys
class No:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("tvm", "tvm_ffi", "torch"):
            raise ImportError(name)
sys.meta_path.insert(0, No())
import numpy, subbyte
given = numpy.load(sys.argv[2])
chain = subbyte.load_chain(sys.argv[1])
assert numpy.array_equal(chain.run(given["x"], "emulator"), given["y"])
assert numpy.array_equal(chain.on_device("emulator")(given["x"]), given["y"])
print("right")
"""


def test_a_saved_chain_runs_without_tvm(chain, saved, tmp_path):
    _, x, right = chain
    np.savez(tmp_path / "given.npz", x=x, y=right)
    done = subprocess.run([sys.executable, "-c", WITHOUT_TVM, str(saved), str(tmp_path / "given.npz")],
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout == "right\n", done.stderr


def _changed(content, place, byte=1):
    return content[:place] + bytes([content[place] ^ byte]) + content[place + 1 :]


def test_damaged_chains_are_refused(saved, tmp_path):
    """Cut anywhere, or one bit changed anywhere: one sentence, never a chain."""
    content = saved.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    rng = np.random.default_rng(0)
    places = [0, 3, 8, 9, header - 20, header, header + 1, len(content) - 1, *rng.integers(0, len(content), 60)]
    damaged = [content[:0], content[:5], content[:100], content[:-1], content + b"\0", b"\0" * 64,
               *(_changed(content, int(place), 1 << int(rng.integers(8))) for place in places)]  # fmt: skip
    accepted = []
    for number, bad in enumerate(damaged):
        path = tmp_path / f"{number}.safetensors"
        path.write_bytes(bad)
        said = _refusal(path)
        if said is None:
            accepted.append(bad)
        else:
            assert str(path) in said
            assert "\n" not in said
    # a bit of a space of the header says nothing
    assert all(bad[:header] != content[:header] and bad[header:] == content[header:] for bad in accepted)
    assert len(accepted) <= 2


def _refusal(path):
    """Why a file is refused, None where it is not."""
    try:
        load_chain(path)
    except BrokenRecord as error:
        return str(error)
    return None


def test_chains_of_another_kind_are_refused(saved, tmp_path):
    content = saved.read_bytes()
    for number, (before, after, message) in enumerate((
        (b'"schema": "1"', b'"schema": "2"', "schema 2, this version reads 1; save it again"),
        (b"chain of subbyte", b"chain of another", "not a chain of subbyte"),
        (b'\\"overlap\\": false', b'\\"overlap\\":  true', "its description of the layers was changed"),
    )):  # fmt: skip
        assert before in content
        path = tmp_path / f"{number}.safetensors"
        path.write_bytes(content.replace(before, after, 1))
        with pytest.raises(BrokenRecord, match=message):
            load_chain(path)
    with pytest.raises(InvalidInput, match=r"cannot read chain .*none.safetensors: No such file"):
        load_chain(tmp_path / "none.safetensors")


def test_a_chain_that_cannot_be_written_leaves_nothing(chain, tmp_path):
    with pytest.raises(InvalidInput, match=r"cannot write chain .*: the folder"):
        chain[0].save(tmp_path / "missing" / "chain.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_chain_without_texts_needs_a_gpu(chain, tmp_path):
    layers, x, _ = chain
    small = load_chain(layers.save(tmp_path / "small.safetensors", texts=False))
    with pytest.raises(MissingDependency, match="saved without CUDA texts"):
        small.run(x, "emulator")
    with pytest.raises(MissingDependency):
        small.on_device("cuda:0")


def test_every_buffer_begins_at_a_multiple_of_its_slot():
    memory = device_layer._Memory()
    assert [memory.take(count) for count in (1, 256, 300, 4)] == [0, 256, 512, 1024]
    assert memory.size == 1280 + 256
