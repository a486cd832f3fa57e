"""The compiler of Sheaf: a shared library with LLVM and MLIR inside, one for every Python. The
package `sheaf` opens it when it first compiles."""
import os

path = os.path.join(os.path.dirname(__file__), "libsheaf_compiler.so")
