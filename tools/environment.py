"""Create or refresh the virtual environment that every make target uses.

    python3 tools/environment.py FOLDER [--extras lab,dev,cuda13]

Nothing is done when the folder was made from the same pyproject.toml, constraints.txt and extras.
uv is installed into the environment because it is several times faster; where that fails, pip does the work.
"""

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STAMP = "made-from.txt"


def fingerprint(extras):
    """Digest of everything that decides what the environment contains."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt", os.path.join("tools", "overrides.txt")):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read())
    digest.update(repr((ROOT, extras)).encode())
    return digest.hexdigest()


def refused(extras):
    """What is wrong with a list of extras, in one sentence, or nothing. uv would pass over a typing error."""
    with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
        section = file.read().partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    known = re.findall(r"^([a-z0-9]+) = \[", section, re.MULTILINE)
    given = [name.strip() for name in extras.split(",")]
    unknown = [name for name in given if name not in known]
    if unknown:
        return f"EXTRAS={extras}: unknown extra {unknown[0]!r}; allowed: {', '.join(known)}"
    if {"cuda12", "cuda13"} <= set(given):
        return f"EXTRAS={extras}: cuda12 and cuda13 exclude each other; cuda13 needs driver 580 or later"
    return ""


def run(*command):
    """Run a command, shown first; returns whether it succeeded."""
    print("  $ " + shlex.join(command), flush=True)
    environment = dict(os.environ, UV_PYTHON_DOWNLOADS="never", PIP_DISABLE_PIP_VERSION_CHECK="1")
    environment.setdefault("UV_SYSTEM_CERTS", "1")  # behind a proxy only the system knows its certificate
    return subprocess.call(command, cwd=ROOT, env=environment) == 0


def install(python, extras):
    """Install the checkout (editable) with its extras; returns whether that worked."""
    what = ["--constraint", "constraints.txt", "--editable", f".[{extras}]"]
    if run(python, "-m", "pip", "install", "--quiet", "uv"):
        lean = ["--override", "tools/overrides.txt"]  # pip has no such option: it installs everything
        if run(python, "-m", "uv", "pip", "install", "--quiet", "--python", python, *lean, *what):
            return True
        print("uv could not finish; trying again with pip (this takes a few minutes)", flush=True)
    else:
        print("uv is not available; installing with pip (this takes a few minutes)", flush=True)
    return run(python, "-m", "pip", "install", "--quiet", *what)


def make(folder, extras):
    """Create the environment unless it is up to date. Exit code 0: usable; 1: an install failed; 3: see stderr."""
    stamp = os.path.join(folder, STAMP)
    python = os.path.join(folder, "bin", "python")
    wanted = fingerprint(extras)
    if os.path.exists(stamp) and os.path.exists(python):
        with open(stamp) as file:
            if file.read() == wanted:
                return 0
    if not check_machine.python_is_supported():
        other = check_machine.other_python()
        if other:
            print(f"using {other}, because this Python is not supported", flush=True)
            return subprocess.call([other, *sys.argv])
    status = check_machine.main(["lab"])
    if status:
        return status
    start = time.time()
    print(f"creating the environment {folder} (once; about 1.5 GB)", flush=True)
    usable = os.path.exists(python) and subprocess.call([python, "-c", "import pip"]) == 0
    if not usable and not run(sys.executable, "-m", "venv", "--clear", folder):
        print("missing: python3 -m venv failed; see its message above", file=sys.stderr)
        return 3
    if not install(python, extras):
        print("the packages could not be installed; is there a network connection? Run make again", file=sys.stderr)
        return 1
    with open(stamp, "w") as file:
        file.write(wanted)
    print(f"environment ready in {time.time() - start:.0f} s", flush=True)
    return 0


def main():
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--extras", default="lab,dev,cuda13")
    given = parser.parse_args()
    problem = refused(given.extras)
    if problem:
        print(problem, file=sys.stderr)
        return 2
    return make(os.path.abspath(given.folder), given.extras)


if __name__ == "__main__":
    sys.exit(main())
