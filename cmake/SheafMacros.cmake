# sheaf_library(NAME [MLIR] [RUN_LONG] [FUZZED] SOURCES a.cpp ... [LINK lib ...]): a static library of
#   this project; RUN_LONG: by tests, so it is optimised under a sanitizer; FUZZED: a fuzzer looks for
#   new ways through it.
# sheaf_executable(NAME [MLIR] SOURCES ... [LINK ...]): a program.
# sheaf_test(NAME [MLIR] SOURCES ... [LINK ...] [NOT_SANITIZED PATTERN] [SANITIZED_SHARE N]): a
#   GoogleTest program, each of its tests known to CTest; under a sanitizer one for CTest, without the
#   tests of that pattern, and of the others one in N.
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

# _sheaf_pch(NAME [OPTIONS option ...] HEADERS header ...): a precompiled header for targets to use
# together, by sheaf_use_pch(TARGET NAME), with the same OPTIONS. Position independent, as libraries
# are, so programs must be, too.
file(WRITE ${CMAKE_BINARY_DIR}/pch_stub.cpp "")
function(_sheaf_pch name)
  cmake_parse_arguments(ARG "" "" "OPTIONS;HEADERS" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/pch_stub.cpp)
  target_link_libraries(${name} PUBLIC sheaf_flags)
  target_compile_options(${name} PUBLIC ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

function(sheaf_use_pch target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC
                                           $<TARGET_PROPERTY:${name},INTERFACE_COMPILE_OPTIONS>)
endfunction()

# Under a sanitizer only what tests run long is optimised: all else takes three times as long to
# compile otherwise. (What is compiled with one precompiled header has one level.)
if(SHEAF_SANITIZE)
  set(run_once -O0)
endif()
# Nor are tests; under an emulator they run long.
if(NOT CMAKE_CROSSCOMPILING)
  set(tested -O0)
endif()
# The coverage that fuzzers go by, of what is linked with -fsanitize=fuzzer-no-link.
if(SHEAF_FUZZ)
  set(fuzzed -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table)
  target_link_options(sheaf_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# That with MLIR's headers is in SheafMLIR.cmake.
_sheaf_pch(sheaf_std_pch HEADERS ${CMAKE_SOURCE_DIR}/cmake/pch_std.h)
if(SHEAF_TESTS)
  _sheaf_pch(sheaf_test_pch OPTIONS ${tested}
             HEADERS ${CMAKE_SOURCE_DIR}/cmake/pch_std.h <gtest/gtest.h>)
  target_link_libraries(sheaf_test_pch PRIVATE GTest::gtest)
endif()
set(sheaf_rarely_run_pch sheaf_std_pch)
if(SHEAF_SANITIZE AND SHEAF_TESTS)
  set(sheaf_rarely_run_pch sheaf_test_pch)
endif()

# What headers instantiate takes longer to compile than what is in most files. Where nobody edits,
# libraries and programs are compiled a dozen files at a time, or as a whole where few processors would
# share them; so names in the unnamed namespaces of one target are different ones. Tests without MLIR,
# which take little, may have fixtures of the same names.
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
set(files_at_a_time 12)
if(processors LESS_EQUAL 4)
  set(files_at_a_time 0) # all of them
endif()
function(sheaf_unity target)
  if(SHEAF_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON
                                               UNITY_BUILD_BATCH_SIZE ${files_at_a_time})
  endif()
endfunction()

# PCH: what is used where MLIR's is not.
function(_sheaf_target name)
  cmake_parse_arguments(ARG "MLIR;RUN_LONG" "PCH" "SOURCES;LINK" ${ARGN})
  target_sources(${name} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC sheaf_flags ${ARG_LINK})
  if(ARG_MLIR)
    target_link_libraries(${name} PUBLIC sheaf_mlir)
    if(ARG_RUN_LONG AND SHEAF_SANITIZE)
      foreach(header ${address_first} ${CMAKE_SOURCE_DIR}/cmake/pch.h) # as sheaf_pch has them
        target_compile_options(${name} PRIVATE "SHELL:-include ${header}")
      endforeach()
    else()
      sheaf_use_pch(${name} sheaf_pch)
    endif()
    add_dependencies(${name} sheaf_ir_gen)
  elseif(ARG_PCH)
    sheaf_use_pch(${name} ${ARG_PCH})
  endif()
endfunction()

function(sheaf_library name)
  add_library(${name} STATIC)
  cmake_parse_arguments(ARG "FUZZED" "" "" ${ARGN})
  set(pch ${sheaf_rarely_run_pch})
  if(ARG_FUZZED OR "RUN_LONG" IN_LIST ARGN)
    set(pch sheaf_std_pch)
  endif()
  # No precompiled header has its level: that of tests has GoogleTest's names as well.
  if(ARG_FUZZED AND SHEAF_FUZZ)
    set(pch)
    target_compile_options(${name} PRIVATE
      ${fuzzed} ${run_once} "SHELL:-include ${CMAKE_SOURCE_DIR}/cmake/pch_std.h")
  endif()
  _sheaf_target(${name} ${ARG_UNPARSED_ARGUMENTS} PCH ${pch})
  sheaf_unity(${name})
endfunction()

function(sheaf_executable name)
  add_executable(${name})
  _sheaf_target(${name} ${ARGN})
  sheaf_unity(${name})
  if(NOT "MLIR" IN_LIST ARGN)
    target_compile_options(${name} PRIVATE ${run_once})
  endif()
  # What is kept in a store is good for one build of the compiler (compiler/driver/StoredCode.cpp).
  target_link_options(${name} PRIVATE -Wl,--build-id=sha1)
endfunction()

function(sheaf_test name)
  cmake_parse_arguments(ARG "" "NOT_SANITIZED;SANITIZED_SHARE" "" ${ARGN})
  add_executable(${name})
  _sheaf_target(${name} ${ARG_UNPARSED_ARGUMENTS} PCH sheaf_test_pch)
  if("MLIR" IN_LIST ARGN)
    sheaf_unity(${name})
  else()
    target_compile_options(${name} PRIVATE ${tested})
  endif()
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main Threads::Threads)
  if(SHEAF_SANITIZE)
    # Starting a program takes a sanitizer longer than most tests.
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1 --gtest_filter=-${ARG_NOT_SANITIZED})
    set_tests_properties(${name} PROPERTIES TIMEOUT 900)
    if(ARG_SANITIZED_SHARE)
      set_tests_properties(${name} PROPERTIES
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SANITIZED_SHARE};GTEST_SHARD_INDEX=0")
    endif()
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
  endif()
endfunction()

# sheaf_install(TARGET ARGUMENTS ...): install(TARGETS), as a part of the target sheaf_package.
function(sheaf_install target)
  install(TARGETS ${target} ${ARGN})
  add_dependencies(sheaf_package ${target})
  set_property(TARGET sheaf_package APPEND PROPERTY FILES "\"$<TARGET_FILE:${target}>\"")
endfunction()
