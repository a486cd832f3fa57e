# LLVM and MLIR 22, the shared libraries of Debian's packages; one precompiled header for all
# translation units that include MLIR.
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
target_link_libraries(sheaf_mlir INTERFACE MLIR LLVM)

if(SHEAF_SANITIZE MATCHES "address")
  set(address_first ${CMAKE_SOURCE_DIR}/cmake/pch_address.h)
endif()
if(SHEAF_TESTS)
  set(tests_too <gtest/gtest.h>)
endif()
_sheaf_pch(sheaf_pch HEADERS ${address_first} ${CMAKE_SOURCE_DIR}/cmake/pch.h ${tests_too})
target_link_libraries(sheaf_pch PUBLIC sheaf_mlir)
if(SHEAF_TESTS)
  target_link_libraries(sheaf_pch PRIVATE GTest::gtest)
endif()
add_dependencies(sheaf_pch sheaf_ir_gen)
