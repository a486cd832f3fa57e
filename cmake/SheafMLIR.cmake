# LLVM and MLIR 22, the shared libraries of Debian's packages; one precompiled header for all
# translation units that include MLIR (it halves the time of a clean build).
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

file(WRITE ${CMAKE_BINARY_DIR}/pch_stub.cpp "")
add_library(sheaf_pch OBJECT ${CMAKE_BINARY_DIR}/pch_stub.cpp)
target_link_libraries(sheaf_pch PUBLIC sheaf_mlir sheaf_flags)
if(SHEAF_SANITIZE MATCHES "address")
  target_precompile_headers(sheaf_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch_address.h)
endif()
target_precompile_headers(sheaf_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)
