"""``subbyte build``: texts and files of one kernel, and what it refuses."""

import json

import pytest

from subbyte.cli.main import main

LAYER = "n8h7w9c32k32r3s3p1"


def test_summary(capsys):
    assert main(["build", LAYER, "--set", "warp_row_tiles=4", "chunk=1"]) == 0
    out = capsys.readouterr().out
    assert "s8.m16n8k32 (int4 unpacked in registers)" in out
    assert "0 bytes of local memory" in out


@pytest.mark.parametrize(
    ("form", "arch", "holds"),
    [
        ("tir", "sm_90a", "def conv("),
        ("cuda", "sm_75", "mma.sync.aligned.m8n8k32"),
        ("ptx", "sm_80", "mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32"),
        ("sass", "sm_90a", "IGMMA.64x"),
    ],
)
def test_emit(capsys, form, arch, holds):
    assert main(["build", LAYER, "--arch", arch, "--emit", form]) == 0
    assert holds in capsys.readouterr().out


def test_the_family_and_why(capsys):
    assert main(["build", LAYER]) == 0
    assert "chosen         wgmma family, chosen by estimate" in capsys.readouterr().out
    assert main(["build", LAYER, "--arch", "sm_80"]) == 0
    assert "chosen         mma family, because atom: wgmma exists only on sm_90a" in capsys.readouterr().out
    assert main(["build", LAYER, "--family", "mma", "--emit", "sass"]) == 0
    assert "IMMA.16832.S8.S8" in capsys.readouterr().out
    assert main(["build", "n1h5w5c40k65r5s5p2", "--family", "wgmma"]) == 0, "the first estimate does not build"
    assert "s8.wgmma" in capsys.readouterr().out
    assert main(["build", "n8h4w4c64k64r3s3p3", "--family", "wgmma"]) == 2
    assert "in the wgmma family: padding" in capsys.readouterr().err


def test_an_emulated_instruction_says_so(capsys):
    assert main(["build", LAYER, "--set", "atom=s4.m16n8k32"]) == 0
    assert "emulated on sm_90a: about 40 times slower" in capsys.readouterr().out


def test_the_wgmma_family(capsys):
    layer = "n8h8w8c64k64r3s3p1"
    assert main(["build", layer, "--family", "wgmma", "--set", "layout=nhwc", "register_packing=off"]) == 0
    out = capsys.readouterr().out
    assert "s8.wgmma.m64n" in out
    assert "-rp0-nhwc" in out
    assert main(["explain", "tiling", layer, "--family", "wgmma"]) == 0
    assert "warpgroup" in capsys.readouterr().out
    assert main(["explain", "tiling", layer, "--family", "wgmma", "--block", "1,0"]) == 2
    assert "--block belongs to the mma family; leave it out with --family wgmma" in capsys.readouterr().err
    assert main(["explain", "layout", layer, "--family", "wgmma"]) == 2
    assert "only kernels of the mma family (mma.sync) are shown here" in capsys.readouterr().err
    assert main(["build", layer, "--family", "wgmma", "--arch", "sm_80"]) == 2
    assert "wgmma exists only on sm_90a" in capsys.readouterr().err


def test_names_of_earlier_versions_are_understood(capsys):
    now, then = (["stages=3", "consumers_m=1"], ["RING=3", "groups_m=1"])
    texts = []
    for family, knobs in (("wgmma", now), ("warpgroup", then)):
        command = ["build", LAYER, "--family", family, "--set", "tile_width=10", "consumers_n=1", "stagger=0", *knobs]
        assert main([*command, "--emit", "cuda"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert main(["build", LAYER, "--set", "tile_width=10", "at_once=2"]) == 2
    assert "retired: at_once=2 is of a knob that is no more" in capsys.readouterr().err
    assert main(["build", LAYER, "--set", "multicast=1", "tile_width=10", "consumers_n=1", "segments=7"]) == 0
    assert "wgs-tw10" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--family", "mma", "--set", "tile_width=8"], "tile_width is a knob of the wgmma family: add --family"),
        (
            ["--set", "tile_width=8", "chunk=2"],
            "tile_width is a knob of the wgmma family, chunk is a knob of the mma family",
        ),
        (["--family", "wgmma", "--set", "chunk=2"], "chunk is a knob of the mma family: add --family mma"),
        (["--family", "wgmma", "--set", "stages=1"], "stages: 1 stages; a tile iteration needs"),
        (["--family", "wgmma", "--arch", "sm_86"], "wgmma exists only on sm_90a, not on sm_86"),
    ],
)
def test_the_other_familys_knobs_and_architectures_are_refused(capsys, arguments, says):
    assert main(["build", "n8h8w8c64k64r3s3p1", *arguments]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1


def test_a_wgmma_kernel_is_exported(capsys, tmp_path):
    knobs = ["tile_width=8", "segments=7", "cluster_split_k=2", "stages=3", "unroll=1", "in_flight=1", "stagger=0"]
    command = ["build", "n16h7w7c256k64r3s3p1", "--family", "wgmma", "--set", *knobs, "tile_rows=1"]
    assert main([*command, "--export", str(tmp_path)]) == 0
    assert "blocks in clusters of 2" in capsys.readouterr().out
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".cubin", ".h", ".json"]


def test_taps_are_explained(capsys):
    assert main(["explain", "taps", "n8h8w8c64k64r3s3p1", "--row", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["topic"], len(found["taps"]), found["shared"]) == ("taps", 6, True)
    assert main(["explain", "taps", "--family", "mma"]) == 2
    assert "explain duplicates" in capsys.readouterr().err
    assert main(["explain", "taps", "--row", "99"]) == 2
    assert "the first block computes rows" in capsys.readouterr().err


def test_cubin_goes_to_a_file(tmp_path, capsys):
    target = tmp_path / "kernel.cubin"
    assert main(["build", LAYER, "--emit", "cubin"]) == 2
    assert "-o FILE" in capsys.readouterr().err
    assert main(["build", LAYER, "--emit", "cubin", "-o", str(target)]) == 0
    assert target.read_bytes()[:4] == b"\x7fELF"
    assert main(["build", LAYER, "--emit", "cubin", "-o", str(tmp_path / "no" / "such")]) == 2
    assert "choose another file" in capsys.readouterr().err


def test_json(capsys):
    assert main(["build", LAYER, "--emit", "cuda", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["schema"], found["command"], found["arch"]) == (1, "build", "sm_90a")
    assert "__global__" in found["text"]
    assert found["resources"]["stack_bytes"] == 0
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet50.stage9"], "did you mean"),
        (["alexnet.conv1", "--family", "mma"], "kernel size 11x11"),
        ([LAYER, "--arch", "sm_70"], "did you mean"),
        ([LAYER, "--set", "chunck=2"], "did you mean chunk"),
        ([LAYER, "--set", "chunk=two"], "must be an integer"),
        ([LAYER, "--set", "chunk=2"], "chunk may be 1"),
        ([LAYER, "--set", "warp_col_tiles=16"], "may be 8, 16, 32"),
        ([LAYER, "--set", "layout=nchw"], "nhwc"),
        ([LAYER, "--set", "atom=s4.m16n8k64"], "divisibility"),
        ([LAYER, "--arch", "sm_75", "--set", "atom=s8.m16n8k32"], "needs sm_80 or later"),
        ([LAYER, "--emit", "llvm"], "--emit"),
        (["n8h4w4c32k96r3s3p1", "--set", "warp_col_tiles=6", "blk_col_warps=1"], "1, 2 or a multiple of 4"),
        (["n8h4w4c32k96r3s3p1", "--set", "warp_col_tiles=3", "blk_col_warps=1"], "1, 2 or a multiple of 4"),
        (
            ["n8h4w4c32k96r3s3p1", "--set", "warp_col_tiles=2", "blk_col_warps=3", "register_packing=off"],
            "6 column tiles must be 1, 2 or a multiple of 4",
        ),
        (["n1h1w1c32k1048576r1s1", "--arch", "sm_80", "--set", "warp_col_tiles=1", "blk_col_warps=1"], "grid: 131072"),
        ([LAYER, "--set", "tile_wdth=6"], "did you mean tile_width"),
        ([LAYER, "--set", "consumers_k=2"], "did you mean consumers_n or consumers_m"),
        (["n1h1w1c67108864k32r1s1", "--arch", "sm_80"], "32 bits could overflow"),
    ],
)
def test_refusals_name_the_nearest_choice(capsys, arguments, message):
    assert main(["build", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_the_packed_stores_are_explained(capsys):
    assert main(["explain", "packing", "--family", "wgmma", "--warp", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["warp"], len(found["bytes"])) == (1, 128)
    assert main(["explain", "packing", "--family", "wgmma", "--warp", "4"]) == 2
    assert "a warpgroup has warps 0 to 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--family", "wgmma", "--scheme", "quad"], ["--family", "wgmma", "--tiles", "2"],
                  ["--family", "wgmma", "--seed", "0"], ["--warp", "0"]],
)  # fmt: skip
def test_what_belongs_to_the_other_familys_packing_is_refused(capsys, arguments):
    assert main(["explain", "packing", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "leave it out with --family" in err
