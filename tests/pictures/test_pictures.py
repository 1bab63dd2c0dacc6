"""Every widget looks as it was approved, at laptop, projector and phone size, and in the dark.

What differs is left in `drawn/` beside the approved pictures. `make gallery` shows both; after looking, `make pictures`
approves what is drawn now. A machine without DejaVu Sans cannot compare.
"""

import os

import pytest

from tests.pictures import approve, gallery
from tests.pictures.camera import APPROVED, DRAWN, MOST, NAMES, Camera
from tests.pictures.scenes import SCENES
from widgets import Player


@pytest.fixture(scope="module")
def camera(browser):
    camera = Camera(browser)
    if not camera.has_fonts():
        complain = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        complain("the approved pictures are set in DejaVu Sans: install it (Debian: fonts-dejavu-core)")
    yield camera
    camera.close()


@pytest.mark.parametrize("name", NAMES)
def test_it_looks_as_approved(camera, name):
    approved = APPROVED / f"{name}.webp"
    assert approved.exists(), f"{name} is new: `make pictures` draws it; look at it with `make gallery`"
    drawn = camera.take(name)
    found = camera.difference(approved.read_bytes(), drawn)
    if not found:
        (DRAWN / f"{name}.webp").unlink(missing_ok=True)
        return
    DRAWN.mkdir(exist_ok=True)
    (DRAWN / f"{name}.webp").write_bytes(drawn)
    pytest.fail(f"{name} looks different {found}: look at it with `make gallery`, approve it with `make pictures`")


def test_the_approved_pictures_are_those_of_the_scenes_and_small():
    assert {path.stem for path in APPROVED.iterdir()} == set(NAMES)
    assert sum(path.stat().st_size for path in APPROVED.iterdir()) < 4_100_000


BREAKS = {  # what a wrong edit does to the picture of player-ring
    "an arrow five pixels lower": "arrow.setAttribute('transform', 'translate(0 5)')",
    "an arrow lost": "arrow.remove()",
    "a label four pixels to the right": "label('a0').setAttribute('transform', 'translate(4 0)')",
    "a0 called a1": "label('a0').textContent = 'a1'",
    "a mark of what was written lost": "picture.querySelector('.rs-marks').lastElementChild.remove()",
    "a chunk in another colour": "picture.querySelector('.rs-h0').classList.replace('rs-h0', 'rs-h5')",
    "a button moved": "document.querySelector('.rs-back').style.transform = 'translateX(3px)'",
}
TOOLS = """const picture = document.querySelector('.rs-picture');
    const arrow = picture.querySelector('.rs-arrows path');
    const label = (text) => [...picture.querySelectorAll('text')].find((node) => node.textContent === text);"""


@pytest.fixture(scope="module")
def right(camera):
    """Two pictures by their names; each looks the same the second time."""
    names = ["player-ring-laptop-light", "player-ring-laptop-dark"]
    taken = {name: camera.take(name) for name in names}
    assert [camera.compare(taken[name], camera.take(name))["worst"] for name in names] == [0, 0]
    return taken


DARK = ("an arrow lost", "a chunk in another colour", "a mark of what was written lost")  # what has the dark's own ink


@pytest.mark.parametrize("scheme, what", [("light", what) for what in BREAKS] + [("dark", what) for what in DARK])
def test_what_an_eye_would_see_is_found(camera, right, scheme, what):
    name = f"player-ring-laptop-{scheme}"
    wrong = camera.take(name, f"() => {{ {TOOLS} {BREAKS[what]}; }}")
    assert camera.compare(right[name], wrong)["worst"] > MOST


def test_a_widget_that_shows_an_error_is_no_picture(camera):
    broken = Player(SCENES["player-ring"].make().schedule, step=2)
    broken.meta = broken.meta | {"captions": None}
    with pytest.raises(AssertionError, match="could not be drawn"):
        camera.show(broken)


def test_the_gallery_shows_every_picture(browser, tmp_path):
    """Opened from the disk, as a person does."""
    gallery.write(tmp_path / "gallery.html")
    page = browser.new_page()
    page.goto((tmp_path / "gallery.html").as_uri())  # until all pictures are there
    shown = page.evaluate("[...document.images].filter((each) => each.naturalWidth).map((each) => each.alt)")
    page.close()
    assert [name for name in shown if name in NAMES] == [*dict.fromkeys(shown)]
    assert {*shown} == {*NAMES}


def test_approving_writes_what_differs_and_nothing_else(camera, tmp_path):
    names = ["wait-for-phone-light", "wait-for-laptop-dark"]
    first = camera.take(names[0])
    (tmp_path / f"{names[0]}.webp").write_bytes(first)
    (tmp_path / "gone-laptop-light.webp").write_bytes(first)
    before = (tmp_path / f"{names[0]}.webp").stat().st_mtime_ns
    assert approve.approve(camera, names, tmp_path) == [
        "wait-for-laptop-dark: new",
        "gone-laptop-light: no longer drawn",
    ]
    assert (tmp_path / f"{names[0]}.webp").stat().st_mtime_ns == before
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(names)
