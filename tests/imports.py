"""Finds the imports between the modules of a crate or a Python package, and the circles that they form.

1. Each file below `src` is a module. Tests are left out, in files of their own and inside of other files.
2. A path that starts with `crate`, `self`, `super` or the name of a child is resolved to the module with the
   longest matching prefix, in `use` declarations and elsewhere.
3. A name that a module re-exports by `pub use` is resolved to the module that defines it. The re-exports of a
   `mod.rs` are no imports.
4. A circle is a set of modules that reach each other by imports (a strongly connected component).
5. The folders of the engine are layers. Each uses only those before it; an import of a later one runs upward.
6. In Python, imports inside of functions count, and those for type checkers do not. Nor do re-exports of an
   `__init__.py`, and imports of the whole package, whose public names everything may use.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]
USE = re.compile(r"(?:^|(?<=[;{}]))\s*(?P<public>pub(?:\([^)]*\))?\s+)?use\s+(?P<tree>[^;]+);", re.MULTILINE)
PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")
TEST_MODULE = re.compile(
    r"^#\[cfg\(test\)\]\n(?:pub(?:\([^)]*\))? )?mod \w+ \{\n.*?^\}$", re.MULTILINE | re.DOTALL
)
TEST_ITEM = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?(?:use|mod)\s[^;{]*;")
DEEPEST_REEXPORT = 8
INPUTS = ["error", "metadata", "selection", "store"]
LAYERS = [*INPUTS, "codec", "pool", "plan", "place", "decode", "read", "write", "node"]


def paths(tree: str) -> Iterator[tuple[Module, str]]:
    """Yield each path of a `use` tree, and the name that it binds."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        path, _, alias = head.partition(" as ")
        parts = tuple(part.strip() for part in path.split("::") if part.strip() not in ("", "self"))
        yield parts, alias.strip() or (parts[-1] if parts else "")
        return
    prefix = tuple(part.strip() for part in head.split("::") if part.strip())
    depth, start = 0, 0
    body = rest[: rest.rindex("}")] + ","
    for position, character in enumerate(body):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            item = body[start:position].strip()
            start = position + 1
            for parts, name in paths(item) if item else ():
                yield prefix + parts, name or prefix[-1]


class Imports:
    """Modules, their files, and the modules that each imports."""

    files: dict[Module, str]
    imports: dict[Module, set[Module]]

    def circles(self) -> list[list[str]]:
        """Return the files of each circle, sorted."""
        reached = {module: self.reachable(module) for module in self.files}
        seen: set[Module] = set()
        found = []
        for module in sorted(self.files):
            circle = {other for other in reached[module] if module in reached[other]}
            if circle and module not in seen:
                seen |= circle
                found.append(sorted(self.files[other] for other in circle))
        return found

    def reachable(self, module: Module) -> set[Module]:
        found: set[Module] = set()
        waiting = [module]
        while waiting:
            new = self.imports[waiting.pop()] - found
            found |= new
            waiting += new
        return found


class Crate(Imports):
    """The modules of a crate, by their path, and the modules that each imports."""

    def __init__(self, source: Path) -> None:
        self.files = {}
        self.texts: dict[Module, str] = {}
        for file in sorted(source.rglob("*.rs")):
            parts = file.relative_to(source).with_suffix("").parts
            if "tests" in parts or parts[-1] == "interleaving":
                continue
            module = parts[:-1] if parts[-1] in ("mod", "lib") else parts
            text = re.sub(r"//[^\n]*", "", TEST_MODULE.sub("", file.read_text(encoding="utf-8")))
            self.files[module] = file.relative_to(source).as_posix()
            self.texts[module] = TEST_ITEM.sub("", text)
        self.exports: dict[Module, dict[str, Module]] = defaultdict(dict)
        for module, text in self.texts.items():
            for use in USE.finditer(text):
                for path, name in paths(use["tree"]) if use["public"] else ():
                    absolute = self.absolute(module, path)
                    if absolute is not None:
                        self.exports[module][name] = absolute
        self.imports = {module: self.imported(module) for module in self.files}

    def absolute(self, module: Module, path: Module) -> Module | None:
        """Return the path from the root of the crate, or None for a path into another crate."""
        first = path[0] if path else ""
        if first == "crate":
            return path[1:]
        if first == "super":
            levels = next((at for at, part in enumerate(path) if part != "super"), len(path))
            return module[: len(module) - levels] + path[levels:]
        return module + path if (*module, first) in self.files else None

    def defining(self, path: Module) -> Module:
        """Return the module that defines the item of an absolute path."""
        for _ in range(DEEPEST_REEXPORT):
            length = next(length for length in range(len(path), -1, -1) if path[:length] in self.files)
            module, rest = path[:length], path[length:]
            if not rest or rest[0] not in self.exports[module]:
                break
            path = self.exports[module][rest[0]] + rest[1:]
        return module

    def imported(self, module: Module) -> set[Module]:
        text, found = self.texts[module], set()
        is_facade = self.files[module].endswith(("mod.rs", "lib.rs"))
        named = [
            path
            for use in USE.finditer(text)
            if not (use["public"] and is_facade)
            for path, _ in paths(use["tree"])
        ]
        named += [tuple(path.split("::")) for path in PATH.findall(USE.sub("", text))]
        for path in named:
            absolute = self.absolute(module, path)
            if absolute is not None:
                found.add(self.defining(absolute))
        return found - {module}

    def upward(self) -> set[tuple[str, str]]:
        """Return the imports between files that run from a layer to a later one (step 5)."""
        place = {layer: number for number, layer in enumerate(LAYERS)}
        return {
            (self.files[module], self.files[other])
            for module, others in self.imports.items()
            for other in others
            if module and other and place[module[0]] < place[other[0]]
        }


class Package(Imports):
    """The modules of a Python package, and the modules that each imports, by step 6."""

    def __init__(self, source: Path) -> None:
        self.files = {}
        trees: dict[Module, ast.Module] = {}
        for file in sorted(source.rglob("*.py")):
            parts = file.relative_to(source.parent).with_suffix("").parts
            module = parts[:-1] if parts[-1] == "__init__" else parts
            self.files[module] = file.relative_to(source).as_posix()
            tree = ast.parse(file.read_text(encoding="utf-8"))
            if parts[-1] == "__init__":
                tree.body = [item for item in tree.body if not isinstance(item, ast.Import | ast.ImportFrom)]
            trees[module] = tree
        self.imports = {module: set(self.imported(tree)) - {module} for module, tree in trees.items()}

    def imported(self, tree: ast.AST) -> Iterator[Module]:
        if isinstance(tree, ast.If) and ast.unparse(tree.test).endswith("TYPE_CHECKING"):
            return
        names: list[str] = []
        if isinstance(tree, ast.Import):
            names = [alias.name for alias in tree.names]
        elif isinstance(tree, ast.ImportFrom) and tree.module:
            names = [f"{tree.module}.{alias.name}" for alias in tree.names]
        for name in names:
            path = tuple(name.split("."))
            found = next((path[:end] for end in range(len(path), 1, -1) if path[:end] in self.files), None)
            if found is not None:
                yield found
        for child in ast.iter_child_nodes(tree):
            yield from self.imported(child)
