"""A batch as two launches: every element on the emulator, alone, in chains and from files, and when it is taken."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

import subbyte
from subbyte import Chain
from subbyte.device.joined_text import joined, separate
from subbyte.device.launch import Part, launch_from_dict
from subbyte.emulator import run_cuda
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.mma.config import MmaConfig
from subbyte.families.registry import config_from_key
from subbyte.kernel import Kernel, load_chain, split
from subbyte.kernel.build import make_plan
from subbyte.kernel.edit import rebuild
from subbyte.kernel.execute import random_operands
from subbyte.kernel.split import Built, SplitKernel, in_parts
from subbyte.numerics import Requantization, reference
from subbyte.workload import ConvWorkload

LAYER = ConvWorkload(37, 4, 5, 40, 40, 3, 3, 1)
PLAIN, OTHER = MmaConfig(blk_col_warps=1), MmaConfig(blk_col_warps=1, warp_row_tiles=2)
WGMMA = "wgp-tw6-tr1-cm1-sg1-st4"


def kernel(workload, config=PLAIN, output=None):
    return Kernel(make_plan(workload, config, "sm_90a", output, None, "fixed"))


@lru_cache
def parted(sizes=(24, 13), output=None, layer=LAYER):
    """A layer as launches of kernels that differ."""
    parts = [kernel(replace(layer, n=n), (PLAIN, OTHER)[place % 2], output) for place, n in enumerate(sizes)]
    return SplitKernel.joining(replace(layer, n=sum(sizes)), parts)


def operands(one, seed=0):
    return random_operands(one, seed)


def test_every_element_of_a_ragged_batch():
    """37 images as 24 and 13, with another clip than the kernels were made for."""
    one = parted()
    x, w, requant = operands(one)
    requant = replace(requant, clip=(0, 7))
    expected = requant.apply(reference(one.workload, x, w))
    assert np.array_equal(one.run(x, w, requant, "emulator"), expected)
    layer = one.on_device(w, requant, "emulator")
    assert np.array_equal(layer(x), expected)
    words = layer(x, packed=True)
    assert np.array_equal(one.for_requantization(requant).unpack(words.view(np.uint32)), expected)


def test_parts_of_two_families_give_sums():
    """The wgmma kernel of 96 images beside an mma kernel of 4: each reads its weights in its own form."""
    layer = ConvWorkload(100, 4, 5, 32, 64, 3, 3, 1)
    parts = [kernel(replace(layer, n=96), config_from_key(WGMMA), "int32"), kernel(replace(layer, n=4), output="int32")]
    one = SplitKernel.joining(layer, parts)
    x, w, _ = operands(one)
    assert len({part.argument("Wt").form for part in parts}) == 2
    assert np.array_equal(one.run(x, w, device="emulator"), reference(layer, x, w))


def _checked(one, launch, fitting, buffers):
    out = np.full(one.argument("Out").shape, 0xCDCDCDCD, np.uint32)
    run = run_cuda(fitting.cuda, launch, {**buffers, "Out": out})
    return run, fitting.unpack(out)


def test_parts_in_the_wrong_place_are_found():
    """Planted: the second launch writes where the first did, and reads what the first read; or other weights."""
    one = parted()
    x, w, requant = operands(one)
    requant = replace(requant, clip=(0, 7))
    fitting, expected = one.for_requantization(requant), requant.apply(reference(one.workload, x, w))
    buffers = fitting.pack(x, w, requant)
    run, values = _checked(one, fitting.launch, fitting, buffers)
    assert run.problems == ()
    assert np.array_equal(values, expected)
    first, second = fitting.launch.parts
    again = replace(fitting.launch, parts=(first, Part(second.launch, (0, 0, *second.begins[2:]))))
    assert not np.array_equal(_checked(one, again, fitting, buffers)[1], expected)
    half = len(buffers["Wt"]) // 2
    moved = {**buffers, "Wt": np.roll(buffers["Wt"], half + 1)}
    assert not np.array_equal(_checked(one, fitting.launch, fitting, moved)[1], expected)


def test_in_a_chain_and_from_a_file(tmp_path):
    """Behind another layer, before another one, and saved."""
    following = replace(LAYER, k=16, r=1, s=1, pad=0)
    layers = (LAYER, following)
    kernels = [parted(), kernel(following)]
    rng = np.random.default_rng(3)
    x, w, requant = operands(kernels[0])
    requant = replace(requant, clip=(0, 7))
    weights = [w, operands(kernels[1])[1]]
    requants = [requant, Requantization.random(following, rng)]
    expected = x
    for layer, weight, of in zip(layers, weights, requants, strict=True):
        expected = of.apply(reference(layer, expected, weight))
    chain = Chain(kernels, weights, requants)
    assert np.array_equal(chain.run(x, "emulator"), expected)
    assert np.array_equal(chain.on_device("emulator")(x), expected)
    saved = load_chain(chain.save(tmp_path / "chain.safetensors"))
    assert np.array_equal(saved.run(x, "emulator"), expected)
    assert saved.links[0].program.launch == chain.kernels[0].launch


def test_its_launch_is_data():
    launch = parted().launch
    assert launch_from_dict(launch.to_dict()) == launch
    assert launch.to_dict() == launch_from_dict(launch.to_dict()).to_dict()
    assert "parts" not in kernel(LAYER).launch.to_dict()
    assert [step.launch for step in kernel(LAYER).launch.steps] == [kernel(LAYER).launch]


def test_texts_stand_in_one_and_come_apart_again():
    texts = ["a {\n}\n", "b\n}\n", "c // part_1\n"]
    assert separate(joined(texts)) == texts
    assert separate(texts[0]) == texts[:1]


def test_parts_that_do_not_fit_are_refused():
    first, last = kernel(replace(LAYER, n=24)), kernel(replace(LAYER, n=13))
    for parts, why in (
        ([last, first], "each part but the last has a multiple of 8 images"),
        ([first, first], "the parts are no parts of it"),
        ([first, kernel(replace(LAYER, n=13), output="int32")], "architecture and output of its kernels differ"),
        ([first, kernel(replace(LAYER, n=13), replace(PLAIN, layout="nhwc"))], "words of A in nhwc and nhwcnc"),
    ):
        with pytest.raises(Unsupported, match=f"37x4x5.*{why}|n37.*{why}"):
            SplitKernel.joining(LAYER, parts)


def test_what_one_launch_alone_can_do_says_so(tmp_path):
    one = parted()
    with pytest.raises(Unsupported, match=r"is 2 launches, and a C header starts one: export each of kernel\.parts"):
        one.export(tmp_path)
    with pytest.raises(Unsupported, match="is 2 launches: trace them, or some of their blocks, separately"):
        one.trace()
    with pytest.raises(Unsupported, match=r"is 2 launches: edit the text of one of kernel\.parts"):
        rebuild(one, one.cuda)
    with pytest.raises(InvalidInput, match="an int4 output needs requant="):
        one.run(*operands(one)[:2], device="emulator")
    assert "24 images" in one._repr_html_()


class _Expecting:
    """A family that expects so much of kernels, by their images, and that offers such ways."""

    def __init__(self, times, ways):
        self.times, self.ways = times, ways

    def expected(self, workload, config, arch):
        found = self.times.get(workload.n)
        return None if found is None else type("Expected", (), {"microseconds": found})

    def launches(self, workload, arch):
        return self.ways


@pytest.mark.parametrize(
    ("times", "ways", "taken"),
    [
        ({37: 10.0, 24: 5.0, 13: 4.0}, [((24, 13), 9.0)], (24, 13)),
        ({37: 10.0, 24: 5.0, 13: 4.8}, [((24, 13), 9.0)], None),  # too little to count on
        ({37: 10.0, 24: 5.0, 13: 4.0}, [((24, 13), 9.8)], None),  # not worth building
        ({37: 10.0, 24: 5.0, 13: 4.0, 16: 4.0, 21: 4.5}, [((24, 13), 8.0), ((16, 21), 8.4)], (16, 21)),
        ({37: 10.0, 24: 5.0}, [((24, 13), 9.0)], None),  # nothing is expected of a part
        ({24: 5.0, 13: 4.0}, [((24, 13), 9.0)], None),  # nor of the whole
        ({37: 10.0, 20: 1.0, 17: 1.0}, [((20, 17), 2.0)], None),  # no whole groups of images
        ({37: 10.0}, [], None),
    ],
)
def test_two_launches_are_taken_where_they_are_expected_to_be_faster(monkeypatch, times, ways, taken):
    monkeypatch.setattr(split, "family_of", lambda config: _Expecting(times, ways))
    found = in_parts(Built(kernel(LAYER), None), lambda layer: Built(kernel(layer), None))
    assert (found and tuple(one.workload.n for one in found.parts)) == taken
    if taken == (24, 13):
        assert found.reason.startswith("two launches, of 24 and 13 images: 9.00 us expected (5.00 and 4.00), of one "
                                       "10.00; 24 images: ")  # fmt: skip
    assert in_parts(Built(kernel(LAYER), 20.0), lambda layer: Built(kernel(layer), None)) is None  # it was measured


@pytest.mark.deep
def test_compile_takes_two_launches_at_272_images():
    """Stage 5 at 272 images has a last wave that is nearly empty: 51 us measured, its parts 39 (notes/tuning.md)."""
    one = subbyte.compile("resnet50.stage5@272")
    assert [part.workload.n for part in one.parts] == [256, 16]
    assert one.reason.startswith("two launches, of 256 and 16 images: ")
    assert one.resources.local_bytes == 0
    assert one.cubin.count(b"conv_kernel_1\0") > 0
    assert subbyte.compile("resnet50.stage5@256").parts[0].workload.n == 256  # a record
    assert len(subbyte.compile("resnet50.stage5@64").parts) == 1
