"""Write docs/api.md from the docstrings of the public names.

    python tools/api_reference.py [--check]

``--check`` writes nothing and exits 1 when the file is out of date.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

TARGET = Path(__file__).resolve().parent.parent / "docs/api.md"
PACKAGES = ("workload", "numerics", "device", "gpu", "emulator", "spaces", "families", "records", "records.exchange",
            "kernel", "technique", "networks", "measure", "tune", "sparse", "analysis", "exercises")  # fmt: skip
SHOWN = 60
HEAD = """# API reference

Written from the docstrings by `make docs`. The names in bold are also attributes of `subbyte` itself.
"""


def document() -> str:
    """The whole page."""
    import subbyte

    parts = [HEAD]
    for name in PACKAGES:
        module = importlib.import_module(f"subbyte.{name}")
        parts.append(f"## subbyte.{name}\n\n{first_paragraph(module)}\n")
        parts += [entry(module, public, public in subbyte.__all__) for public in sorted(getattr(module, "__all__", ()))]
    parts.append(f"## subbyte.errors\n\n{first_paragraph(importlib.import_module('subbyte.errors'))}\n")
    parts += [entry(subbyte.errors, name, False) for name in public_classes(subbyte.errors)]
    return "\n".join(parts)


def entry(module: ModuleType, name: str, exported: bool) -> str:
    """One name: its signature, its docstring, and for a class its public methods and properties."""
    thing = getattr(module, name)
    title = f"### {'**' + name + '**' if exported else name}\n"
    if not callable(thing):
        return f"{title}\n{constant(module, name, thing)}\n"
    lines = [title, f"```python\n{name}{signature(thing)}\n```\n", docstring(thing) + "\n"]
    if inspect.isclass(thing):
        members = [
            f"* `{member}{'' if isinstance(value, property) else signature(value)}`: {summary(value)}"
            for member, value in vars(thing).items()
            if not member.startswith("_") and (isinstance(value, property) or callable(unwrap(value)))
        ]
        lines += [*members, ""] if members else []
    return "\n".join(lines)


def constant(module: ModuleType, name: str, value: object) -> str:
    """Value of a constant where it is short, and the text that stands below its definition."""
    shown = repr(value)
    parts = [f"`{shown}`." if len(shown) <= SHOWN and "0x" not in shown else f"A {type(value).__name__}."]
    for path in sorted(Path(str(module.__file__)).parent.rglob("*.py")):
        body = ast.parse(path.read_text()).body
        for definition, after in pairwise(body):
            targets = (
                definition.targets if isinstance(definition, ast.Assign) else [getattr(definition, "target", None)]
            )
            if name in [target.id for target in targets if isinstance(target, ast.Name)]:
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                    parts.append(" ".join(str(after.value.value).replace("``", "`").split()))
                return " ".join(parts)
    return parts[0]


def unwrap(value: object) -> object:
    """The function inside a classmethod or staticmethod."""
    return getattr(value, "__func__", value)


def signature(thing: object) -> str:
    """The call signature without addresses of objects; empty when there is none."""
    try:
        text = str(inspect.signature(unwrap(thing)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", re.sub(r" at 0x[0-9a-f]+", "", text))


def docstring(thing: object) -> str:
    """The docstring as Markdown: cross-references and literals become code."""
    text = inspect.getdoc(thing) or ""
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")


def summary(value: object) -> str:
    """The first sentence of a docstring, on one line."""
    text = " ".join(docstring(unwrap(value)).split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".") + "."


def first_paragraph(module: ModuleType) -> str:
    """The first paragraph of a module's docstring."""
    return docstring(module).split("\n\n")[0]


def public_classes(module: ModuleType) -> list[str]:
    """Classes that a module defines, in the order of the file."""
    return [
        name for name, thing in vars(module).items() if inspect.isclass(thing) and thing.__module__ == module.__name__
    ]


def main() -> int:
    """Write the page, or check it."""
    text = document().rstrip() + "\n"
    if "--check" in sys.argv[1:]:
        current = TARGET.exists() and TARGET.read_text() == text
        if not current:
            print("docs/api.md is out of date: run `make docs`", file=sys.stderr)
        return 0 if current else 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text)
    print(f"wrote {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
