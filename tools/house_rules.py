"""The project's own rules as functions: each returns the list of violations, one sentence apiece.

``tests/test_project.py`` applies them to the checkout and shows for each a case that it refuses. Who may import whom
stands in pyproject.toml (import-linter).
"""

import ast
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

COMMON = {"shared", "base", "planned", "registry", "topic", "search"}
"""What families have in common."""
OPEN = ("records", "kernel", "measure", "tune", "analysis", "cli")
"""Rooms that, like the views, know no family by name: a kind of kernel is a folder under families."""

LENGTHS = {"toolkit/**/*.py": 400, "widgets/**/*.py": 400, "widgets/**/view.py": 150, "widgets/**/view.js": 250}
CELL_LINES = 15
NOTEBOOK_BYTES = 1_000_000

MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:home|Users|root|work|opt|tmp|mnt)/[A-Za-z]\w*")
REGISTRY = re.compile(
    r"(?:pypi|pythonhosted|artifactory|nexus|registry(?=[\w-]*\.[\w-]+\.))[\w-]*\.[\w.-]*\w|extra-index|--index-url|index-url\s*=",
    re.IGNORECASE,
)
REGISTRY_MARKS = ("pypi", "pythonhosted", "artifactory", "nexus", "registry", "extra-index", "index-url")
"""One of them is in every text that the pattern finds."""


def family_classes(sources: Mapping[str, str]) -> set[str]:
    """Names of the configurations, plans, spaces and families that the folders of families (path -> source) define,
    but for those that what families have in common defines as well."""
    own: set[str] = set()
    shared: set[str] = set()
    for path, source in sources.items():
        parts = Path(path).with_suffix("").parts
        if parts[2] == "families" and len(parts) > 3:
            names = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)}
            (shared if parts[3] in COMMON else own).update(names)
    return {name for name in own - shared if re.search(r"(Config|Plan|Family|Space)$", name)}


_FAMILY = re.compile(r"warp_?family|warpgroup|wgmma", re.IGNORECASE)
"""A kind of kernel in a name; what else families are called (mma, warp) is an instruction or 32 threads as well."""


def family_by_name(path: str, source: str, classes: Collection[str]) -> list[str]:
    """Names of a kind of kernel, or of its classes or folder, in the code of a room that is open to all kinds.

    Looked at are identifiers, imports, texts that are a name themselves, and comparisons of something called a family
    with a text; sentences, docstrings and comments may explain.
    """
    parts = Path(path).parts
    if parts[0] != "widgets" and not (len(parts) > 2 and parts[2] in OPEN):
        return []
    found = []
    kinds: dict[str, bool] = {}  # a file says the same names again and again
    for node in ast.walk(ast.parse(source)):
        for name in _names(node):
            if name not in kinds:
                folder = re.match(r"subbyte\.families\.(\w+)\.", name)
                foreign = folder is not None and folder[1] not in COMMON
                last = name.rpartition(".")[2]
                kinds[name] = foreign or name in classes or last in classes or bool(_FAMILY.search(name))
            if kinds[name]:
                found.append(f"{path}:{getattr(node, 'lineno', 0)}: {name}: a kind of kernel by name; ask its family")
    return found


def _names(node: ast.AST) -> list[str]:
    """Names that a node gives or uses."""
    if isinstance(node, ast.Import):
        return [f"{alias.name}." for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) and re.fullmatch(r"[\w.:/-]+", node.value) else []
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        said = (one.value for one in sides if isinstance(one, ast.Constant))
        texts = [text for text in said if isinstance(text, str) and text not in ("", "auto")]
        about = texts and any("family" in ast.unparse(one) for one in sides)
        return [f"warp_family {text!r}" for text in texts] if about else []
    given = (getattr(node, field, None) for field in ("id", "attr", "name", "arg"))
    return [name for name in given if isinstance(name, str)]


TOLD = re.compile(r"(?:Config|Configuration|Plan)\b")
"""How the class of a configuration or of a plan ends. A file without such a name need not be parsed."""


def kinds_told_apart(path: str, source: str) -> list[str]:
    """``isinstance`` or ``type() is`` on a configuration or a plan outside the folder of families."""
    if path.startswith("toolkit/subbyte/families/") or not TOLD.search(source):
        return []
    found = []
    for node in ast.walk(ast.parse(source)):
        asked: list[ast.expr] = []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = node.args[1:]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node.left):
            asked = node.comparators
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        names = re.findall(r"\w+", " ".join(map(ast.unparse, asked)))
        told = [name for name in names if TOLD.search(name)]
        if told:
            found.append(f"{path}:{getattr(node, 'lineno', 0)}: asks for a {told[0]}; ask family_of(config) instead")
    return found


TYPED = {
    "toolkit/subbyte/families/base.py": ("ExportParts", "Family"),
    "toolkit/subbyte/families/planned.py": ("Plan", "Function", "Space"),
    "toolkit/subbyte/families/topic.py": ("Trace", "Option", "Topic"),
    "toolkit/subbyte/kernel/kernel.py": ("Kernel",),
}
"""Classes that everybody builds on: what they take and give is said by a type."""


def untyped(path: str, source: str) -> list[str]:
    """Public methods and fields of the classes in :data:`TYPED` that take or give ``Any``."""
    found = []
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name in TYPED[path]]
    for one in classes:
        for node in one.body:
            said: list[ast.expr | None] = []
            name = ""
            if isinstance(node, ast.FunctionDef) and not (node.name.startswith("_") and node.name != "__call__"):
                given = node.args
                arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
                said, name = [node.returns, *(arg.annotation for arg in arguments if arg)], node.name
            elif isinstance(node, ast.AnnAssign):
                said, name = [node.annotation], ast.unparse(node.target)
            if any(text is not None and re.search(r"\bAny\b", ast.unparse(text)) for text in said):
                found.append(f"{path}:{node.lineno}: {one.name}.{name} takes or gives Any; say the type")
    return found


def too_long(path: str, text: str) -> list[str]:
    """The file when it is longer than its budget."""
    limits = [limit for pattern, limit in LENGTHS.items() if _matches(path, pattern)]
    length = len(text.splitlines())
    return [f"{path}: {length} lines, at most {min(limits)}"] if limits and length > min(limits) else []


def _matches(path: str, pattern: str) -> bool:
    root, _, name = pattern.partition("/**/")
    return path.startswith(root + "/") and Path(path).match(name)


def foreign_places(path: str, text: str) -> list[str]:
    """Absolute paths of somebody's machine and addresses of package registries."""
    found = []
    lower = text.lower()  # looking for words takes a tenth of what the pattern takes
    if not (any(mark in lower for mark in REGISTRY_MARKS) or MACHINE_PATH.search(text)):
        return []
    for number, line in enumerate(text.splitlines(), 1):
        for kind, pattern in (("a path of one machine", MACHINE_PATH), ("a package registry", REGISTRY)):
            if match := pattern.search(line):
                found.append(f"{path}:{number}: {kind}: {match.group()}")
    return found


_TAGS = (
    "a|b|body|br|button|caption|circle|code|defs|details|div|ellipse|extra|figcaption|figure|g|h[1-6]|head|html|i|iframe|"
    "img|input|label|li|line|link|main|meta|nav|ol|option|p|path|pattern|polygon|polyline|pre|rect|script|section|select|"
    "small|span|strong|style|sub|summary|sup|svg|table|tbody|td|text|th|thead|title|tr|tspan|ul|use"
)
TAG = re.compile(rf"</?(?:{_TAGS})(?=[\s>/]|$)")
MAKES_HTML = ("toolkit/subbyte/html.py", "widgets/subbyte_widgets/svg.py")
"""The modules that may write tags around values: they escape them."""


def tags_by_hand(path: str, source: str) -> list[str]:
    """Tags in f-strings, or in texts that are formatted, outside the modules that make HTML: what is put between them
    is not escaped."""
    if path in MAKES_HTML or not TAG.search(source):
        return []
    found = []
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.expr] = []
        if isinstance(node, ast.JoinedStr):
            parts = node.values
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            parts = [node.left]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            parts = [node.func.value]
        texts = [part for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        found += [
            f"{path}:{part.lineno}: {tag.group()}: made by hand; use subbyte.html, which escapes"
            for part in texts
            if (tag := TAG.search(str(part.value)))
        ]
    return found


def undocumented(path: str, source: str) -> list[str]:
    """Public modules, classes, functions and methods without a docstring."""
    found = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            definition = isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if definition and not child.name.startswith("_"):
                marks = [ast.unparse(decorator) for decorator in child.decorator_list]
                second = any("overload" in mark or ".setter" in mark for mark in marks)
                if not second and not ast.get_docstring(child):
                    found.append(f"{path}:{child.lineno}: {prefix}{child.name} has no docstring")
                if isinstance(child, ast.ClassDef):
                    visit(child, f"{prefix}{child.name}.")

    tree = ast.parse(source)
    if not ast.get_docstring(tree) and tree.body:
        found.append(f"{path}: the module has no docstring")
    visit(tree, "")
    return found


def notebook_problems(name: str, notebook: Mapping[str, Any]) -> list[str]:
    """What keeps a notebook (parsed JSON) from being ready: run wholly and in order, short cells, no widget state."""
    found = []
    if "widgets" in notebook["metadata"]:
        found.append(f"{name}: holds widget state; strip it")
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    counts = [cell.get("execution_count") for cell in cells]
    if counts != list(range(1, len(cells) + 1)):
        found.append(f"{name}: not executed from top to bottom: {counts}")
    for number, cell in enumerate(cells, 1):
        lines = len("".join(cell["source"]).splitlines())
        if lines > CELL_LINES:
            found.append(f"{name}: code cell {number} has {lines} lines, at most {CELL_LINES}")
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                found.append(f"{name}: code cell {number} ends in {output.get('ename')}")
            if output.get("name") == "stderr":
                found.append(f"{name}: code cell {number} writes to stderr")
    if cells and not any(cell.get("outputs") for cell in cells):
        found.append(f"{name}: no cell keeps its output")
    return found
