# A toolchain file for AArch64 Linux: clang with Debian's cross libraries; what is built is run by
# QEMU's emulator. scripts/aarch64.sh brings what it needs, and sets the emulator's variables.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
# The system's linker knows its own architecture alone.
set(CMAKE_SHARED_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)

# Boost.Context has assembly of its own for each architecture; the headers are the same.
set(Boost_NO_BOOST_CMAKE ON)
set(BOOST_INCLUDEDIR /usr/include)
file(GLOB BOOST_LIBRARYDIR ${CMAKE_CURRENT_LIST_DIR}/../build-aarch64/packages/usr/lib/aarch64-linux-gnu)
