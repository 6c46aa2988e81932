"""Write constraints.txt: one exact version of every package, for every platform and supported Python, no addresses."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = "# Pins of every extra but cuda12, whose exact pins stand in pyproject.toml. Written by `make constraints`.\n"
OPTIONS = ["--universal", "--python-version", "3.11", "--upgrade", "--no-annotate", "--no-header", "--quiet"]
OPTIONS += ["--extra", "lab", "--extra", "dev", "--extra", "cuda13", "--no-emit-package", "cuda-bindings"]
OPTIONS += ["--no-emit-index-url", "--no-emit-find-links", "--override", "tools/overrides.txt"]


def main() -> int:
    """Resolve, refuse anything that looks like an address, write."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", *OPTIONS]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return done.returncode
    if "://" in done.stdout:
        print("a pin holds an address; nothing was written", file=sys.stderr)
        return 1
    (ROOT / "constraints.txt").write_text(HEAD + done.stdout)
    print(f"constraints.txt: {len(done.stdout.splitlines())} pins")
    return 0


if __name__ == "__main__":
    sys.exit(main())
