"""What can be shown of a kernel on ``mma.sync``: the modules of this folder make the records of its topics."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from subbyte.errors import Unsupported
from subbyte.families.mma.explain.accesses import Accesses
from subbyte.families.mma.explain.load_steps import LoadSteps, load_steps
from subbyte.families.mma.explain.packing import PackingRun, packing_run
from subbyte.families.mma.explain.tiling import Tiling, tiling, with_block
from subbyte.families.mma.explain.warp import accesses
from subbyte.families.topic import Option, Topic
from subbyte.info_record import InfoRecord
from subbyte.workload.coverage import four_bits_alone, whole_codes

_BLOCK = Option(
    "block", "pixel tile and column block (default 0,0)", (0, 0), "pair", "I,J",
    "a pixel tile and a column block such as 0,0",
)  # fmt: skip


def _of_four_bits(record: Callable[..., Any]) -> Callable[..., Any]:
    """The same record, refused for operand types that it does not support: it would show words that the kernel does not
    have."""

    @wraps(record)
    def made(plan: Any = None, *given: Any, **options: Any) -> Any:
        if plan is None or four_bits_alone(plan.workload) is None or whole_codes(plan.workload) is not None:
            return record(plan, *given, **options)
        types = plan.workload.precision
        raise Unsupported(
            f"{plan.workload.label}: this is drawn for operands of four bits without zero points, not for {types}; "
            f"see the same layer of int4, {plan.workload.sizes}, or the kernel's own text (subbyte build --emit cuda)"
        )

    return made


TOPICS: dict[str, Topic[InfoRecord]] = {
    "tiling": Topic(
        "How a convolution becomes a matrix product, divided among blocks, warps and instructions.",
        "subbyte explain tiling resnet50.stage2@8 --set warp_col_tiles=2 --block 3,1",
        Tiling,
        lambda plan, block=(0, 0): tiling(plan),
        (_BLOCK,),
        plain=True,
        said=with_block,
        tab="Tiling",
        view="subbyte_widgets.convolution_tiling:TilingExplorer",
    ),
    "loads": Topic(
        "What one warp copies, loads and multiplies, step by step, traced on the CPU.",
        "subbyte explain loads n8h6w6c32k32r3s3p1 --arch sm_80 --set duplicate_aware=full",
        LoadSteps,
        _of_four_bits(load_steps),
        (
            Option("block", "block along the pixels (default: the first of the second row of tiles)"),
            Option("warp", "warp of the block (default 0)", 0),
        ),
        of="run",
        plain=True,
        tab="Load",
        view="subbyte_widgets.load_stepper:LoadStepper",
    ),
    "packing": Topic(
        "How the lanes of a warp pack int4 results into words with shuffles, step by step on random values.",
        "subbyte explain packing --scheme quad",
        PackingRun,
        _of_four_bits(packing_run),
        (
            Option("scheme", "quad (default) or width8", "quad", "text", "SCHEME"),
            Option("tiles", "8x8 tiles to pack (default: as many as the scheme takes)"),
            Option("seed", "seed of the values (default 0)", 0, "seed"),
        ),
        of="any",
        tab="Packing",
        view="subbyte_widgets.packing_stepper:PackingStepper",
    ),
    "layout": Topic(
        "Which addresses one warp reads and writes, the sectors they touch, and the bank conflicts.",
        "subbyte explain layout resnet50.stage2@8 --layout nhwc --set warp_row_tiles=8",
        Accesses,
        _of_four_bits(accesses),
        (
            Option("layout", "nhwc, hwnc or nhwcnc (default: the configuration's, nhwcnc)", None, "text", "LAYOUT"),
            _BLOCK,
            Option("warp", "warp of the block (default 0)", 0),
            Option("iteration", "stage of the main loop (default 0)", 0),
        ),
        tab="Layout",
        view="subbyte_widgets.layout_view:LayoutView",
    ),
}
