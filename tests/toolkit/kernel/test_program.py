"""Cubins of the same program are recognised, others told apart."""

from __future__ import annotations

import pytest

from subbyte.errors import MissingDependency
from subbyte.kernel import nvrtc
from subbyte.kernel.program import program_digest

TEXT = """
extern "C" __global__ void __launch_bounds__({bounds}) conv_kernel(unsigned *a) {{
  __shared__ unsigned s[{words}];
  s[threadIdx.x] = a[threadIdx.x] * {factor}u;
  __syncthreads();
  a[threadIdx.x] = s[threadIdx.x ^ 1];
}}
"""


def _cubin(bounds: str = "256, 1", words: int = 256, factor: int = 3) -> bytes:
    try:
        nvrtc.version()
    except MissingDependency as error:
        pytest.skip(str(error))
    return nvrtc.compile_cubin(TEXT.format(bounds=bounds, words=words, factor=factor), "sm_90a")[0]


def test_launch_bounds_that_change_no_instruction_are_the_same_program() -> None:
    one, two = _cubin("256, 1"), _cubin("256, 2")
    assert one != two
    assert program_digest(one) == program_digest(two)


@pytest.mark.parametrize("change", [{"factor": 5}, {"words": 512}])
def test_other_instructions_and_other_shared_memory_are_other_programs(change: dict[str, int]) -> None:
    assert program_digest(_cubin()) != program_digest(_cubin(**change))


def test_a_changed_instruction_or_register_count_is_another_program() -> None:
    cubin = bytearray(_cubin())
    before = program_digest(bytes(cubin))
    found = set()
    for place in range(len(cubin)):
        cubin[place] ^= 0xFF
        found.add(program_digest(bytes(cubin)) == before)
        cubin[place] ^= 0xFF
    assert found == {True, False}  # some bytes matter, others are only names and notes


@pytest.mark.parametrize("content", [b"", b"not a cubin", b"\x7fELF\x02", b"\x7fELF\x02" + bytes(200)])
def test_what_is_no_cubin_is_taken_whole(content: bytes) -> None:
    assert program_digest(content) == program_digest(bytes(content))
    assert program_digest(content) != program_digest(content + b"x")
