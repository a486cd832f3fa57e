#!/bin/bash
# Installs the Debian packages that are missing and configures the build in build/.
# Safe to repeat: when nothing is missing it touches neither the network nor the package system.
#
#   scripts/setup.sh [PRESET]     PRESET of CMakePresets.json, release by default
#
# Sourced by ./demo, ./test and .ci/run for its functions.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

packages=(
  clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  libclang-rt-22-dev clang-format-22 cmake ninja-build ccache python3 python3-jsonschema
  python3-dev python3-numpy python3-pip python3-pytest python3-venv
  libfmt-dev zlib1g-dev libcli11-dev nlohmann-json3-dev libgtest-dev libboost-context-dev libxxhash-dev
  libsqlite3-dev libdnnl-dev libxsmm-dev libopenblas-dev
)

started=$SECONDS
say() { printf '[%3d s] %s\n' $((SECONDS - started)) "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      echo "$package"
  done
}

# Runs a command quietly; its output appears only when it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    fail "'$*' failed; its output stands above"
  fi
  rm -f "$log"
}

install_packages() {
  command -v dpkg-query >/dev/null || fail "this script installs Debian packages; on another \
system install LLVM and MLIR 22, CMake, Ninja, fmt, CLI11, nlohmann-json, GoogleTest, \
Boost.Context, xxHash and SQLite, then run: cmake --preset release"
  local missing
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  say "installing ${#missing[@]} packages: ${missing[*]}"
  [[ $(id -u) == 0 ]] || fail "installing packages needs root; run as root, or first: \
apt-get install ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  quietly apt-get -qq -o Acquire::Retries=3 update
  quietly apt-get -qq -y -o Acquire::Retries=3 install --no-install-recommends "${missing[@]}"
  say "packages installed"
}

# Precompiled headers and ccache agree only under these settings.
use_ccache() {
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  export CCACHE_BASEDIR=$root
}

build_directory() {
  case $1 in
  release) echo "$root/build" ;;
  *) echo "$root/build-$1" ;;
  esac
}

# configure PRESET [CMAKE ARGUMENT ...]
configure() {
  local preset=$1 directory arguments
  shift
  directory=$(build_directory "$preset")
  use_ccache
  if [[ -f $directory/build.ninja && $directory/build.ninja -nt $root/CMakePresets.json &&
        -f $directory/.configured ]]; then
    return 0
  fi
  say "configuring ${directory#"$root"/}"
  arguments=()
  if command -v ccache >/dev/null; then
    arguments+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache
                "-DCMAKE_CXX_FLAGS=-Xclang -fno-pch-timestamp")
  fi
  (cd "$root" && quietly cmake --preset "$preset" "${arguments[@]}" "$@")
  touch "$directory/.configured"
}

# build PRESET [TARGET ...]
build() {
  local preset=$1 directory
  shift
  directory=$(build_directory "$preset")
  say "building ${*:-everything} in ${directory#"$root"/}"
  use_ccache
  if [[ -t 1 ]]; then
    ninja -C "$directory" "$@"
  else
    # One line a minute or so instead of one a file.
    NINJA_STATUS='[%f/%t %es] ' ninja -C "$directory" "$@" | awk '
      /^\[[0-9]+\/[0-9]+/ {
        split(substr($1, 2), part, "/"); total = part[2] + 0
        if (total && int(part[1] * 10 / total) != shown) {
          shown = int(part[1] * 10 / total); print; fflush()
        }
        next
      }
      { print; fflush() }'
  fi
}

# run_tests DIRECTORY [CTEST ARGUMENT ...]: of the tests that pass every tenth part is told, the
# others with all they print.
run_tests() {
  local directory=$1
  shift
  ctest --test-dir "$directory" --output-on-failure -j "$(nproc)" "$@" 2>&1 | awk '
    /^ *Start +[0-9]+: |^ *$|^Test project|^Internal ctest/ { next }
    /^ *[0-9]+\/[0-9]+ Test .* Passed / {
      split($1, part, "/")
      if (int(part[1] * 10 / part[2]) != shown) {
        shown = int(part[1] * 10 / part[2]); print "[" $1 "]"; fflush()
      }
      next
    }
    { print; fflush() }'
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  install_packages
  configure "${1:-release}"
  say "ready"
fi
