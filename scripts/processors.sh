#!/bin/bash
# Runs a model as other x86-64 processors under QEMU, with code for what each of them has: equal bits
# are expected (tests/processors/run_processors.py). About a minute on two cores.
#
#   scripts/processors.sh [PROCESSOR ...]      names of `qemu-x86_64 -cpu help`
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"

packages+=(qemu-user)

install_packages
configure release
build release sheaf
say "running a model as other processors under QEMU"
tests/processors/run_processors.py build/bin/sheaf "$@"
