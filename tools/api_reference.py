"""The reference of the public names, from their docstrings: what ``make site`` shows, a page for each package."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from types import ModuleType

PACKAGES = ("workload", "numerics", "device", "gpu", "emulator", "spaces", "families", "records", "records.exchange",
            "kernel", "technique", "networks", "measure", "tune", "sparse", "analysis", "exercises")  # fmt: skip
SHOWN = 60


def pages() -> dict[str, str]:
    """The page of each package, by its name. Names in bold are also attributes of ``subbyte`` itself."""
    import subbyte

    found = {}
    for name in PACKAGES:
        module = importlib.import_module(f"subbyte.{name}")
        entries = (
            entry(module, public, public in subbyte.__all__) for public in sorted(getattr(module, "__all__", ()))
        )
        found[f"subbyte.{name}"] = page(module, entries)
    errors = subbyte.errors
    found["subbyte.errors"] = page(errors, (entry(errors, name, False) for name in public_classes(errors)))
    return found


def page(module: ModuleType, entries: Iterable[str]) -> str:
    """A package's page: its first paragraph, then its public names."""
    return "\n".join([f"# {module.__name__}\n\n{first_paragraph(module)}\n", *entries])


def entry(module: ModuleType, name: str, exported: bool) -> str:
    """One name: its signature, its docstring, and for a class its public methods and properties."""
    thing = getattr(module, name)
    title = f"## {'**' + name + '**' if exported else name}\n"
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
