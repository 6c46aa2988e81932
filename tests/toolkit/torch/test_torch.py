"""subbyte.torch on a CPU build of PyTorch: kernels run in the emulator, so every element is compared."""

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.mma.config import MmaConfig
from subbyte.numerics import Requantization, quantize, reference, scale_for
from subbyte.workload import ConvWorkload

ARCH = "sm_80"
FIRST, SECOND = ConvWorkload(2, 4, 5, 40, 32, 3, 3, 1), ConvWorkload(2, 4, 5, 32, 24, 1, 1, 0)
SCALE = 0.3


def _drawn(workload, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-8, 8, (workload.n, workload.h, workload.w, workload.c), np.int8)
    w = rng.integers(-8, 8, (workload.k, workload.r, workload.s, workload.c), np.int8)
    return x, w, Requantization.random(workload, rng)


@pytest.fixture(scope="module")
def make(torch):
    """A layer of random weights: ``make(workload, **options)``, with its operands as attributes."""
    from subbyte.torch import Conv2d

    def layer(workload, sums=False, **options):
        x, w, requant = _drawn(workload)
        given = torch.from_numpy(np.ascontiguousarray(w.transpose(0, 3, 1, 2)))
        made = Conv2d(given, None if sums else requant, (workload.n, workload.h, workload.w), arch=ARCH,
                      **{"padding": workload.pad, "input_scale": SCALE, "output_scale": 0.5, **options})  # fmt: skip
        made.drawn = x, w, requant
        return made

    return layer


@pytest.fixture(scope="module")
def layer(make):
    return make(FIRST)


@pytest.fixture
def right(layer):
    x, w, requant = layer.drawn
    return requant.apply(reference(FIRST, x, w)).transpose(0, 3, 1, 2)


@pytest.fixture
def given(torch, layer):
    """int8 [N,C,H,W], channels last."""
    return torch.from_numpy(layer.drawn[0]).permute(0, 3, 1, 2)


def test_int8_values_of_either_memory_format(torch, layer, given, right):
    for x in (given, given.contiguous()):
        y = layer(x)
        assert y.dtype == torch.int8
        assert y.is_contiguous(memory_format=torch.channels_last)
        assert np.array_equal(y.numpy(), right)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_real_values_are_quantized_as_the_library_does(torch, layer, dtype):
    real = (torch.randn(FIRST.n, FIRST.c, FIRST.h, FIRST.w, generator=torch.Generator().manual_seed(1)) * 2).to(
        getattr(torch, dtype)
    )
    _, w, requant = layer.drawn
    x = quantize(real.permute(0, 2, 3, 1).double().numpy(), SCALE)
    right = requant.apply(reference(FIRST, x, w)).transpose(0, 3, 1, 2)
    assert np.array_equal(layer(real).numpy(), right)


def test_words_stay_packed_between_layers(torch, make, given):
    first, second = make(FIRST, gives="packed"), make(SECOND, gives="float")
    network = torch.nn.Sequential(first, second)
    y = network(given)
    x, w, requant = first.drawn
    _, w2, requant2 = second.drawn
    between = requant.apply(reference(FIRST, x, w))
    right = requant2.apply(reference(SECOND, between, w2)).transpose(0, 3, 1, 2)
    assert first(given).dtype == torch.int32
    assert y.dtype == torch.float32
    assert np.array_equal(y.numpy(), right * np.float32(0.5))


def test_sums_without_a_requantization(torch, make):
    layer = make(SECOND, sums=True)
    x, w, _ = layer.drawn
    y = layer(torch.from_numpy(x).permute(0, 3, 1, 2))
    assert y.dtype == torch.int32
    assert np.array_equal(y.numpy(), reference(SECOND, x, w).transpose(0, 3, 1, 2))


def test_compiled_in_one_graph(torch, layer, given, right):
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert np.array_equal(compiled(given).numpy(), right)
    real = torch.randn(FIRST.n, FIRST.c, FIRST.h, FIRST.w)
    assert torch.equal(compiled(real), layer(real))


def test_exported_and_loaded(torch, layer, given, right):
    program = torch.export.export(layer, (given,))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    again = torch.export.load(file).module()
    assert np.array_equal(again(given).numpy(), right)


def _calls(torch, layer, given):
    """Each operator with arguments as the module gives them."""
    ops = torch.ops.subbyte
    nhwc = given.permute(0, 2, 3, 1)
    real = torch.randn(FIRST.n, FIRST.c, FIRST.h, FIRST.w).permute(0, 2, 3, 1)
    words = ops.pack(nhwc, None, layer.reads, layer.arch)
    out = ops.conv2d(words, layer.weight, layer.requantization, layer.kernel)
    return [
        (ops.pack.default, (nhwc, None, layer.reads, layer.arch)),
        (ops.pack.default, (real, layer.thresholds, layer.reads, layer.arch)),
        (ops.conv2d.default, (words, layer.weight, layer.requantization, layer.kernel)),
        (ops.unpack.default, (out, layer.shape, layer.writes, layer.arch, layer.element)),
    ]


def test_operators_pass_opcheck(torch, layer, given):
    for operator, arguments in _calls(torch, layer, given):
        found = torch.library.opcheck(operator, arguments)
        assert set(found.values()) == {"SUCCESS"}


@pytest.mark.parametrize("place", range(4))
def test_a_wrong_fake_shape_is_found(torch, layer, given, monkeypatch, place):
    """opcheck refuses an operator whose fake implementation says another size: the check above can fail."""
    operator, arguments = _calls(torch, layer, given)[place]
    schema = str(operator._schema).replace("subbyte::", "")
    library = torch.library.Library(f"subbyte_wrong{place}", "DEF")
    library.define(schema.replace(f"{operator._opname}(", f"{operator._opname}("))
    library.impl(operator._opname, lambda *given: operator(*given), "CPU")
    torch.library.register_fake(
        f"subbyte_wrong{place}::{operator._opname}", lambda x, *more: x.new_empty((3,), dtype=torch.int32), lib=library
    )
    wrong = getattr(getattr(torch.ops, f"subbyte_wrong{place}"), operator._opname).default
    with pytest.raises(Exception, match=r"(?i)shape|size|dtype|mismatch"):
        torch.library.opcheck(wrong, arguments, test_utils="test_faketensor")


def test_the_state_is_the_packed_weights(torch, make, layer, given, right):
    _, other, requant = _drawn(FIRST, seed=5)
    from subbyte.torch import Conv2d

    blank = Conv2d(other.transpose(0, 3, 1, 2), requant, (FIRST.n, FIRST.h, FIRST.w), padding=1, arch=ARCH,
                   input_scale=1.0)  # fmt: skip
    if blank.kernel != layer.kernel:  # a random requantization may take the other form of parameters
        pytest.fail("the seeds must give kernels with one form of parameters")
    assert not np.array_equal(blank(given).numpy(), right)
    state = layer.state_dict()
    assert sorted(state) == ["_extra_state", "requantization", "thresholds", "weight"]
    assert state["weight"].dtype == torch.int32
    assert blank.load_state_dict(state).missing_keys == []
    assert np.array_equal(blank(given).numpy(), right)
    with pytest.raises(InvalidInput, match="the state is packed for the kernel 'n2h4w5c40k32r3s3p1"):
        make(SECOND).set_extra_state(state["_extra_state"])


def _float_layer(torch, norm=True):
    torch.manual_seed(3)
    convolution = torch.nn.Conv2d(40, 32, 3, padding=1)
    batch = torch.nn.BatchNorm2d(32)
    with torch.no_grad():
        batch.running_mean.normal_()
        batch.running_var.uniform_(0.5, 2)
        batch.weight.normal_()
        batch.bias.normal_()
    return convolution, batch.eval() if norm else None


def test_a_float_layer_with_batch_normalization(torch):
    """Against the same steps with the library's helpers and the float layers themselves."""
    from subbyte.torch import Conv2d

    convolution, norm = _float_layer(torch)
    sample = torch.randn(2, 40, 4, 5)
    layer = Conv2d.from_float(convolution, (2, 4, 5), norm=norm, relu=True, sample=sample, arch=ARCH)
    with torch.no_grad():
        real = torch.relu(norm(convolution(sample)))
    assert layer.input_scale == scale_for(sample.numpy())
    assert layer.output_scale == pytest.approx(scale_for(real.numpy()), rel=1e-6)
    found = layer(sample)
    assert found.min() == 0
    assert torch.corrcoef(torch.stack([found.ravel(), real.ravel()]))[0, 1] > 0.97
    # the same layer from integers, exact
    factor = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
    folded = (convolution.weight.double() * factor[:, None, None, None]).detach().numpy()
    bias = ((convolution.bias.double() - norm.running_mean.double()) * factor + norm.bias.double()).detach().numpy()
    scales = np.array([scale_for(one) for one in folded])
    w = np.stack([quantize(one, scale) for one, scale in zip(folded, scales, strict=True)]).transpose(0, 2, 3, 1)
    steps = np.rint(bias / (layer.input_scale * scales)).astype(np.int32)
    requant = Requantization.from_scale(layer.input_scale * scales / layer.output_scale, steps, relu=True)
    x = quantize(sample.permute(0, 2, 3, 1).numpy(), layer.input_scale)
    right = requant.apply(reference(FIRST, x, np.ascontiguousarray(w))).transpose(0, 3, 1, 2)
    assert np.array_equal(found.numpy(), right * np.float32(layer.output_scale))


def test_float_layers_that_no_kernel_computes_are_refused(torch):
    from subbyte.torch import Conv2d

    conv = torch.nn.Conv2d
    for convolution, message in (
        (conv(8, 8, 3, groups=2), "groups=2: must be 1"),
        (conv(8, 8, 3, padding=(1, 0)), r"padding=\(1, 0\): must be one number"),
        (conv(8, 8, 3, padding="same"), "padding='same': must be one number"),
        (conv(8, 8, 3, padding=1, padding_mode="reflect"), "padding_mode='reflect': must be 'zeros'"),
    ):
        with pytest.raises(Unsupported, match=message):
            Conv2d.from_float(convolution, (1, 4, 4), input_scale=1.0, output_scale=1.0, arch=ARCH)
    with pytest.raises(InvalidInput, match="or a sample of the input to observe them on"):
        Conv2d.from_float(conv(8, 8, 3), (1, 4, 4), input_scale=1.0, arch=ARCH)
    with pytest.raises(InvalidInput, match="norm has 4 channels, the convolution 8"):
        Conv2d.from_float(conv(8, 8, 3), (1, 4, 4), norm=torch.nn.BatchNorm2d(4), input_scale=1.0, output_scale=1.0)


def test_tensors_that_do_not_fit_are_refused(torch, layer, given):
    words = torch.ops.subbyte.pack(given.permute(0, 2, 3, 1), None, layer.reads, layer.arch)
    op = torch.ops.subbyte
    for call, message in (
        (
            lambda: layer(given[:, :8]),
            r"x has shape \[2, 8, 4, 5\]: .*; N, H and W may differ, C may not",
        ),
        (lambda: layer(given.long()), "x is torch.int64 .*: must be .* of int8, float16"),
        (lambda: layer(words[:-4]), "x is torch.int32 with 1276 elements: must be torch.int32 with 1280"),
        (lambda: layer(words.repeat_interleave(2)[::2]), r"x has strides \[2\]: must be contiguous"),
        (lambda: layer(torch.zeros(1284, dtype=torch.int32)[1:1281]), "must be a multiple of 16 bytes"),
        (lambda: op.conv2d(words, layer.weight.short(), layer.requantization, layer.kernel), "weight is torch.int16"),
        (lambda: op.conv2d(words, layer.weight, None, layer.kernel), "parameters are missing"),
        (lambda: op.conv2d(words, layer.weight, None, "what"), "kernel 'what': expected a text"),
        (lambda: op.pack(given.permute(0, 2, 3, 1)[:, ::2], None, "nhwc", ARCH), r"x has strides .*: must be dense"),
        (lambda: op.pack(given.permute(0, 2, 3, 1).float(), None, "nhwc", ARCH), "given no input_scale"),
    ):
        with pytest.raises(InvalidInput, match=message):
            call()


def test_bad_layers_are_refused(torch, make):
    from subbyte.torch import Conv2d

    for options, message in (
        ({"gives": "words"}, "gives='words'"),
        ({"input_scale": 0.0}, "input_scale=0.0: must be a number > 0"),
        ({"gives": "float", "output_scale": None}, "output_scale=None: must be a number > 0"),
    ):
        with pytest.raises(InvalidInput, match=message):
            make(SECOND, **options)
    for weight, size, message in (
        (np.full((8, 8, 1, 1), 9, np.int8), (1, 2, 2), "weight"),
        (np.zeros((8, 8), np.int8), (1, 2, 2), r"weight has shape \[8, 8\]: expected four dimensions"),
        (np.zeros((8, 8, 1, 1), np.int8), 3, r"input_size=3: expected \(N, H, W\)"),
    ):
        with pytest.raises(InvalidInput, match=message):
            Conv2d(weight, None, size, arch=ARCH)


class _Launches:
    """In place of a GPU: what would be enqueued."""

    def __init__(self):
        self.seen = []

    def __call__(self, addresses, stream, overlap):
        self.seen.append((tuple(addresses), stream, overlap))


def test_launches_go_to_torchs_current_stream(torch, layer, monkeypatch):
    """What the CUDA implementation does, with a launcher that writes down and tensors of the CPU in place of a GPU's.
    A launch on another stream than torch's current one would be found."""
    from subbyte.torch import operators

    launches, streams = _Launches(), iter([77, 78])
    sizes = {one.name: one.shape[0] for one in operators.kernel_of(layer.kernel).launch.arguments}
    monkeypatch.setattr(operators, "_load", lambda program, device: launches)
    monkeypatch.setattr(operators, "_ready", {})
    monkeypatch.setattr(operators, "_stream", lambda device: next(streams))
    x = torch.zeros(sizes["A"], dtype=torch.int32)
    for stream in (77, 78):
        out = operators._conv2d(x, layer.weight, layer.requantization, layer.kernel)
        addresses = (x.data_ptr(), out.data_ptr(), layer.requantization.data_ptr(), layer.weight.data_ptr())
        assert launches.seen[-1] == (addresses, stream, False)
    assert [one.name for one in operators.kernel_of(layer.kernel).launch.arguments] == ["A", "Out", "Prm", "Wt"]


def test_the_stream_is_looked_up_in_torch(torch, monkeypatch):
    from subbyte.torch import operators

    assert operators._stream(-1) == 0
    monkeypatch.setattr(operators, "_raw_stream", lambda device: 1000 + device)
    assert operators._stream(3) == 1003


def test_a_capture_before_the_first_call_is_refused(torch, layer, monkeypatch):
    from subbyte.torch import operators

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(InvalidInput, match="call it once before the capture"):
        operators._load(operators.kernel_of(layer.kernel), 0)


def test_a_kernels_text_names_it(make, layer):
    from subbyte.kernel.build import make_plan
    from subbyte.kernel.kernel import Kernel
    from subbyte.torch.operators import kernel_of, kernel_text

    for config, output, clip, requant in (
        (MmaConfig(blk_col_warps=1), "int4", (0, 7), "general"),
        (MmaConfig(blk_col_warps=1, chunk=2), "int32", (-8, 7), "fixed"),
    ):
        kernel = Kernel(make_plan(FIRST, config, "sm_80", output, clip, requant))
        assert kernel_of(kernel_text(kernel)).plan == kernel.plan
    assert kernel_text(kernel_of(layer.kernel)) == layer.kernel


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import subbyte, subbyte.kernel, subbyte.measure.tries
subbyte.conv2d, subbyte.Chain, subbyte.load_chain
try:
    import subbyte.torch
except subbyte.errors.MissingDependency as error:
    print(error)
"""


def test_without_torch_there_is_one_sentence():
    code = "import subbyte.errors\n" + WITHOUT_TORCH
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "subbyte.torch needs PyTorch" in done.stdout, done.stderr
    assert "pip install 'subbyte[torch]'" in done.stdout


def test_nothing_else_imports_torch():
    code = "import sys, subbyte\nfor name in dir(subbyte): getattr(subbyte, name)\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_further_sizes_are_built_once_and_exact(torch, make):
    layer = make(FIRST)
    _, w, requant = layer.drawn
    x = np.random.default_rng(9).integers(-8, 8, (3, 5, 4, 40), np.int8)
    given = torch.from_numpy(x).permute(0, 3, 1, 2)
    wanted = requant.apply(reference(ConvWorkload(3, 5, 4, 40, 32, 3, 3, 1), x, w)).transpose(0, 3, 1, 2)
    assert np.array_equal(layer(given).numpy(), wanted)
    found = layer._of_size(given)
    assert layer._of_size(given) is found
    assert found.kernel != layer.kernel
    assert found.weight is layer.weight, "both kernels read the same words"
    assert set(layer.state_dict()) == set(make(FIRST).state_dict()), "further sizes are no part of the state"


def test_further_sizes_need_a_call_outside_and_the_layers_own_words(torch, make):
    layer = make(FIRST)
    other = torch.zeros((1, 40, 4, 5), dtype=torch.int8)
    with pytest.raises(Exception, match="hold only that size, no dynamic one"):
        torch.export.export(layer, (other,), strict=False)
    with torch.no_grad():
        layer.weight[0] ^= 1
    with pytest.raises(InvalidInput, match="loaded from a state, which other sizes cannot be packed"):
        layer(other)
    dynamic = {"x": {0: torch.export.Dim("n", min=2, max=64)}}
    with pytest.raises(Exception, match=r"hold that size alone|specialized|[Cc]onstraint"):
        torch.export.export(layer, (torch.zeros((2, 40, 4, 5), dtype=torch.int8),), dynamic_shapes=dynamic)


def test_a_batch_of_two_launches(torch):
    """The operator runs both on the whole tensors; its text names them, and fake tensors have the whole size."""
    from subbyte.kernel import Kernel
    from subbyte.kernel.build import make_plan
    from subbyte.kernel.split import SplitKernel
    from subbyte.torch.operators import kernel_of, kernel_text

    whole, config = ConvWorkload(11, 4, 5, 40, 32, 3, 3, 1), MmaConfig(blk_col_warps=1)
    x, w, requant = _drawn(whole)
    parts = [Kernel(make_plan(replace(whole, n=n), config, ARCH, None, None, "fixed")) for n in (8, 3)]
    kernel = SplitKernel.joining(whole, parts).for_requantization(requant)
    text = kernel_text(kernel)
    assert kernel_of(text).launch == kernel.launch
    words = {
        name: torch.from_numpy(held.reshape(-1).view(np.int32)) for name, held in kernel.pack(x, w, requant).items()
    }
    out = torch.ops.subbyte.conv2d(words["A"], words["Wt"], words["Prm"], text)
    assert np.array_equal(kernel.unpack(out.numpy().view(np.uint32)), requant.apply(reference(whole, x, w)))
    fake = torch.ops.subbyte.conv2d(words["A"].to("meta"), words["Wt"].to("meta"), words["Prm"].to("meta"), text)
    assert fake.shape == out.shape
