"""Names of `.sheaf`: what is taken, and how names of Python are spelled."""
import re

RESERVED = frozenset("fn let match if else true false check _ emits use dim data param layer main".split())

# Built-in functions that are no tensor operators, and types.
FUNCTIONS = frozenset("""
len map fold scan filter zip zip_shortest enumerate range reverse append concat stack rows read read_all emit int
float bool token min max abs sqrt exp log pow floor ceil list f32 bf16 f16 i32 i64 loop shape einsum floor_div floor_mod
""".split())


def spelled(name, capital=False):
    """A name of Python as `.sheaf` can have it."""
    ascii_name = "".join(c if c.isascii() else f"u{ord(c):x}" for c in name)
    ascii_name = re.sub(r"\W", "_", ascii_name)
    if capital:
        bare = ascii_name.lstrip("_") or "T"
        return bare[0].upper() + bare[1:] if bare[0].isalpha() else "T" + bare
    first = ascii_name.lstrip("_")[:1]
    if not first:
        return "v" + ascii_name if ascii_name != "_" else "v_"
    if first.isupper():
        return "_" + ascii_name if not ascii_name.startswith("_") else ascii_name
    if first.isdigit():
        return "v" + ascii_name
    return ascii_name


class Scope:
    """Names that are taken in one place, and in those around it."""

    def __init__(self, above=None, taken=()):
        self.above, self.taken = above, set(taken)

    def __contains__(self, name):
        return name in self.taken or (self.above is not None and name in self.above)

    def fresh(self, wanted, suffix="_"):
        """`wanted`, or the like of it that is free; taken from here on."""
        name, count = wanted, 1
        while name in self:
            count += 1
            name = f"{wanted}{suffix}{count}" if suffix != "_" or count > 2 else wanted + "_"
        self.taken.add(name)
        return name
