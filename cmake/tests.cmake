# Tests. Beside the code: src/X/*_test.cc is test_X, label `unit`. Across modules: tests/D/*_test.cc is test_tests_D,
# label D; a file *_slow_test.cc goes in a program of its own with the label `slow`, which sanitizer builds leave out.
# tests/D/*_test.py and *_test.sh are tests by themselves. Every test runs in the repository's root, so it opens
# scenarios/ and tests/golden/ by relative path, and finds the program under test in $WEFT_BINARY.

find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(weft_test_environment WEFT_BINARY=${PROJECT_BINARY_DIR}/weft WEFT_LIB_MRC=${PROJECT_BINARY_DIR}/lib_mrc.so
  WEFT_STATE_DIR=${PROJECT_BINARY_DIR}/state WEFT_MUTANTS=${PROJECT_BINARY_DIR}/mutants)

# The headers that nearly every test reads, once for unit tests and once for the others. Under sanitizers unit tests are
# compiled without optimisation, which takes half the time; what they test is compiled as everything else.
set(weft_test_headers <gtest/gtest.h> <algorithm> <array> <cstdint> <cstring> <functional> <map> <memory> <optional> <set>
  <span> <string> <string_view> <utility> <vector>)
foreach(kind IN ITEMS unit across)
  weft_precompile(weft_test_headers_${kind} ${weft_test_headers})
  target_link_libraries(weft_test_headers_${kind} PRIVATE weft_flags GTest::gtest)
endforeach()
if(WEFT_SANITIZE)
  target_compile_options(weft_test_headers_unit PRIVATE -O0)
endif()

function(weft_add_gtest name)
  cmake_parse_arguments(arg "" "TIMEOUT;LABEL" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} weft_flags GTest::gtest GTest::gtest_main)
  set(kind across)
  if(arg_LABEL STREQUAL unit)
    set(kind unit)
    if(WEFT_SANITIZE)
      target_compile_options(${name} PRIVATE -O0)
    endif()
  endif()
  weft_use_precompiled(${name} weft_test_headers_${kind})
  if(NOT arg_LABEL STREQUAL slow)  # those run for longer than it takes to link them
    weft_link_plainly(${name})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  string(REGEX REPLACE "^test_(tests_)?" "" prefix ${name})
  # Real sockets and real time mind their neighbours.
  set(serial FALSE)
  if(name MATCHES "_(net|mrc|ctl)$")
    set(serial TRUE)
  endif()
  gtest_discover_tests(${name}
    TEST_PREFIX ${prefix}.
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    # No list fits in here: what follows one is lost.
    PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${serial}
      ENVIRONMENT WEFT_BINARY=${PROJECT_BINARY_DIR}/weft
      # What controllers say in a test is not for the devices of whoever runs it.
      ENVIRONMENT_MODIFICATION WEFT_STATE_DIR=set:${PROJECT_BINARY_DIR}/state)
endfunction()

function(weft_add_script name)
  cmake_parse_arguments(arg "" "TIMEOUT;LABEL" "COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${weft_test_environment}" SKIP_RETURN_CODE 77)
endfunction()

include(GoogleTest)

foreach(folder IN LISTS weft_folders)
  if(weft_tests_${folder})
    weft_add_gtest(test_${folder} SOURCES ${weft_tests_${folder}} LABEL unit LINK weft_${folder} TIMEOUT 300)
  endif()
endforeach()

file(GLOB entries CONFIGURE_DEPENDS LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/tests/*)
foreach(entry IN LISTS entries)
  get_filename_component(group ${entry} NAME)
  if(NOT IS_DIRECTORY ${entry} OR group STREQUAL fuzz)
    continue()
  endif()
  file(GLOB tests CONFIGURE_DEPENDS ${entry}/*_test.cc)
  file(GLOB support CONFIGURE_DEPENDS ${entry}/*.cc)
  list(FILTER support EXCLUDE REGEX "_test\\.cc$")
  set(slow ${tests})
  list(FILTER slow INCLUDE REGEX "_slow_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_slow_test\\.cc$")
  # What programs link, and nothing else of ours.
  set(link weft_all)
  if(group STREQUAL mrc)
    set(link mrc)
  endif()
  if(tests)
    weft_add_gtest(test_tests_${group} SOURCES ${tests} ${support} LABEL ${group} LINK ${link} TIMEOUT 900)
  endif()
  if(slow)
    weft_add_gtest(test_tests_${group}_slow SOURCES ${slow} ${support} LABEL slow LINK ${link} TIMEOUT 1800)
  endif()
  # What builds networks of its own minds its neighbours.
  set(alone FALSE)
  if(group MATCHES "^(net|mrc|wireshark|conformance)$")
    set(alone TRUE)
  endif()
  file(GLOB scripts CONFIGURE_DEPENDS ${entry}/*_test.py ${entry}/*_test.sh)
  foreach(script IN LISTS scripts)
    get_filename_component(name ${script} NAME_WE)
    if(script MATCHES "\\.py$")
      weft_add_script(${group}.${name} COMMAND ${Python3_EXECUTABLE} ${script} LABEL ${group} TIMEOUT 900)
    else()
      weft_add_script(${group}.${name} COMMAND bash ${script} LABEL ${group} TIMEOUT 900)
    endif()
    set_tests_properties(${group}.${name} PROPERTIES RUN_SERIAL ${alone})
  endforeach()
endforeach()

# Libraries that are wrong in one thing each, which `weft conformance` must find.
file(GLOB mutants CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/conformance/mutants/*.cc)
foreach(source IN LISTS mutants)
  get_filename_component(name ${source} NAME_WE)
  add_library(mutant_${name} SHARED ${source})
  target_link_libraries(mutant_${name} PRIVATE weft_flags mrc ${CMAKE_DL_LIBS})
  # They name none of its functions, and must bring it along.
  target_link_options(mutant_${name} PRIVATE -Wl,--no-as-needed)
  set_target_properties(mutant_${name} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/mutants)
endforeach()
