#!/bin/bash
# Builds the runtime for AArch64 Linux and runs its tests under QEMU; then artefacts of models, built
# here with --target-cpu: their results must have the bits of code for this machine.
#
#   scripts/aarch64.sh [MODEL ...]      models of models/, all by default
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"

packages+=(qemu-user libc6-dev-arm64-cross libstdc++-12-dev-arm64-cross libgcc-12-dev-arm64-cross)

# Boost.Context's library is the only thing needed that has no package for cross compiling. Packages
# of another architecture come through lists of their own: the system's stay as they are.
fetch_boost() {
  local folder=$root/build-aarch64/packages package
  [[ ! -f $folder/done ]] || return 0
  package=$(dpkg-query -W -f '${Depends}' libboost-context-dev | grep -o 'libboost-context[0-9.]*-dev')
  say "getting $package for AArch64"
  mkdir -p "$folder"/{lists/partial,cache/archives/partial}
  local apt=(apt-get -qq -o Acquire::Retries=3 -o APT::Architecture=arm64
             -o APT::Architectures=arm64 -o Dir::State="$folder" -o Dir::Cache="$folder/cache"
             -o Dir::State::status=/dev/null -o APT::Sandbox::User=root)
  quietly "${apt[@]}" update
  (cd "$folder" && quietly "${apt[@]}" download "$package" && dpkg -x "$package"_*_arm64.deb .)
  touch "$folder/done"
}

# The tests' artefacts, which are kept for x86-64, made of their sources, which say how.
make_golden() {
  local source command folder=$root/build-aarch64/golden
  rm -rf "$folder"
  cp -r tests/artefact/golden "$folder"
  for source in "$folder"/*.sheaf; do
    [[ $source != */v2_machines.sheaf ]] || continue # has code for both
    command=$(sed -n 's/^[#/]* *sheaf \(build .*\)/\1/p' "$source")
    (cd "$folder" && SHEAF_STORE=none "$root/build/bin/sheaf" ${command/x86-64-v2/aarch64})
  done
}

install_packages
fetch_boost
configure release
build release sheaf
# The emulator notes every page of what a session reserves, so it is given 8 GB of addresses.
export QEMU_RESERVED_VA=0x200000000 QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
configure aarch64 -DSHEAF_GOLDEN="$root/build-aarch64/golden"
build aarch64
make_golden
say "running the runtime's tests under QEMU"
# Left out: names, bits and layouts of code for x86-64 without fused multiply-add, many sessions at
# once, for which the emulator has too few addresses, and how long kernels of a microsecond take,
# which is less than what it needs to call one.
run_tests build-aarch64 -E \
  '^(Artefact.Golden($|WithLists|ThatWalks)|Api.Runs$|Session.ManySessionsInOneThread|Threads.(ASession|Sessions|Models)|Counters.ShortLaunches)'
say "running artefacts of models under QEMU"
SHEAF_STORE=build/test-store tests/artefact/run_foreign.py build/bin/sheaf \
  build-aarch64/bin/run_artefact "$@"
