"""The arguments that commands share."""

import json

import pytest

from subbyte.cli import arguments
from subbyte.cli.parser import Parser
from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.workload import ConvWorkload, workload


@pytest.fixture
def parser():
    made = Parser(prog="subbyte build")
    arguments.add_json_argument(made)
    arguments.add_workload_argument(made)
    arguments.add_arch_argument(made)
    arguments.add_config_arguments(made)
    return made


def parse(parser, *argv):
    return parser.parse_args(arguments.spread_settings(argv))


@pytest.mark.parametrize(
    "argv",
    [
        ("resnet50.stage2@8", "--set", "chunk=2", "layout=NHWC"),
        ("--set", "chunk=2", "layout=NHWC", "resnet50.stage2@8"),
        ("--set", "chunk=2", "resnet50.stage2@8", "--set", "layout=NHWC"),
        ("--set=chunk=2", "--set=Layout=NHWC", "resnet50.stage2@8"),
    ],
)
def test_settings_in_every_order(parser, argv):
    args = parse(parser, *argv)
    assert args.workload == workload("resnet50.stage2@8")
    assert arguments.configuration(args) == MmaConfig(chunk=2, layout="nhwc")


def test_settings_change_a_base_and_none_keep_it(parser):
    base = MmaConfig(chunk=4)
    changed = arguments.configuration(parse(parser, "resnet50.stage2", "--set", "stages=3"), base)
    assert changed == MmaConfig(chunk=4, stages=3)
    assert arguments.configuration(parse(parser, "resnet50.stage2"), base) is base
    assert arguments.configuration(parse(parser, "resnet50.stage2")) is None


@pytest.mark.parametrize(("setting", "words"), [("chnk=2", "did you mean chunk"), ("chunk=", "knob=value"), ("a", "=")])
def test_wrong_settings(parser, setting, words):
    args = parse(parser, "resnet50.stage2", "--set", setting)
    with pytest.raises(InvalidInput, match=words):
        arguments.configuration(args)


def test_arch_is_normal_and_checked(parser):
    assert parse(parser, "resnet50.stage2", "--arch", "SM_80").arch == "sm_80"
    assert parse(parser, "resnet50.stage2").arch == "sm_90a"
    with pytest.raises(InvalidInput, match="did you mean sm_"):
        parse(parser, "resnet50.stage2", "--arch", "sm_81")


def test_the_message_about_a_workload_arrives_whole(parser):
    with pytest.raises(InvalidInput, match=r"did you mean resnet50.stage2 .*see `subbyte build --help`"):
        parse(parser, "resnet50.stag2")


def test_a_default_workload_is_a_workload():
    parser = Parser(prog="subbyte explain")
    arguments.add_workload_argument(parser, default="resnet50.stage2@8")
    assert isinstance(parser.parse_args([]).workload, ConvWorkload)


def test_flags_are_not_abbreviated(parser):
    with pytest.raises(InvalidInput, match="--js"):
        parse(parser, "resnet50.stage2", "--js")


def test_emit_prints_text_or_one_versioned_object(parser, capsys):
    arguments.emit("build", {"a": [1]}, parse(parser, "resnet50.stage2"), "text")
    assert capsys.readouterr().out == "text\n"
    arguments.emit("build", {"a": [1]}, parse(parser, "resnet50.stage2", "--json"), "text")
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "command": "build", "a": [1]}


def test_a_description_is_wrapped_and_an_example_is_not(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    example = "  subbyte explain tiling resnet50.stage2@8 --set warp_col_tiles=2 --block 3,1"
    words = "words " * 20
    made = Parser(prog="subbyte", description=f"{words}\n  name: {words}", epilog=f"example:\n{example}")
    lines = made.format_help().splitlines()
    assert example in lines
    assert all(len(line) <= 60 for line in lines if line != example)
    assert "  name: words" in made.format_help()
    assert "\n    words" in made.format_help(), "a named line has a hanging indent"
