"""Modules of the version before keep their names for one minor version, with a warning that says where they are."""

import importlib
import warnings

import pytest

from subbyte.renamed import MOVED
from subbyte.renamed import NAMES as FORMER

NAMES = {
    "data": "Requantization accumulator_bound check_int4 float_words from_hwnc_words from_nhwc_words from_nhwcnc "
    "pack_words prepare_warpgroup_weights prepare_weights quantize reference relayout scale_for to_hwnc_words "
    "to_nhwc_words to_nhwcnc unpack_words",
    "schedule": "ATOMS KNOBS SWITCHES WARPGROUP_KNOBS Argument Atom Launch Plan WarpgroupConfig "
    "WarpgroupPlan config_from_dict config_from_key plan warp_family_only",
    "space": "KINDS Space space value_lists why_not",
    "measure.driver": "detect describe CudaError DeviceHang",
    "measure.result": "Measured Failed Result FAILURE_KINDS",
    "measure.timing": "Protocol",
    "tune.exchange": "FORMATS export_landscape from_frame from_kernel_tuner from_rows from_t4 import_landscape "
    "restriction to_csv to_kernel_tuner to_t4 to_text",
    "tune.landscape": "Landscape landscape find_landscape shipped",
    "tune.log": "Entry LogWriter read_contents",
}
"""Public names of the modules before they moved: those of ``__all__`` where there was one, else what others used."""


@pytest.mark.parametrize("old", NAMES)
def test_every_public_name_of_the_version_before_is_found_with_a_warning(old: str) -> None:
    module = importlib.import_module(f"subbyte.{old}")
    for name in NAMES[old].split():
        with pytest.warns(DeprecationWarning, match=rf"subbyte\.{old}\.{name} is now subbyte\.\w+(\.\w+)*\.{name};"):
            assert getattr(module, name) is not None


@pytest.mark.parametrize("old", MOVED)
def test_every_old_module_can_be_imported_and_lists_its_names(old: str) -> None:
    module = importlib.import_module(f"subbyte.{old}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert all(getattr(module, name) is not None for name in module.__all__)


def test_the_names_are_the_same_objects() -> None:
    from subbyte.numerics import Requantization

    with pytest.warns(DeprecationWarning, match="subbyte.numerics.Requantization"):
        from subbyte.data import Requantization as old
    assert old is Requantization


def test_the_package_that_was_a_function_too_is_still_called() -> None:
    import subbyte

    old = importlib.import_module("subbyte.space")
    assert len(old("resnet50.stage2@8")) == len(subbyte.space("resnet50.stage2@8"))
    importlib.import_module("subbyte.tune.landscape")
    assert len(subbyte.tune.landscape("resnet50.stage2@8")) > 0


def test_other_names_are_refused() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"subbyte\.dat"):
        importlib.import_module("subbyte.dat")
    with pytest.raises(AttributeError, match="no attribute 'pack_wrods'"):
        importlib.import_module("subbyte.data").pack_wrods  # noqa: B018


def test_old_names_of_spaces_families_and_peaks_warn_and_work() -> None:
    import subbyte
    from subbyte import device
    from subbyte.families.registry import families

    paper = subbyte.space("resnet50.stage2@8", "sm_90a")
    with pytest.warns(DeprecationWarning, match=r"Space\.why_not is now Space\.check"):
        assert paper.why_not(0) == paper.check(0)
    plan = paper.plan(paper.valid[0])
    family = next(iter(families().values()))
    with pytest.warns(DeprecationWarning, match="why_not is now"):
        assert family.why_not(plan) == family.check(plan)
    with pytest.warns(DeprecationWarning, match="ceilings is now measured_peaks"):
        peaks = device.peaks.ceilings()  # an old module of this name may hide that of the package
    assert peaks == device.measured_peaks()
    with pytest.warns(DeprecationWarning, match="ceiling is now peak"):
        assert peaks.ceiling("s8.m16n8k32") == peaks.peak("s8.m16n8k32")
    with pytest.warns(DeprecationWarning, match="Ceilings is now"):
        from subbyte.device.ceilings import Ceilings
    assert Ceilings is device.MeasuredPeaks


@pytest.mark.parametrize(
    ("name", "module"), [(name, module) for name, (modules, *_) in FORMER.items() for module in modules]
)
def test_every_renamed_name_is_found_where_it_was_with_a_warning(name: str, module: str) -> None:
    home = importlib.import_module(f"subbyte.{module}".rstrip("."))
    with pytest.warns(DeprecationWarning, match=rf"{name} is now .*; the old name goes") as seen:
        assert getattr(home, name) is not None
    assert [one.filename for one in seen] == [__file__]
    with pytest.raises(AttributeError, match=f"no attribute '{name}s'"):
        getattr(home, f"{name}s")


def test_fields_of_records_are_read_and_written_by_the_names_they_had() -> None:
    from subbyte.device.launch import Launch

    launch = Launch("k", (1, 1, 1), (32, 1, 1), 0, (), 1, True)
    with pytest.warns(DeprecationWarning, match=r"Launch\.overlap is now Launch\.dependent_launch"):
        assert launch.overlap is launch.dependent_launch is True  # type: ignore[attr-defined]
    assert launch.to_dict()["overlap"] is True
    with pytest.raises(AttributeError, match="'Launch' object has no attribute 'overlop'"):
        _ = launch.overlop  # type: ignore[attr-defined]


def test_arguments_are_taken_by_the_names_they_had() -> None:
    from subbyte.former import former_arguments

    @former_arguments(old="new")
    def function(new: int = 0, other: int = 0) -> tuple[int, int]:
        return new, other

    with pytest.warns(DeprecationWarning, match="old= is now new=") as seen:
        assert function(other=1, old=2) == (2, 1)  # type: ignore[call-arg]
    assert seen[0].filename == __file__
    with pytest.raises(TypeError, match="older"):
        function(older=1)  # type: ignore[call-arg]
