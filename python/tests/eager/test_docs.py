"""What docs/from-pytorch.md shows is what runs."""
import doctest
import os

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 3, "docs", "from-pytorch.md")


def test_from_pytorch():
    failed, tried = doctest.testfile(PAGE, module_relative=False,
                                     optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    assert tried > 10 and not failed
