"""Texts and paths as the extension takes them: UTF-8, without NUL."""
import os

__all__ = ["path_text", "require_texts"]


def path_text(path):
    """A path as str. Raises TypeError for what is none, ValueError for what the extension cannot take."""
    text = os.fsdecode(path)
    require_texts("the path", text)
    return text


def require_texts(what, given):
    """Looks at texts in lists, tuples and dicts."""
    if isinstance(given, str):
        if "\0" in given:
            raise ValueError(f"{what}: {given!r} has a NUL in it")
        try:
            given.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{what}: {given!r} is no text that UTF-8 can say") from None
    elif isinstance(given, dict):
        for key, value in given.items():
            require_texts(what, key)
            require_texts(f"{what}['{key}']" if isinstance(key, str) else what, value)
    elif isinstance(given, (list, tuple)):
        for value in given:
            require_texts(what, value)
