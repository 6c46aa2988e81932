"""Say what this machine lacks, and the command that installs it.

    python3 tools/check_machine.py lab      what `make lab` needs
    python3 tools/check_machine.py test     what `make test` needs
    python3 tools/check_machine.py browser  prints the path of the Chromium that the browser tests use

Standard library only, and written so that an old Python can still run it and say that it is too old.
Exit code 0: everything needed is here (a missing extra is only mentioned); 3: something needed is missing.
"""

import glob
import os
import shutil
import subprocess
import sys

OLDEST, NEWEST = (3, 11), (3, 14)
NEWER = ("python3.13", "python3.12", "python3.11", "python3.14")
COMPILERS = ("g++", "clang++")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OS_RELEASE = "/etc/os-release"

# What to type, by distribution family. Debian is also the advice for a system not listed here.
INSTALL = {
    "debian": {
        "python": "sudo apt-get install python3.11 python3.11-venv",
        "venv": "sudo apt-get install python3-venv",
        "compiler": "sudo apt-get install g++",
        "browser": "sudo apt-get install chromium",
    },
    "fedora": {
        "python": "sudo dnf install python3.13",
        "venv": "sudo dnf install python3",
        "compiler": "sudo dnf install gcc-c++",
        "browser": "sudo dnf install chromium",
    },
    "arch": {
        "python": "sudo pacman -S python",
        "venv": "sudo pacman -S python",
        "compiler": "sudo pacman -S gcc",
        "browser": "sudo pacman -S chromium",
    },
    "macos": {
        "python": "brew install python@3.13",
        "venv": "brew install python@3.13",
        "compiler": "xcode-select --install",
        "browser": "brew install --cask chromium",
    },
}


def family(platform=sys.platform, os_release=OS_RELEASE):
    """The key of INSTALL for this system, read from os-release's ID and ID_LIKE."""
    if platform == "darwin":
        return "macos"
    words = []
    if os.path.exists(os_release):
        with open(os_release) as lines:
            for line in lines:
                key, _, value = line.strip().partition("=")
                if key in ("ID", "ID_LIKE"):
                    words += value.strip('"').split()
    for name in ("fedora", "arch"):
        if name in words or (name == "fedora" and "rhel" in words):
            return name
    return "debian"


def find_compiler():
    """Path of the C++ compiler that runs generated kernels on the CPU ($CXX first), or None."""
    names = (os.environ["CXX"],) if os.environ.get("CXX") else COMPILERS
    return next(filter(None, map(shutil.which, names)), None)


def find_browser(home=None):
    """Path of a Chromium: $SUBBYTE_CHROMIUM, one on PATH, or one that playwright downloaded; else None."""
    named = os.environ.get("SUBBYTE_CHROMIUM")
    if named:
        return named if os.access(named, os.X_OK) else None
    for name in BROWSERS:
        if shutil.which(name):
            return shutil.which(name)
    home = home or os.path.expanduser("~")
    store = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", os.path.join(home, ".cache", "ms-playwright"))
    return next(iter(sorted(glob.glob(os.path.join(store, "chromium-*", "chrome-linux*", "chrome")))), None)


def has_venv():
    """Whether `python3 -m venv` can work: Debian ships the module without ensurepip, which it needs."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return False
    return True


def python_is_supported(version=None):
    """Whether this interpreter is one that the dependencies have wheels for."""
    return OLDEST <= tuple(version or sys.version_info)[:2] <= NEWEST


def other_python():
    """A supported Python on PATH that can make environments, for when the running one is not supported; or None."""
    for path in filter(None, map(shutil.which, NEWER)):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if subprocess.call([path, "-c", "import ensurepip, venv"], **quiet) == 0:
            return path
    return None


def problems(purpose, version=None, install=None):
    """(missing, mentioned): sentences on what `purpose` needs and lacks, and on what it merely misses."""
    install = install or INSTALL[family()]
    missing, mentioned = [], []
    if not python_is_supported(version) and not other_python():
        found = ".".join(str(part) for part in tuple(version or sys.version_info)[:3])
        missing.append(
            "Python {} cannot be used: {}.{} to {}.{} can. Install one:\n    {}\n"
            "  or name one: make {} PYTHON=/path/to/python3".format(
                found, OLDEST[0], OLDEST[1], NEWEST[0], NEWEST[1], install["python"], purpose
            )
        )
    elif python_is_supported(version) and not has_venv():
        missing.append("Python's venv module is not installed. Install it:\n    " + install["venv"])
    if not find_compiler():
        sentence = "no C++ compiler (g++ or clang++): kernels cannot run on the CPU. Install one:\n    "
        (missing if purpose == "test" else mentioned).append(sentence + install["compiler"])
    if purpose == "test" and not find_browser():
        missing.append(
            "no Chromium: the browser tests cannot run. Install it:\n    {}\n"
            "  or: make env && .venv/bin/python -m playwright install --with-deps chromium\n"
            "  or name one: SUBBYTE_CHROMIUM=/path/to/chrome make test".format(install["browser"])
        )
    return missing, mentioned


def main(arguments):
    """Print what is missing; see the module's first lines for the exit code."""
    if len(arguments) != 1 or arguments[0] not in ("lab", "test", "browser"):
        print("usage: check_machine.py lab|test|browser", file=sys.stderr)
        return 2
    if arguments[0] == "browser":
        print(find_browser() or "")
        return 0 if find_browser() else 3
    missing, mentioned = problems(arguments[0])
    for sentence in missing:
        print("missing: " + sentence, file=sys.stderr)
    for sentence in mentioned:
        print("note: " + sentence, file=sys.stderr)
    return 3 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
