# LLVM and MLIR 22 of Debian's packages: their shared libraries, or, for targets with the property
# SHEAF_STATIC_MLIR, the static ones; one precompiled header for all translation units that include
# MLIR.
list(APPEND CMAKE_PREFIX_PATH /usr/lib/llvm-22)
find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
# mlir_tablegen takes its include paths from the directory property.
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})

add_library(sheaf_mlir INTERFACE)
target_include_directories(sheaf_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_include_directories(sheaf_mlir SYSTEM INTERFACE ${CMAKE_BINARY_DIR})
set(static $<BOOL:$<TARGET_PROPERTY:SHEAF_STATIC_MLIR>>)
target_link_libraries(sheaf_mlir INTERFACE $<$<NOT:${static}>:MLIR> $<$<NOT:${static}>:LLVM>
                                           $<${static}:sheaf_mlir_static>)

# The linker takes what is used of all of them. Debian's LLVM is built with zstd and zlib, and its
# packages bring the first without the file for linking.
add_library(sheaf_mlir_static INTERFACE)
file(GLOB archives ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
find_library(ZSTD_LIBRARY NAMES zstd libzstd.so.1 REQUIRED)
target_link_libraries(sheaf_mlir_static INTERFACE -Wl,--start-group ${archives} -Wl,--end-group
                                                  ${ZSTD_LIBRARY} ZLIB::ZLIB)

if(SHEAF_SANITIZE MATCHES "address")
  set(address_first ${CMAKE_SOURCE_DIR}/cmake/pch_address.h)
endif()
if(SHEAF_TESTS)
  set(tests_too <gtest/gtest.h>)
endif()
_sheaf_pch(sheaf_pch OPTIONS ${run_once}
           HEADERS ${address_first} ${CMAKE_SOURCE_DIR}/cmake/pch.h ${tests_too})
target_link_libraries(sheaf_pch PUBLIC sheaf_mlir)
if(SHEAF_TESTS)
  target_link_libraries(sheaf_pch PRIVATE GTest::gtest)
endif()
add_dependencies(sheaf_pch sheaf_ir_gen)
