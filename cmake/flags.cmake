# Compiler flags, in one interface library that everything of ours links: weft_flags.
# WEFT_SANITIZE  ""|"address,undefined"|"thread": no recovery, frame pointers kept.
# WEFT_FUZZ      coverage for libFuzzer in every file (clang only).
# WEFT_LTO       interprocedural optimisation of what we ship and measure (g++ only).

set(WEFT_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=; empty for none")
option(WEFT_FUZZ "Build the fuzz targets with libFuzzer instead of the tests" OFF)
option(WEFT_LTO "Link-time optimisation of the weft program and the benchmarks" OFF)

# One compilation serves the program and lib_mrc.so. Nobody puts another function in the place of ours: the compiler may
# inline them.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(weft_flags INTERFACE)
target_compile_features(weft_flags INTERFACE cxx_std_20)
target_include_directories(weft_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(weft_flags INTERFACE
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=  # no path of the machine that built it in what is shipped
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Werror -ffp-contract=off
  -fno-semantic-interposition)

if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE
    -fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # The checks that the sanitizers insert make g++ 12 see reads of uninitialised values that are not there.
    target_compile_options(weft_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

if(WEFT_FUZZ)
  target_compile_options(weft_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# weft_optimise(TARGET): across files, where WEFT_LTO asks for it. Libraries keep fat objects, which hold both forms,
# so the program is optimised as a whole, and a test, for which weft_link_plainly(TARGET) was called, links in a second.
function(weft_link_plainly target)
  if(WEFT_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_link_options(${target} PRIVATE -fno-lto)
  endif()
endfunction()
function(weft_optimise target)
  if(WEFT_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT WEFT_SANITIZE)
    target_compile_options(${target} PRIVATE -flto=auto -ffat-lto-objects)
    target_link_options(${target} PRIVATE -flto=auto)
  endif()
endfunction()

# weft_hasten_flags(SOURCES...): CLI11 is ten seconds of optimising for each file that includes it. Under sanitizers nobody
# measures the parsing of flags, so those files are compiled without.
function(weft_hasten_flags)
  if(NOT WEFT_SANITIZE)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    if(EXISTS ${source})
      file(STRINGS ${source} included REGEX "^#include (<CLI/|\"cli/argument_checks)" LIMIT_COUNT 1)
      if(included)
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -O0)
      endif()
    endif()
  endforeach()
endfunction()

# One cache for all clones: paths count from the root of each. The sloppiness is what precompiled headers need.
find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_SLOPPINESS=pch_defines,time_macros ${WEFT_CCACHE})
endif()

# weft_precompile(TARGET HEADERS...): an object library whose precompiled headers programs take with
# weft_use_precompiled(PROGRAM TARGET). g++ refuses headers that were compiled with other options, and the build fails.
function(weft_keep_precompiled_name target)
  # ccache reads preprocessed source, in which the name of the precompiled header has to stay.
  if(WEFT_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()
function(weft_precompile target)
  set(source ${PROJECT_BINARY_DIR}/${target}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${target} OBJECT ${source})
  # As programs are compiled.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIE)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  weft_keep_precompiled_name(${target})
endfunction()
function(weft_use_precompiled program target)
  target_precompile_headers(${program} REUSE_FROM ${target})
  weft_keep_precompiled_name(${program})
endfunction()
