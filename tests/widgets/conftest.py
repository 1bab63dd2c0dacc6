"""What the browser tests of the widgets share: our JavaScript served unchanged, and a page of one widget at a time."""

import pytest

from tests.widgets.stage import LAPTOP, ask, opened, put, served, settle

__all__ = ["ask", "click", "settle", "wait_for_wall"]


@pytest.fixture(scope="session")
def site():
    """Address of a server that has `widgets/` at its root: `await import("/js/schedule.js")` works on its pages."""
    with served() as site:
        yield site


@pytest.fixture(scope="session")
def tab(browser, site):
    """One tab for all tests: opening one costs more than most of them."""
    with opened(browser, site) as tab:
        yield tab


@pytest.fixture
def page(request, tab, site):
    """A page of that server, empty unless the test uses `show`. Motion is unwelcome on it unless the test asks."""
    tab.wrong.clear()
    if "show" not in request.fixturenames:  # which goes to a page of its own
        tab.goto(f"{site}/empty")
    yield tab
    left = tab.evaluate("window.leave?.()") or {"tidy": False, "plain": False, "pointed": True}
    if tab.viewport_size != LAPTOP:
        tab.set_viewport_size(LAPTOP)
    if not left["plain"]:
        tab.emulate_media(color_scheme="light", reduced_motion="reduce")
    if left["pointed"]:
        tab.mouse.move(0, 0)
    if not left["tidy"]:
        tab.goto("about:blank")
    assert not tab.wrong


@pytest.fixture(scope="session")
def desk(browser, site):
    """An empty page for all tests that only call functions of our modules: going to one costs more than most do."""
    with opened(browser, site) as desk:
        desk.goto(f"{site}/empty")
        yield desk


@pytest.fixture
def modules(desk):
    """A page on which nothing is drawn and no test finds what another left: `await import("/js/schedule.js")`."""
    desk.wrong.clear()
    yield desk
    assert not desk.wrong and not desk.evaluate("document.body.childNodes.length")


@pytest.fixture
def show(page, site):
    """show(widget) -> the page with that widget on it, mounted; `more` is what else its model has."""

    def show(widget, **more):
        put(page, site, widget, **more)
        return page

    return show


def click(page, selector):
    """The only such node, in its middle, as `page.click` does: which makes a new page read all of Playwright's code."""
    middles = """selector => [...document.querySelectorAll(selector)].map((node) => {
        const { x, y, width, height } = node.getBoundingClientRect();
        return [x + width / 2, y + height / 2];
    })"""
    (middle,) = ask(page, middles, selector)
    page.mouse.click(*middle)


def wait_for_wall(page):
    """Until the widget that goes into projector mode fills the screen, and is drawn for it."""
    settle(page, "document.fullscreenElement?.getBoundingClientRect().height === innerHeight")
