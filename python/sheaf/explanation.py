"""What the compiler made of a model, and what a mini-batch did: `fast.explain(trees)`."""
import html
import json
import os
import tempfile
import webbrowser

from . import _native
from .errors import CompileError, Diagnostic

__all__ = ["Explanation"]


class Explanation:
    """What `sheaf explain` says.

        print(fast.explain())               # what was shared and fused, what was not and why
        fast.explain(trees)                 # in a notebook: the page that draws this mini-batch
        fast.explain(trees).open()          # the same in a browser

    text    what the command prints; `str` of this is it
    report  the same as dicts and lists (docs/reports.md has their names)
    page    HTML that needs no network; None without a mini-batch
    """

    def __init__(self, text, report, page):
        self.text, self._json, self.page = text, report, page or None

    @property
    def report(self):
        return json.loads(self._json)

    def save(self, path):
        """Writes the page, or the text where there is none."""
        with open(os.fspath(path), "w", encoding="utf-8") as file:
            file.write(self.text if self.page is None else self.page)

    def open(self):
        """Shows the page, or the text where there is none, in a browser. Gives the file's path."""
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", delete=False, prefix="sheaf-",
                                         suffix=".txt" if self.page is None else ".html") as file:
            file.write(self.text if self.page is None else self.page)
        webbrowser.open("file://" + file.name)
        return file.name

    def _repr_html_(self):
        if self.page is None:
            return f"<pre>{html.escape(self.text)}</pre>"
        # The page's style and script are its own.
        return (f'<iframe srcdoc="{html.escape(self.page)}" style="width: 100%; height: 720px; border: 0">'
                "</iframe>")

    def __str__(self):
        return self.text

    def __repr__(self):
        first = self.text.split("\n", 1)[0]
        return f"<sheaf.Explanation: {first}>"


def explain(options, line_of, session, columns, repetitions):
    """Of what these options compile to, and of a session's run of the columns if there are any."""
    told, said = _native.explain(options, session if columns else None, tuple(columns), repetitions)
    if told is None:
        raise CompileError.of([Diagnostic.from_fields(fields) for fields in said], line_of) from None
    return Explanation(*told)
