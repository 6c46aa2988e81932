"""Bring PyTorch's build for the CPU into this environment, for the tests of subbyte.torch.

Where a PyTorch is there already nothing is done; where that build cannot be had, one sentence says that those tests are
left out. Never the build for CUDA, which takes gigabytes: the version that is asked for is that of the CPU's alone.
"""

import importlib.util
import subprocess
import sys

BUILD = "torch==2.13.0+cpu"


def main() -> int:
    """Exit code 0 in any case: tests without PyTorch are announced, they do not fail."""
    if importlib.util.find_spec("torch") is not None:
        return 0
    print(f"installing {BUILD}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", BUILD],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        print(f"{BUILD} cannot be had here ({reason}): the tests of subbyte.torch are left out", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
