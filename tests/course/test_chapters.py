"""The chapters and what belongs to them: they are found by their names, so a name that is no chapter's is a mistake."""

import re

import nbformat
import pytest

from course.chapters import FOLDER, modules, name_of, notebooks

HELPERS = {"variants", "variants_later", "__init__", "draw", "exercise", "note", "question"}


def test_chapters_stand_in_the_order_in_which_they_are_read():
    names = [name_of(path.stem) for path in notebooks()]
    assert names[:2] == ["start_here", "ranks"] and names[-1] == "interview"


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_link_inside_a_chapter_leads_to_one_of_its_sections(path):
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")
    sections = {section.replace(" ", "-") for section in re.findall(r"^#+ (.*)", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= sections


@pytest.mark.parametrize("package", ["questions", "exercises", "notes"])
def test_every_module_belongs_to_a_chapter(package):
    there = {path.stem for path in (FOLDER / package).glob("*.py")} - HELPERS
    assert there == set(modules(f"course.{package}")), "a module is named as its chapter is, without the number"


def test_a_chapter_without_a_module_has_none(tmp_path, monkeypatch):
    for name in ("00_start_here.ipynb", "07_unheard_of.ipynb"):
        (tmp_path / name).touch()
    monkeypatch.setattr("course.chapters.FOLDER", tmp_path)
    assert list(modules("course.questions")) == ["start_here"]
