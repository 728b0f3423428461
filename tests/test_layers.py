"""The architecture as a test: who may import whom, what the parent process never loads, and how large things may be."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TOP = Path(__file__).parent.parent
PACKAGE = TOP / "animed"

# ---- The table -----------------------------------------------------------------------------------------------------

BOTTOM: Final = frozenset({"errors", "records"})
ROOT: Final = BOTTOM | {
    "config",
    "logs",
    "catalog",
    "detector",
    "extras",
    "regular",
    "opening",
    "system",
    "tie",
    "mounts",
    "aside",
    "limited",
    "template",
    "folding",
}
PARENT_ROOMS: Final = frozenset({"intake", "schedule", "engine", "delivery", "service"})

# A room may import itself and what stands here.
MAY_IMPORT: Final[dict[str, frozenset[str]]] = {
    "errors": frozenset(),
    "records": frozenset({"errors"}),
    "tie": frozenset(),
    "mounts": frozenset(),
    "template": frozenset(),
    "folding": frozenset(),
    "aside": frozenset({"errors", "tie"}),
    "limited": frozenset({"aside", "mounts"}),
    "config": BOTTOM | {"limited", "template", "regular"},
    **dict.fromkeys(("logs", "system"), BOTTOM),
    **dict.fromkeys(("catalog", "detector"), BOTTOM | {"regular"}),
    "extras": frozenset(),
    "regular": frozenset(),
    "opening": BOTTOM | {"system"},
    **dict.fromkeys(("intake", "schedule", "engine", "delivery", "service", "imaging", "style"), ROOT),
    "daemon": ROOT | PARENT_ROOMS,
    "commands": ROOT | {"daemon", "service", "samples", "schedule"},
    "cli": frozenset({"errors", "commands"}),
    "__main__": frozenset({"cli"}),
}

# One module may import more than its room.
ALSO: Final[dict[str, frozenset[str]]] = {
    # The child's side of the engine is where pictures and the network meet.
    "engine.worker": frozenset({"imaging", "style"}),
    "engine.pipeline": frozenset({"imaging", "style"}),
    "engine.reading": frozenset({"imaging"}),
    "engine.room": frozenset({"imaging"}),
    # `check` judges folders and the machine by the very rules that the service uses.
    "commands.capacity": frozenset({"engine", "intake"}),
    "commands.depths": frozenset({"intake"}),
    "commands.places": frozenset({"intake", "delivery"}),
    "commands.verdict": frozenset({"intake"}),
}

HEAVY: Final = frozenset(
    {"torch", "torchvision", "PIL", "pillow_heif", "rawpy", "cv2", "imagehash", "safetensors", "numpy"}
)
THIRD_PARTY: Final[dict[str, frozenset[str]]] = {
    "config": frozenset({"pydantic", "pydantic_core", "pydantic_settings", "annotated_types", "yaml"}),
    "logs": frozenset({"structlog"}),
    "catalog": frozenset({"pydantic", "yaml"}),
    "intake": frozenset({"watchdog", "pathspec", "psutil"}),
    "imaging": frozenset({"PIL", "pillow_heif", "rawpy", "cv2", "imagehash", "torch", "torchvision", "numpy"}),
    "style": frozenset({"torch", "safetensors", "numpy"}),
    "daemon": frozenset({"structlog"}),
    "commands": frozenset({"typer", "rich"}),
    # They set the log up and hand the logger to the daemon.
    "commands.run": frozenset({"structlog"}),
    "commands.once": frozenset({"structlog"}),
    "engine.limits": frozenset({"psutil"}),
    "engine.pipeline": frozenset({"torch", "torchvision", "PIL", "numpy"}),
    "engine.worker": frozenset({"torch", "numpy"}),  # inside functions only: see below
}

# What only a worker process ever imports.
CHILD_ROOMS: Final = frozenset({"imaging", "style"})
CHILD_MODULES: Final = frozenset({"engine.pipeline", "engine.reading", "engine.room"})

# Where an error of any kind is caught: around one photo, and around the worker's loop; the daemon has one at its top.
BOUNDARIES: Final = frozenset({"engine.worker:attempt", "engine.worker:main"})

# ---- Reading the modules -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Import:
    """One import: who, whom, in which line, and whether it is done when the module is loaded."""

    module: str
    target: str
    line: int
    at_load: bool

    def __str__(self) -> str:
        return f"animed.{self.module}:{self.line} imports {self.target}"


def name_of(path: Path) -> str:
    """Return a module's name below the package: "config.load"; the package itself is ""."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


PATHS: Final = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES: Final = {name: ast.parse(path.read_text(encoding="utf-8"), str(path)) for name, path in PATHS.items()}


def room_of(module: str) -> str:
    return module.partition(".")[0]


def imports_of(module: str) -> Iterator[Import]:
    """Yield every import of a module, those inside functions and those for types only included."""
    yield from walk(module, TREES[module], at_load=True)


def walk(module: str, node: ast.AST, *, at_load: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        loads = at_load and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            loads = False
        if isinstance(child, ast.Import | ast.ImportFrom):
            for target in targets(child):
                yield Import(module, target, child.lineno, at_load)
        else:
            yield from walk(module, child, at_load=loads)


def targets(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the modules that a statement imports; `from animed import config` means animed.config."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    assert node.level == 0, "relative imports hide where they go"
    assert node.module is not None
    for alias in node.names:
        inner = f"{node.module}.{alias.name}".removeprefix("animed.")
        yield f"animed.{inner}" if node.module.startswith("animed") and inner in PATHS else node.module


def own(target: str) -> str | None:
    """Return a target's name below the package, or None for another package's."""
    head, _, rest = target.partition(".")
    return rest if head == "animed" else None


ALL: Final = [each for module in PATHS for each in imports_of(module)]


# ---- Who may import whom -------------------------------------------------------------------------------------------


def is_allowed(each: Import, target: str) -> bool:
    room = room_of(each.module)
    allowed = MAY_IMPORT[room] | ALSO.get(each.module, frozenset()) | {room}
    if target == "":  # The package itself: its version.
        return True
    if room == "daemon" and target in {"engine.worker", "engine.pipeline"}:
        return False
    return room_of(target) in allowed


def test_every_module_has_its_room() -> None:
    """No module lies outside the table."""
    assert {room_of(module) for module in PATHS if module} - MAY_IMPORT.keys() == set()


def test_imports_go_one_way() -> None:
    """Every room imports only what the table gives it."""
    wrong = [str(each) for each in ALL if (target := own(each.target)) is not None and not is_allowed(each, target)]
    assert wrong == []


def test_rooms_have_no_cycles() -> None:
    """No room is imported by what it imports, through any number of rooms."""
    graph: dict[str, set[str]] = {room: set() for room in MAY_IMPORT}
    for each in ALL:
        target = own(each.target)
        if target and room_of(target) != room_of(each.module):
            graph[room_of(each.module)].add(room_of(target))
    while leaves := {room for room, used in graph.items() if not used}:
        graph = {room: used - leaves for room, used in graph.items() if room not in leaves}
    assert graph == {}


def test_each_room_has_its_own_third_parties() -> None:
    """A package of someone else's is imported only in the room that wraps it."""
    wrong = []
    for each in ALL:
        package = each.target.partition(".")[0]
        allowed = THIRD_PARTY.get(room_of(each.module), frozenset()) | THIRD_PARTY.get(each.module, frozenset())
        if own(each.target) is None and package not in sys.stdlib_module_names and package not in allowed:
            wrong.append(str(each))
    assert wrong == []


# ---- What the parent never loads -----------------------------------------------------------------------------------


def is_child_only(module: str) -> bool:
    return room_of(module) in CHILD_ROOMS or module in CHILD_MODULES


def test_the_parent_imports_no_child_module() -> None:
    """Pictures and the network are imported by each other and by the worker, and by the worker in functions only."""
    wrong = [
        str(each)
        for each in ALL
        if not is_child_only(each.module)
        and ((target := own(each.target)) is not None and is_child_only(target))
        and (each.module != "engine.worker" or each.at_load)
    ]
    assert wrong == []


def test_the_worker_module_is_light_to_load() -> None:
    """The parent imports the worker's module to start it, so that loading it brings nothing heavy along."""
    at_load = [each for each in imports_of("engine.worker") if each.at_load]
    assert [str(each) for each in at_load if each.target.partition(".")[0] in HEAVY] == []


@pytest.mark.parametrize("module", ["cli", "__main__"])
def test_the_entry_loads_next_to_nothing(module: str) -> None:
    """A spawned worker imports the console script again: at load it brings the standard library and the errors only."""
    allowed = {"animed.errors", "animed.cli"}
    loaded = {each.target for each in imports_of(module) if each.at_load}
    assert {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names} <= allowed


def test_the_parent_never_loads_the_network() -> None:
    """A process that has imported every module of the parent, the commands included, has loaded nothing heavy."""
    parent = [f"animed.{module}".rstrip(".") for module in PATHS if not is_child_only(module) and module != "__main__"]
    program = f"import sys, {', '.join(parent)}\nprint(sorted({set(HEAVY)!r} & set(sys.modules)))"
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (seen.stdout, seen.stderr) == ("[]\n", "")


# ---- How large things may be ---------------------------------------------------------------------------------------


def functions(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        name = f"{inside}{child.name}" if isinstance(child, ast.FunctionDef | ast.ClassDef) else inside
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{inside}{child.name}", child
        yield from functions(child, f"{name}." if name != inside else inside)


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a body, without its docstring; a body that is only a docstring has none."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


BODIES: Final = {
    f"animed.{module}:{name}": body_lines(function)
    for module, tree in TREES.items()
    for name, function in functions(tree, "")
}


def test_modules_are_small() -> None:
    """No module has more than 300 lines."""
    sizes = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in PATHS.items()}
    assert {name: size for name, size in sizes.items() if size > 300} == {}


def test_functions_are_small() -> None:
    """No body has more than 50 lines, nine tenths have at most 25, and half have at most 8."""
    assert {name: size for name, size in BODIES.items() if size > 50} == {}
    ninth = statistics.quantiles(BODIES.values(), n=10)[-1]
    assert ninth <= 25, sorted(BODIES, key=BODIES.__getitem__)[-30:]
    assert statistics.median(BODIES.values()) <= 8


# ---- What is not done ----------------------------------------------------------------------------------------------


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Say whether a handler takes every error and keeps it: one that ends by raising it again only tidies up."""
    kinds = (
        [] if handler.type is None else [ast.unparse(each) for each in getattr(handler.type, "elts", [handler.type])]
    )
    raises = isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None
    return not raises and (not kinds or bool({"Exception", "BaseException"} & set(kinds)))


def broad_handlers() -> list[str]:
    return [
        f"{module}:{name}"
        for module, tree in TREES.items()
        for name, function in functions(tree, "")
        for node in ast.walk(function)
        if isinstance(node, ast.ExceptHandler) and is_broad(node)
    ]


def test_every_error_is_caught_where_it_is_known() -> None:
    """Errors of every kind are caught at the three named boundaries only."""
    found = broad_handlers()
    daemon = [each for each in found if room_of(each.partition(":")[0]) == "daemon"]
    assert set(found) - set(daemon) <= BOUNDARIES
    assert len(daemon) <= 1, daemon


def test_nothing_suppresses_every_error() -> None:
    """`contextlib.suppress` names what it lets go, too."""
    calls = [node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    suppressed = [ast.unparse(call) for call in calls if ast.unparse(call.func).endswith("suppress")]
    assert [text for text in suppressed if "(Exception" in text or "(BaseException" in text] == []


def test_no_function_changes_a_global() -> None:
    """No `global` statement: state belongs to objects."""
    assert [name for name, tree in TREES.items() if any(isinstance(node, ast.Global) for node in ast.walk(tree))] == []
