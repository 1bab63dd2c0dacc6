"""Question: one question, answered in the browser; and Asked, a picture that can stand behind one.

The browser judges and explains (js/predict.js), so a question works while the kernel is busy and nothing waits for it;
`predicted` then has what was said. What is saved in a notebook is the question and what there is to choose from, never
what is right: neither the text nor the HTML of a widget whose question is open shows the picture.

Left out: the questions (course/questions), and who keeps the answers (course/ask.py).
"""

from html import escape

import traitlets

from widgets.base import Widget, join, styles


class Asked(Widget):
    """A widget that opens when its question was answered or skipped; without a question it is open.

    question    what js/grade.js calls Question
    predicted   what was said, whether it is right (None: skipped, or said by a room), and the sentences about it

    A subclass may name its module, `_entry`, and the style sheets that it needs without a question, `_sheets`: then a
    page of its own has the code that asks only if something is asked.
    """

    _entry = ""
    _sheets: tuple[str, ...] = ()
    question = traitlets.Dict(allow_none=True).tag(sync=True)
    predicted = traitlets.Dict(allow_none=True).tag(sync=True)
    fresh = traitlets.Unicode("").tag(sync=True)  # shown by a cell just run: "new" comes into view, "first" also plays

    def __init__(self, **traits):
        super().__init__(**{"question": None, "predicted": None} | traits)

    def ask(self, question: dict) -> None:
        """Puts a question in front, also where one was answered before."""
        self.question = question
        self.set_trait("predicted", None)

    @property
    def asks(self) -> bool:
        """Whether it has a question that brings its own words; it stays so in what is saved, answered or not."""
        return bool(self.question and "name" in self.question)

    def behind(self) -> str:
        """HTML of what may be seen while the question is open."""
        return ""

    def code(self) -> tuple[str, str]:
        if self.question is not None or not self._entry:
            return super().code()
        return join(self._entry, without="asking.js"), styles(*self._sheets)

    def __repr__(self):
        if not self.asks:
            return super().__repr__()
        return f"{type(self).__name__}(question: {self.question['text']})"

    def _freshness(self) -> str:
        """What `fresh` is when a cell shows the widget; the browser empties it."""
        return ""

    def _repr_mimebundle_(self, **kwargs):
        self.fresh = self._freshness()
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return data | ({"text/html": still(self.question) + self.behind()} if self.asks else {}), metadata


class Question(Asked):
    """A question by itself."""

    _esm = join("question.js")
    _css = styles("frame.css", "question.css")

    def summary(self) -> str:
        return ""


def still(question: dict) -> str:
    """The question and what there is to choose from, as HTML; not what is right."""
    choices = [answer["text"] for answer in question.get("answers", ())] or question.get("lines", [])
    code = question["kind"] in ("line", "order")
    items = "".join(f"<li>{f'<code>{_code(text)}</code>' if code else rich(text)}</li>" for text in choices)
    asked = f"<p><b>{rich(question['text'])}</b></p>"
    return f"<div>{asked}{f'<ol>{items}</ol>' if items else ''}</div>"


def rich(text: str) -> str:
    """As HTML: text with `code` in it."""
    parts = escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts)).replace("\n", "<br>")


def _code(text: str) -> str:
    return escape(text, quote=False).replace(" ", "&nbsp;")
