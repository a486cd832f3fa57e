"""Messages of the checker of `.sheaf` in terms of Python: its places, its names, its types."""
import re

from ..elements import ELEMENTS
from ..errors import InstanceError
from .places import compile_error, diagnostic

_TENSORS = {name: element.annotation for name, element in ELEMENTS.items()}


class _NotAType(Exception):
    pass


class _Types:
    """Reads a type of `.sheaf` and writes it as an annotation. Without recursion on long input: types in
    messages are short, and what nests deeper than 50 stays as it is."""

    TOKEN = re.compile(r"\s*(->|[A-Za-z_][\w.]*|[0-9]+|[\[\]()<>,?*+/%-])")

    def __init__(self, text, names):
        self.tokens, self.names, self.at = [], names, 0
        place = 0
        while place < len(text):
            match = self.TOKEN.match(text, place)
            if not match:
                if text[place:].strip() == "":
                    break
                raise _NotAType
            self.tokens.append(match[1])
            place = match.end()

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        if wanted is not None and token != wanted or not token:
            raise _NotAType
        self.at += 1
        return token

    def whole(self):
        made = self.type(0)
        if self.at != len(self.tokens):
            raise _NotAType
        return made

    def until(self, close):
        """The texts between brackets, separated by commas."""
        parts, depth, text = [], 0, ""
        while True:
            token = self.take()
            if depth == 0 and token == close:
                return parts + [text] if text else parts
            if depth == 0 and token == ",":
                parts.append(text)
                text = ""
                continue
            depth += token in "([<"
            depth -= token in ")]>"
            text += token

    def type(self, depth):
        if depth > 50:
            raise _NotAType
        token = self.take()
        if token == "(":
            parts = []
            while self.peek() != ")":
                parts.append(self.type(depth + 1))
                if self.peek() == ",":
                    self.take()
            self.take(")")
            if self.peek() == "->":
                self.take()
                return f"Callable[[{', '.join(parts)}], {self.type(depth + 1)}]"
            return f"tuple[{', '.join(parts)}]" if parts else "None"
        if token in ("int", "float"):
            return token
        if token == "token" or token in _TENSORS:
            vocabulary = ""
            if token == "token" and self.peek() == "<":
                self.take()
                vocabulary = self.take()
                self.take(">")
            if self.peek() == "[":
                self.take()
                dims = " ".join(self.until("]"))
                name = "Tokens" if token == "token" else _TENSORS[token]
                return f'Token["{vocabulary}"]["{dims}"]' if vocabulary else f'{name}["{dims}"]'
            if token == "token":
                return f'Token["{vocabulary}"]' if vocabulary else "Token"
            return "bool" if token == "bool" else f'{_TENSORS[token]}[""]'
        if not re.match(r"[A-Za-z_]", token):
            raise _NotAType
        arguments = []
        if self.peek() == "<":
            self.take()
            while self.peek() != ">":
                arguments.append(self.type(depth + 1))
                if self.peek() == ",":
                    self.take()
            self.take(">")
        if token == "list":
            if self.peek() == "[":
                self.take()
                self.until("]")
            if len(arguments) != 1:
                raise _NotAType
            return f"list[{arguments[0]}]"
        if token == "Option" and len(arguments) == 1:
            return f"{arguments[0]} | None"
        if not token[0].isupper():
            raise _NotAType
        name = self.names.get(token, token)
        return name + (f"[{', '.join(arguments)}]" if arguments else "")


def in_python(text, names):
    """A message with what stands in quotes, types and names, as Python has it."""
    def quoted(match):
        inner = match[1]
        try:
            return f"'{_Types(inner, names).whole()}'"
        except _NotAType:
            pass
        if re.fullmatch(r"[A-Za-z_][\w.]*", inner):
            return "'" + ".".join(names.get(part, part) for part in inner.split(".")) + "'"
        return match[0]
    text = re.sub(r"'([^'\n]{1,200})'", quoted, text)

    def bare(match):
        try:
            return _Types(match[0], names).whole()
        except _NotAType:
            return match[0]
    # What of tensors stands without quotes, outside of those that are done.
    text = re.sub(r"(?<![\w\"])(?:f32|f16|bf16|i32|i64|bool|token(?:<\w+>)?)\[[^\]\n]*\]", bare, text)
    return re.sub(r"\bread\(\.\.\.\)", "x.item()", text)


# What messages say in words of `.sheaf`, and what it is in Python.
_HELPS = [
    (re.compile(r"\bcover Just\(_\)"), "cover what is not None"),
    (re.compile(r"write '?(\w+)\(\.\.\.\)'? to convert.*"), r"\1(x)"),
    (re.compile(r"`let ([^`]*)`"), r"\1"),
    # Names of extents are no variables of Python; that shapes agree is asserted of shapes.
    (re.compile(r"each '\?' is an extent of its own; name them.*"),
     "each '?' is an extent of its own; where they are always equal say so before: assert a.shape[0] == b.shape[0]"),
    (re.compile(r"say so before: check (.+) == (.+)$"),
     r"say so before: assert \1 == \2, where a name stands for x.shape[...] of a tensor x that has it"),
    (re.compile(r"\blet (\w+: )"), r"\1"),
    (re.compile(r"\bcheck ([^,;]+?) == ([^,;]+)$"), r"assert \1 == \2"),
    (re.compile(r"one that is fixed is declared: dim (\w+) = \.\.\."),
     r"one that is fixed is an int of the module: self.\1 = ..."),
    (re.compile(r"'read' waits for the element( of a tensor)?( and gives it as a host value)?"),
     r"x.item() waits for the element\1\2"),
    (re.compile(r"\bread_all\((\w+)\)"), r"\1.tolist()"),
    (re.compile(r"\bread\(((?:[^()]|\([^()]*\))+)\)"), r"\1.item()"),
    (re.compile(r"\badd an arm: (.+?) => \.\.\."), r"add: case \1: ..."),
    (re.compile(r"\bJust\((_|\w+(?:\((?:[^()]|\([^()]*\))*\))?)\)"), r"\1"),
    (re.compile(r"\bNothing\b"), "None"),
    (re.compile(r"\{ \.\.\. \}"), "..."),
]

_WORDS = [
    (re.compile(r"\bthis match does not cover\b"), "these cases do not cover"),
    (re.compile(r"\bthe start value and every result must have one type\b"),
     "what a loop carries has one type: annotate it before the loop, x: Float32[\"? n\"] = ..."),
    (re.compile(r"\bfield 'value' of 'Just'"), "what is not None"),
    (re.compile(r"\bthe function of '(?:fold|loop|scan)'"), "the loop"),
    (re.compile(r"\bof the result of the loop\b"), "of what the loop carries"),
    (re.compile(r"\bthe result of the loop\b"), "what the loop carries"),
]


def _words(text, names):
    text = in_python(text, names)
    for pattern, instead in _HELPS + _WORDS:
        text = pattern.sub(instead, text)
    return text


def translated(error, program, name):
    """The CompileError of a Program's text as one of Python. `name` is how messages call the text."""
    made = []
    for d in error.diagnostics:
        made.append(_diagnostic(d, program, name))
    if not made:
        return error
    # One fault of Python may be several in the text, at one place.
    seen, kept = set(), []
    for d in made:
        key = (d.file, d.line, d.column, d.message)
        if key not in seen:
            seen.add(key)
            kept.append(d)
    return compile_error(kept)


def _diagnostic(d, program, name):
    place = None
    if d.file == name:
        place = program.place(d.line, d.column, d.end_line, d.end_column)
    notes = [_diagnostic(n, program, name) for n in d.notes]
    if place is None and d.file == name:
        lines = program.text.split("\n")
        line = lines[d.line - 1] if 0 < d.line <= len(lines) else ""
        return diagnostic(None, f"{_words(d.message, program.names)} (in {name}:{d.line}, which was made of "
                          f"the model: {line.strip()})", _words(d.help, program.names), d.severity, notes)
    return diagnostic(place, _words(d.message, program.names), _words(d.help, program.names), d.severity,
                      notes)


def reason_in_python(reason, program, name):
    """The reason of a failed instance with places in Python."""
    lines = found = None

    def place(match):
        nonlocal lines, found
        lines = lines or program.line_map()
        number, column = int(match["line"]), match["column"]
        found = None
        if column:
            found = program.place(number, int(column), number, int(column) + 1)
        if found is None and 0 < number <= len(lines):
            found = lines[number - 1]
        return f"{found.file}:{found.line}" if found is not None else match[0]
    pattern = re.escape(name) + r":(?P<line>\d+)(?::(?P<column>\d+))?"
    reason = re.sub(pattern, place, _unmangled(reason, program.names))
    return _index_as_written(reason) if found is not None and _subscripts(found) else reason


def _subscripts(place):
    """Whether what stands at a place takes elements by Python's `x[i]`, which counts from the end too."""
    return re.search(r"[\w)\]]\[", place.text) and "element(" not in place.text


def _index_as_written(reason):
    """Of `x[-3]` the index is what the program makes of it, -3 and the extent."""
    def written(match):
        extent = match["list"] or match["extent"]
        return f"index {int(match['index']) - int(extent)}{match['rest']}"
    return re.sub(r"index (?P<index>-\d+)(?P<rest> is out of range for (?:a list of (?P<list>\d+)|axis \d+ of .*?, "
                  r"whose extent is (?P<extent>\d+)))", written, reason)


def _unmangled(text, names):
    return re.sub(r"'([A-Za-z_]\w*)'", lambda m: f"'{names.get(m[1], m[1])}'", text)


def instance_error(error, program, name):
    """An InstanceError with its place in Python."""
    return InstanceError(error.instance, reason_in_python(error.reason, program, name), error.cause)
