"""Text of `.sheaf` that remembers which node of Python each part was made of."""
import bisect


class Local:
    """A local variable of a function; its name in `.sheaf` is chosen when all others are known."""

    __slots__ = ("python", "text")

    def __init__(self, python):
        self.python, self.text = python, None

    def __repr__(self):
        return f"Local({self.python})"


class Code:
    """Parts (texts, Locals, Codes, and the marks below), made of `origin`, a Place or None."""

    __slots__ = ("parts", "origin")

    def __init__(self, parts, origin=None):
        self.parts, self.origin = parts, origin


class _Mark:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


LINE, IN, OUT = _Mark("LINE"), _Mark("IN"), _Mark("OUT")


def code(*parts, at=None):
    return Code(parts, at)


def joined(parts, separator=", "):
    made = []
    for part in parts:
        if made:
            made.append(separator)
        made.append(part)
    return Code(tuple(made))


class Text:
    """The whole text, flattened, with what each stretch was made of."""

    def __init__(self, root):
        pieces, spans, offset, indent = [], [], 0, 0
        # Without recursion: expressions may be deep.
        stack = [(root, None)]
        while stack:
            item, begun = stack.pop()
            if begun is not None:
                spans.append((begun, offset, item))
                continue
            if isinstance(item, str):
                pieces.append(item)
                offset += len(item)
            elif isinstance(item, Local):
                pieces.append(item.text)
                offset += len(item.text)
            elif isinstance(item, Code):
                if item.origin is not None:
                    stack.append((item.origin, offset))
                for part in reversed(item.parts):
                    stack.append((part, None))
            elif item is LINE:
                piece = "\n" + "  " * indent
                pieces.append(piece)
                offset += len(piece)
            elif item is IN:
                indent += 1
            elif item is OUT:
                indent -= 1
            else:
                raise TypeError(item)
        self.text = "".join(pieces)
        self._spans = sorted(spans, key=lambda s: (s[0], -s[1]))
        self._lines = [0]
        for i, c in enumerate(self.text):
            if c == "\n":
                self._lines.append(i + 1)

    def offset(self, line, column):
        if not 1 <= line <= len(self._lines):
            return len(self.text)
        return self._lines[line - 1] + column - 1

    def place(self, line, column, end_line, end_column):
        """The Place of the smallest stretch that covers a range of the text, or begins before it; None
        where nothing of Python stands after it."""
        begin = self.offset(line, column)
        end = max(self.offset(end_line, end_column), begin + 1)
        best = None
        last = bisect.bisect_right(self._spans, begin, key=lambda s: s[0])
        for first, after, origin in self._spans[:last]:
            if after >= end and (best is None or after - first < best[0]):
                best = (after - first, origin)
        return best[1] if best else None

    def line_map(self):
        """Of each line of the text the Place of the innermost thing that begins on it, or None."""
        found = []
        for number, begin in enumerate(self._lines, 1):
            end = self._lines[number] - 1 if number < len(self._lines) else len(self.text)
            stripped = len(self.text[begin:end]) - len(self.text[begin:end].lstrip())
            found.append(self.place(number, stripped + 1, number, stripped + 2))
        return found
