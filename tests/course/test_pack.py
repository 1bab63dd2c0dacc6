"""The instructor's pack of the smallest chapter: complete, opens from files without a network, one-sheet handouts."""

import json
import re
from html import unescape
from pathlib import Path

import nbformat
import pytest

from course.chapters import FOLDER, name_of, notebooks
from course.notes import NOTES
from course.pack import __main__ as pack
from course.pack import paper, run, slides
from course.pack.board import BOARD

STEM = "00_start_here"
LEADS = re.compile(r'(?:href|src)="(?!https?:|#|data:)([^"#]+)')
LOADED = re.compile(r"<(?:script|img|iframe|link|source)\b[^>]*?(?:src|href)=[\"']https?:")
PAGES = re.compile(rb"/Type\s*/Page\b")
A4 = rb"/MediaBox \[0 0 59[45][.\d]* 84[12][.\d]*\]"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pack")
    assert pack.main([str(folder), "00"]) == 0
    return folder


def test_the_index_leads_to_all_of_it(built):
    found = set(LEADS.findall((built / "index.html").read_text()))
    wanted = {f"notes/{STEM}.html", f"handouts/{STEM}.html", f"filled/{STEM}.html", f"filled/{STEM}.ipynb"}
    wanted |= {f"slides/{STEM}.html"}
    assert wanted | {f"stripped/{STEM}.ipynb"} <= found


def test_links_lead_to_files_that_are_there_and_nothing_is_loaded_from_elsewhere(built):
    pages = [built / "index.html", *(built / "notes").iterdir(), *(built / "handouts").glob("*.html")]
    for page in pages:
        html = page.read_text()
        for target in LEADS.findall(html):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
        assert not LOADED.search(html), page.name


def test_every_picture_of_the_saved_chapter_has_its_page(built):
    saved = nbformat.read(FOLDER / f"{STEM}.ipynb", as_version=4)
    picture = re.compile(r"^(?:Player|Question|WaitFor)\(")
    shows = [
        cell.id
        for cell in saved.cells
        for output in cell.get("outputs", [])
        if picture.match(output.get("data", {}).get("text/plain", ""))
    ]
    listed = json.loads((built / "pictures" / STEM / run.PICTURES).read_text())
    in_saved = [cell for cell, _, _ in listed if cell in shows]
    assert in_saved == shows and len(shows) > 5
    assert all((built / "pictures" / STEM / page).exists() for _, page, _ in listed)


def test_the_filled_notebook_has_our_solution_and_its_verdict_and_the_stripped_one_has_neither(built):
    filled, stripped = (nbformat.read(built / kind / f"{STEM}.ipynb", as_version=4) for kind in ("filled", "stripped"))
    nbformat.validate(filled)
    ours = (FOLDER / "solutions" / "pass_it_on.py").read_text().strip()
    assert any(cell.source.endswith(ours) for cell in filled.cells)
    check = next(cell for cell in filled.cells if cell.source == 'check("pass_it_on")')
    assert "solved" in str(check.outputs).lower()
    assert not any(ours in cell.source or cell.get("outputs") for cell in stripped.cells)


def test_the_notes_ask_the_room_and_put_the_question_on_the_wall(built):
    html = unescape((built / "notes" / f"{STEM}.html").read_text())
    notes = NOTES["start_here"]
    question = paper.QUESTIONS[notes.room]
    assert all(answer.text.split("`")[0] in html for answer in question.answers)
    assert all(reply.answer.split("`")[0] in html for reply in notes.thrown_in)
    assert paper.right(paper.QUESTIONS["some_rank_sends_63"])[1][:60] in html
    wall = re.search(r'On the wall: <a href="\.\./(pictures/[^"]+)"><code>drift</code>', html)
    assert wall and question.answers[0].text in (built / wall[1]).read_text()


def test_every_picture_opens_from_its_file_without_a_network(built, browser):
    context = browser.new_context(offline=True)
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("request", lambda each: each.url.startswith(("file:", "data:", "blob:")) or wrong.append(each.url))
    for picture in sorted((built / "pictures" / STEM).glob("*.html")):
        page.goto(picture.as_uri())
        drawn = "document.querySelector('.plotly-graph-div .xtick')"  # a figure; all others are widgets
        page.wait_for_function(f"{drawn} || (window.model && document.querySelector('#widget').innerText.trim())")
        assert not wrong, f"{picture.name}: {wrong}"
    context.close()


def test_a_clicker_steps_the_pictures_of_a_deck_and_turns_its_pages_without_a_network(built, browser):
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda each: each.url.startswith(("file:", "data:", "about:")) or wrong.append(each.url))
    page.goto((built / "slides" / f"{STEM}.html").as_uri())
    page.wait_for_function("window.Reveal?.isReady()")
    seen = [page.evaluate(HERE)]
    while len(seen) < 2 or seen[-1] != seen[-2]:
        assert len(seen) < 200
        page.keyboard.press("PageDown")
        page.wait_for_function("!pictureOn() || frameIn(pictureOn())?.classList.contains('rs-projected')")
        seen.append(page.evaluate(HERE))
    assert seen[-1][0] == page.evaluate("Reveal.getTotalSlides()") - 1 and not wrong
    steps = {slide: [step for at, step, _ in seen if at == slide and step] for slide, *_ in seen}
    played = next(told for told in steps.values() if len(told) > 3)
    assert played == [str(step) for step in range(len(played))]
    assert max(drawn for _, _, drawn in seen) == len(BOARD["start_here"][0].steps) - 2  # the first is there at once
    page.keyboard.press("PageUp")
    assert page.evaluate(HERE)[0] == seen[-1][0] - 1
    context.close()


def test_in_dark_slides_are_as_dark_as_their_pictures(built, browser):
    """Text on a slide is light, and its background is that of the picture on the next slide."""
    page = browser.new_page(color_scheme="dark")
    page.goto((built / "slides" / f"{STEM}.html").as_uri())
    page.wait_for_function("window.Reveal?.isReady()")
    assert page.evaluate(f"[{GROUND}(document.body), getComputedStyle(document.querySelector('h1')).color]") == [
        "rgb(20, 23, 26)",
        "rgb(233, 236, 239)",
    ]
    page.evaluate("Reveal.slide(Reveal.getSlides().findIndex((one) => one.querySelector('iframe')))")
    page.wait_for_function("frameIn(pictureOn())?.classList.contains('rs-projected')")
    assert page.evaluate(f"{GROUND}(frameIn(pictureOn()))") == "rgb(20, 23, 26)"
    page.close()


GROUND = "((element) => getComputedStyle(element).backgroundColor)"
HERE = "[Reveal.getIndices().h, frameIn(pictureOn())?.dataset.step ?? '', Reveal.getIndices().f ?? -1]"


def test_hands_are_counted_on_a_deck_and_the_speaker_is_told_what_is_right(built, browser):
    page = browser.new_page()
    page.goto((built / "slides" / f"{STEM}.html").as_uri())
    page.wait_for_function("window.Reveal?.isReady()")
    notes = NOTES["start_here"]
    question = paper.QUESTIONS[notes.room]
    slide = page.evaluate(
        "(words) => Reveal.getSlides().findIndex((one) => one.querySelector('iframe')?.dataset.page.includes(words))",
        f'"name": "{notes.room}"',
    )
    told = page.evaluate("(at) => Reveal.getSlides()[at].querySelector('.notes').innerText", slide)
    assert question.answers[question.right].why.split("`")[0][:40] in told and "They say" in told
    page.evaluate("(at) => Reveal.slide(at)", slide)
    page.wait_for_function("frameIn(pictureOn())?.classList.contains('rs-projected')")
    for key in ("1", "3", "3", "Enter"):
        page.keyboard.press(key)
    assert page.evaluate("pictureOn().contentWindow.model.get('predicted').said") == [1, 0, 2]
    page.close()


@pytest.mark.parametrize("name", NOTES)
def test_each_question_that_a_plan_of_50_minutes_asks_is_on_its_deck_once(name, tmp_path):
    chapter = next(path for path in notebooks() if name_of(path.stem) == name)
    saved = nbformat.read(chapter, as_version=4)
    asked = {cell.id: found for cell in saved.cells if (found := slides.ASKED.findall(cell.source))}
    for cell, names in asked.items():
        (tmp_path / f"{cell}.html").write_text(f"asks {' '.join(names)}")
    pictures = [run.Picture(cell, f"{cell}.html", "") for cell in asked]
    deck = str(slides.deck(saved, pictures, tmp_path, chapter.stem))
    planned = [
        each for each in paper.asked_in(NOTES[name]) if any(f"`{each}`" in part.do for part in NOTES[name].fifty)
    ]
    assert planned and [len(re.findall(rf"asks [\w ]*\b{each}\b", deck)) for each in planned] == [1] * len(planned)


def test_without_reveal_the_pack_says_what_to_install(monkeypatch):
    monkeypatch.setattr(slides, "find_spec", lambda name: None)
    slides._reveal.cache_clear()
    with pytest.raises(LookupError, match=r"pip install 'ringside\[slides\]'"):
        slides.html(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("a")]), STEM)


def test_the_handout_of_every_chapter_is_one_sheet_of_a4(browser):
    page = browser.new_page()
    for chapter in notebooks():
        html = paper.handout(nbformat.read(chapter, as_version=4), chapter.stem)
        if html is not None:
            assert paper.NOTES[name_of(chapter.stem)].sheet and "<li>" in html.split("To keep")[1]
            page.set_content(html)
            printed = page.pdf(prefer_css_page_size=True)
            assert len(PAGES.findall(printed)) == 1, f"{chapter.stem}: its handout does not fit on one sheet"
            assert re.search(A4, printed)
    page.close()


def test_the_pdf_beside_the_handout_is_that_sheet(built, browser):  # without Chromium there is none
    printed = (built / "handouts" / f"{STEM}.pdf").read_bytes()
    assert len(PAGES.findall(printed)) == 1 and re.search(A4, printed)


def test_a_chapter_without_notes_is_in_the_pack_and_says_so(monkeypatch):
    monkeypatch.delitem(NOTES, "start_here")
    chapter = nbformat.read(FOLDER / f"{STEM}.ipynb", as_version=4)
    page = paper.notes_page(chapter, STEM, [run.Picture("cell-02", "cell-02.html", "Player(ring)")])
    assert "Nobody has written notes" in page and "cell-02.html" in page
    assert paper.handout(chapter, STEM) is None


def test_solutions_that_are_not_in_this_copy_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "COURSE", tmp_path)
    chapter = nbformat.read(FOLDER / f"{STEM}.ipynb", as_version=4)
    assert run.fill(chapter) == ["pass_it_on"]


@pytest.mark.parametrize("name", ["5", "ring"])
def test_a_chapter_that_is_none_is_said(name, tmp_path, capsys):
    assert pack.main([str(tmp_path / "pack"), name]) == 2
    assert f"there is no chapter {name}" in capsys.readouterr().out


def test_a_folder_that_cannot_be_made_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert pack.main([str(tmp_path / "file" / "pack"), "00"]) == 1
    assert "name another" in capsys.readouterr().out
