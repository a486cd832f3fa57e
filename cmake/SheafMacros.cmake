# sheaf_library(NAME [MLIR] SOURCES a.cpp ... [LINK lib ...]): a static library of this project.
# sheaf_executable(NAME [MLIR] SOURCES ... [LINK ...]): a program.
# sheaf_test(NAME [MLIR] SOURCES ... [LINK ...]): a GoogleTest program, each of its tests known to CTest.
# MLIR: the sources include MLIR or LLVM headers (adds their include paths, the shared precompiled
# header and the shared libraries). Only targets that say so can include them.

add_library(sheaf_flags INTERFACE)
target_include_directories(sheaf_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(sheaf_flags INTERFACE -Wall -Wextra -Werror)
if(SHEAF_SANITIZE)
  target_compile_options(sheaf_flags INTERFACE -fsanitize=${SHEAF_SANITIZE} -fno-omit-frame-pointer
                                               -fno-sanitize-recover=all -g1)
  # Generated code has no type prefix before its functions, which that check would read.
  if(SHEAF_SANITIZE MATCHES undefined)
    target_compile_options(sheaf_flags INTERFACE -fno-sanitize=function)
  endif()
  target_link_options(sheaf_flags INTERFACE -fsanitize=${SHEAF_SANITIZE})
endif()

function(_sheaf_target name)
  cmake_parse_arguments(ARG "MLIR" "" "SOURCES;LINK" ${ARGN})
  target_sources(${name} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC sheaf_flags ${ARG_LINK})
  if(ARG_MLIR)
    target_link_libraries(${name} PUBLIC sheaf_mlir)
    target_precompile_headers(${name} REUSE_FROM sheaf_pch)
    # The precompiled header is for position independent libraries; programs must match it.
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
    add_dependencies(${name} sheaf_ir_gen)
  endif()
endfunction()

# A program under a sanitizer is run once or twice: its own files are not optimised, only the
# libraries are. (The precompiled header of MLIR wants the level that it was made at.)
function(_sheaf_program name)
  _sheaf_target(${name} ${ARGN})
  if(SHEAF_SANITIZE AND NOT "MLIR" IN_LIST ARGN)
    target_compile_options(${name} PRIVATE -O0)
  endif()
endfunction()

function(sheaf_library name)
  add_library(${name} STATIC)
  _sheaf_target(${name} ${ARGN})
endfunction()

function(sheaf_executable name)
  add_executable(${name})
  _sheaf_program(${name} ${ARGN})
  # What is kept in a store is good for one build of the compiler (compiler/driver/StoredCode.cpp).
  target_link_options(${name} PRIVATE -Wl,--build-id=sha1)
endfunction()

function(sheaf_test name)
  add_executable(${name})
  _sheaf_program(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main Threads::Threads)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()
