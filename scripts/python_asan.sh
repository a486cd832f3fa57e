#!/bin/bash
# Runs tests of the package for Python with the extension, and the run time inside of it, under the
# address sanitizer. The compiler's library is that of the release build, which must be there. Some
# minutes.
#
#   scripts/python_asan.sh [FOLDER ...]     of python/tests; by default native operators training
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"

folder=$root/build-python-asan
python=$(sed -n 's/^Python_EXECUTABLE:[A-Z]*=//p' build/CMakeCache.txt)
use_ccache
say "building the extension in ${folder#"$root"/}"
quietly cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang-22 \
  -DCMAKE_CXX_COMPILER=clang++-22 -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld \
  -DCMAKE_CXX_FLAGS=-shared-libasan -DSHEAF_SANITIZE=address -DSHEAF_PYTHON_SANITIZED=ON \
  -DSHEAF_COMPILER=OFF -DSHEAF_TESTS=OFF -DSHEAF_UNITY=ON
quietly ninja -C "$folder" sheaf_python
ln -sf "$root"/build/lib/libsheaf_compiler.so.0 "$folder/python/sheaf/"

# What Python itself keeps to its end is no leak of ours. Containers go between code that is
# instrumented and the compiler's, which is not.
export ASAN_OPTIONS=detect_leaks=0:detect_container_overflow=0:detect_odr_violation=0
export SHEAF_BUILD=$root/build SHEAF_STORE=$root/build/test-store PYTHONPATH=$folder/python
runtime=$(clang++-22 -print-file-name=libclang_rt.asan-x86_64.so)
for tests in "${@:-native operators training}"; do
  for name in $tests; do
    say "python/tests/$name"
    LD_PRELOAD=$runtime "$python" -B -m pytest -q -p no:cacheprovider "python/tests/$name"
  done
done
say "no error"
