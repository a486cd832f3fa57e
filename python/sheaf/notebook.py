"""Sheaf in notebooks: `%load_ext sheaf`, and what objects look like there.

    %%sheaf scores --dim hidden=64 --vocab words.txt
    dim hidden
    ...
    fn main(t: Tree) -> f32 = ...

compiles the cell's text, and the name `scores` is the model.
"""
import argparse
import html
import shlex

__all__ = ["load_ipython_extension", "table"]


def load_ipython_extension(shell):
    """What `%load_ext sheaf` calls."""
    shell.register_magic_function(lambda line, cell: _compile_cell(shell, line, cell), "cell", "sheaf")


class _Options(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(f"%%sheaf: {message}\n{self.format_usage()}")

    def exit(self, status=0, message=None):
        raise ValueError(self.format_help())


def _options():
    parser = _Options(prog="%%sheaf", add_help=False, description="Compiles the cell; NAME is the model.")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--dim", metavar="NAME=N", action="append", default=[], help="instead of the source's")
    parser.add_argument("--vocab", metavar="FILE")
    parser.add_argument("--weights", metavar="FILE")
    parser.add_argument("--entry", metavar="FUNCTION")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--without", metavar="OPTIMISATION", action="append", default=[])
    parser.add_argument("--threads", type=int, default=1)
    return parser


def _compile_cell(shell, line, cell):
    from .model import compile
    options = _options().parse_args(shlex.split(line))
    if not options.name.isidentifier():
        raise ValueError(f"%%sheaf: {options.name!r} is no name of Python's")
    dims = {}
    for one in options.dim:
        name, _, value = one.partition("=")
        if not value.isdecimal():
            raise ValueError(f"%%sheaf: --dim {one}: NAME=N belongs there")
        dims[name] = int(value)
    model = compile(cell, name=f"{options.name}.sheaf", dims=dims, vocab=options.vocab, weights=options.weights,
                    entry=options.entry, precision=options.precision, without=options.without,
                    threads=options.threads)
    for warning in model.warnings:
        print(warning)
    shell.user_ns[options.name] = model


def table(caption, head, rows):
    """A table in HTML."""
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag} style='text-align: left'>{html.escape(str(c))}</{tag}>"
                                for c in cells) + "</tr>"
    return (f"<table><caption style='text-align: left'>{html.escape(caption)}</caption>"
            f"<thead>{line(head, 'th')}</thead><tbody>{''.join(line(r, 'td') for r in rows)}</tbody></table>")


def parameters(caption, weights):
    """A table of weights: pairs of name and array."""
    weights = list(weights)
    count = sum(int(value.size) for _, value in weights)
    return table(f"{caption} with {count:,} weights", ["parameter", "shape", "type"],
                 [(name, " × ".join(map(str, value.shape)) or "scalar", value.dtype) for name, value in weights])
