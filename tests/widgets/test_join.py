"""The joiner, and the rules that keep our JavaScript joinable: plain modules, named imports, no cycles, no network."""

import re

import pytest

from collectives import all_reduce
from tests.pictures.scenes import SCENES
from widgets import base
from widgets.base import html
from widgets.butterfly import Butterfly
from widgets.drift import Drift
from widgets.memory import Memory
from widgets.memory_run import MemoryRun
from widgets.mesh import Mesh
from widgets.player import Player
from widgets.race import Race
from widgets.ranklog import RankLog
from widgets.slot_grid import SlotGrid
from widgets.square import Square
from widgets.timeline import Timeline
from widgets.tokens import Tokens
from widgets.topology_map import TopologyMap
from widgets.wait_for import WaitFor
from widgets.zoo import Zoo

JS = base.HERE / "js"
SOURCES = {path.name: path.read_text() for path in sorted(JS.glob("*.js"))}
COMMENT = re.compile(r"/\*.*?\*/|^\s*//[^\n]*$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", SOURCES)
def test_a_module_keeps_to_what_join_understands(name):
    source = COMMENT.sub("", SOURCES[name])
    imports = re.findall(r"^[ \t]*import\b.*$", source, re.MULTILINE)
    assert all(re.fullmatch(r'import \{ [\w, ]+ \} from "\./[\w-]+\.js";', line) for line in imports), imports
    exports = re.findall(r"^[ \t]*export\b.*$", source, re.MULTILINE)
    assert all(
        re.match(r"export (async )?(function|class|const|let) |export default \(\) =>", line) for line in exports
    ), exports
    assert "import(" not in source or name == "lent.js"  # which imports a text from a blob
    assert "http:" not in source and "https:" not in source
    assert "eval(" not in source and "new Function" not in source
    assert "</script" not in SOURCES[name]  # it would end the script of a saved page


@pytest.mark.parametrize("name", SOURCES)
def test_imports_have_no_cycle(name):
    def visit(module, path):
        assert module not in path, f"cycle: {' -> '.join([*path, module])}"
        for needed in re.findall(r'from "\./([\w-]+\.js)";', SOURCES[module]):
            visit(needed, [*path, module])

    visit(name, [])


def test_no_two_modules_export_one_name():
    names = [
        name
        for source in SOURCES.values()
        for name in re.findall(r"^export \w+ (?:function )?(\w+)", source, re.MULTILINE)
    ]
    assert sorted(name for name in set(names) if names.count(name) > 1) in ([], ["default"])


@pytest.mark.parametrize("name", SOURCES)
def test_a_module_opens_by_saying_what_it_is(name):
    assert SOURCES[name].startswith("/**\n * ")


@pytest.mark.parametrize(
    "widget",
    [
        Butterfly,
        Drift,
        Memory,
        MemoryRun,
        Mesh,
        Player,
        Race,
        RankLog,
        SlotGrid,
        Square,
        Timeline,
        Tokens,
        TopologyMap,
        WaitFor,
        Zoo,
    ],
)
def test_joined_is_one_module_within_125_kB(widget):
    """The largest are the Player and the Race. They come from memory or disk, not over a network."""
    joined = str(widget._esm)
    assert not re.search(r"^import\b", joined, re.MULTILINE)
    assert len(re.findall(r"^export\b", joined, re.MULTILINE)) == 1 and "\nexport default" in joined
    assert len(joined.encode()) <= 125_000


def test_a_saved_page_is_small_enough_to_be_handed_on():
    """The Zoo's holds two modules, its own and the Player's, and every algorithm."""
    assert len(html(Player(all_reduce.ring(ranks=4))).encode()) <= 120_000
    assert len(html(Zoo(ranks=4)).encode()) <= 370_000


@pytest.mark.parametrize("name", ["butterfly", "square", "mesh", "memory", "tokens", "tokens-pairs", "slot-grid"])
def test_a_page_with_a_drawn_picture_has_120_kB_at_most(name):
    assert len(html(SCENES[name].make()).encode()) <= 120_000


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_sent_loses_comments_and_indentation_and_nothing_else(name):
    """What is left of every line of code is sent; types and remarks within a line are not."""
    lean = base.lean(SOURCES[name])
    assert "/**" not in lean and not re.search(r"^\s*//|^[ \t]", lean, re.MULTILINE)
    code = COMMENT.sub("", SOURCES[name])
    code = re.sub(r" // .*$", "", code, flags=re.MULTILINE)
    same = "".join(lean.split()) == "".join(code.split())
    assert same  # pytest would take minutes to explain how two such long words differ


@pytest.mark.parametrize("needed", ["schedule.js", "survey.js", "trace.js"])
def test_joined_says_what_was_written(needed):
    """Nothing is rewritten by a tool that may not know the language as well as the browser does."""
    written = re.sub(r"^(import .*\n|export )", "", base.lean(SOURCES[needed]), flags=re.MULTILINE)
    assert base._BREAK.sub("", written) in str(Player._esm)


def test_join_keeps_private_names_private(tmp_path, monkeypatch, page):
    (tmp_path / "js").mkdir()
    (tmp_path / "js/size.js").write_text("/** Five. */\nconst SIZE = 5;\nexport function size() {\n  return SIZE;\n}\n")
    (tmp_path / "js/twice.js").write_text(
        'import { size } from "./size.js";\n\nconst SIZE = 2;\nexport const twice = () => SIZE * size();\n'
    )
    (tmp_path / "js/entry.js").write_text(
        'import { size } from "./size.js";\nimport { twice } from "./twice.js";\n\n'
        "export default () => [size(), twice()];\n"
    )
    monkeypatch.setattr(base, "HERE", tmp_path)
    base.join.cache_clear()
    joined = base.join("entry.js")
    base.join.cache_clear()
    answer = page.evaluate(
        """async (text) => {
            const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
            return (await import(url)).default();
        }""",
        joined,
    )
    assert answer == [5, 10]
