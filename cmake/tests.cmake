# Tests. Beside the code: src/X/*_test.cc is test_X, which ctest runs as a whole, as unit.X (the largest as unit.X.1 and
# unit.X.2), label `unit`. Across modules: tests/D/*_test.cc is test_tests_D, whose test cases are ctest's D.SUITE.CASE,
# label D; a file *_slow_test.cc goes in a program of its own with the label `slow`. tests/D/*_test.py and *_test.sh are
# tests by themselves, D.NAME. Every test runs in the repository's root, so it opens scenarios/ and tests/golden/ by
# relative path, and finds the program under test in $WEFT_BINARY.

find_package(Python3 REQUIRED COMPONENTS Interpreter)
include(GoogleTest)

# Test cases of the cross-module programs that need the machine to themselves: nothing runs beside them. They assert how soon
# something is noticed, guess the time at which a packet was sent, expect an answer within milliseconds, read all packets
# of an interface, or take every process slot there is. Patterns of --gtest_filter.
set(weft_alone_net Hostile/* Plain.* Secured.* *KilledPeer.IsReportedWithinASecond/* *Refused.AClosedPort* RefusedRing.*
  HostPort.* NonceOnTheWire.*)
set(weft_alone_mrc Many.SixtyFourProcesses* Secret.*)
# The same of scripts, as GROUP.NAME: they run scenarios in real time, await answers within a second or two, or look for what
# a killed run leaves, which the next lab removes.
set(weft_alone_scripts cli.ctl_test cli.doctor_test conformance.suite_test net.lab_run_test net.lab_killed_test net.two_hosts_test)
# Long ones whose classes are two entries, GROUP.NAME.1 and .2 (support/run_tests.py).
set(weft_halved_scripts net.lab_test cli.bench_write_test)

# Left out under sanitizers, with the reason: what runs in release and has nothing of our memory at stake, or takes too long.
set(weft_left_out "")
function(weft_leave_out name why)
  set(weft_left_out "${weft_left_out}${name}: ${why}\n" PARENT_SCOPE)
endfunction()
set(weft_release_only_tools "the repository's own scripts")
set(weft_release_only_layers "reads source files only")
set(weft_release_only_wireshark "tests what tshark reads; the bytes are those of unit.wire")
set(weft_release_only_mrc.headers_test "compiles the headers, runs nothing")
set(weft_release_only_mrc.install_test "tests what `make install` puts where")
set(weft_release_only_mrc.verbs_tools_test "starts programs without sanitizers, into which such a library cannot be loaded")
set(weft_release_only_sim.memory_budget_test "a sanitizer's own memory would be measured")
set(weft_release_only_conformance.mutants_test "what is wrong there is the mutant; suite_test runs with our own library")
set(weft_release_only_net.Replay "compares the simulator with the switch; each has its unit tests here")

# Under sanitizers compiling takes twice as long. There tests share precompiled headers, one set for unit tests and one for
# the others, and unit tests are compiled without optimisation; what they test is compiled as everything else. The release
# build compiles each file by itself, which shows an include that is missing, and with all of g++'s warnings, of which some
# are false for precompiled headers.
set(weft_test_headers <gtest/gtest.h> <algorithm> <array> <cstdint> <cstring> <functional> <map> <memory> <optional> <set>
  <span> <string> <string_view> <utility> <vector>)
if(WEFT_SANITIZE)
  foreach(kind IN ITEMS unit across)
    weft_precompile(weft_test_headers_${kind} ${weft_test_headers})
    target_link_libraries(weft_test_headers_${kind} PRIVATE weft_flags GTest::gtest)
  endforeach()
  target_compile_options(weft_test_headers_unit PRIVATE -O0)
endif()

# Each entry has a state directory of its own: what controllers say in one is not for the devices of another.
function(weft_test_environment out name)
  set(${out} WEFT_BINARY=${PROJECT_BINARY_DIR}/weft WEFT_LIB_MRC=${PROJECT_BINARY_DIR}/lib_mrc.so
    WEFT_STATE_DIR=${PROJECT_BINARY_DIR}/state/${name} WEFT_MUTANTS=${PROJECT_BINARY_DIR}/mutants PARENT_SCOPE)
endfunction()

function(weft_add_gtest name)
  cmake_parse_arguments(arg "" "KIND" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} weft_flags GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(WEFT_SANITIZE)
    weft_use_precompiled(${name} weft_test_headers_${arg_KIND})
    target_compile_options(${name} PRIVATE -Wno-array-bounds $<$<STREQUAL:${arg_KIND},unit>:-O0>)
  endif()
endfunction()

# A program as one entry, or two if it has many files.
function(weft_run_whole folder)
  list(LENGTH weft_tests_${folder} files)
  set(parts 1)
  if(files GREATER 12)
    set(parts 2)
  endif()
  foreach(part RANGE 1 ${parts})
    set(entry unit.${folder})
    weft_test_environment(environment ${folder})
    if(parts GREATER 1)
      string(APPEND entry .${part})
      math(EXPR index "${part} - 1")
      list(APPEND environment GTEST_TOTAL_SHARDS=${parts} GTEST_SHARD_INDEX=${index})
    endif()
    add_test(NAME ${entry} COMMAND test_${folder} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${entry} PROPERTIES LABELS unit TIMEOUT 300 ENVIRONMENT "${environment}")
  endforeach()
endfunction()

# The test cases that FILTER names, each an entry of ctest. No property may be a list: what follows its first word is lost.
function(weft_run_cases name)
  cmake_parse_arguments(arg "" "GROUP;LABEL;TIMEOUT;FILTER;SERIAL" "" ${ARGN})
  gtest_discover_tests(${name}
    TEST_PREFIX ${arg_GROUP}.
    TEST_FILTER "${arg_FILTER}"
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL} ${arg_UNPARSED_ARGUMENTS}
      ENVIRONMENT WEFT_BINARY=${PROJECT_BINARY_DIR}/weft
      ENVIRONMENT_MODIFICATION WEFT_STATE_DIR=set:${PROJECT_BINARY_DIR}/state/${arg_GROUP})
endfunction()

function(weft_add_script name)
  cmake_parse_arguments(arg "" "TIMEOUT;LABEL" "COMMAND" ${ARGN})
  weft_test_environment(environment ${name})
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}" SKIP_RETURN_CODE 77
    COST 10)  # before the short ones, where no earlier run has told
endfunction()

foreach(folder IN LISTS weft_folders)
  if(weft_tests_${folder})
    weft_add_gtest(test_${folder} KIND unit SOURCES ${weft_tests_${folder}} LINK weft_${folder})
    weft_link_plainly(test_${folder})
    weft_run_whole(${folder})
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
  file(GLOB scripts CONFIGURE_DEPENDS ${entry}/*_test.py ${entry}/*_test.sh)
  list(FILTER support EXCLUDE REGEX "_test\\.cc$")
  set(slow ${tests})
  list(FILTER slow INCLUDE REGEX "_slow_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_slow_test\\.cc$")
  if(WEFT_SANITIZE AND DEFINED weft_release_only_${group} AND (tests OR scripts))
    weft_leave_out(${group} "${weft_release_only_${group}}")
    continue()
  endif()
  # What programs link, and nothing else of ours.
  set(link weft_all)
  if(group STREQUAL mrc)
    set(link mrc)
  endif()
  if(tests)
    set(program test_tests_${group})
    weft_add_gtest(${program} KIND across SOURCES ${tests} ${support} LINK ${link})
    weft_link_plainly(${program})
    # Those of one program use the same addresses, process slots and state directory: one at a time, beside other tests.
    set(lock "")
    if(group MATCHES "^(net|mrc|ctl)$")
      set(lock RESOURCE_LOCK ${group})
    endif()
    set(rest ${weft_alone_${group}})
    if(weft_alone_${group})
      string(REPLACE ";" ":" filter "${weft_alone_${group}}")
      weft_run_cases(${program} GROUP ${group} LABEL ${group} TIMEOUT 900 SERIAL TRUE FILTER "${filter}")
    endif()
    if(WEFT_SANITIZE AND group STREQUAL net)
      list(APPEND rest Replay.*)
      weft_leave_out(net.Replay "${weft_release_only_net.Replay}")
    endif()
    string(REPLACE ";" ":" filter "${rest}")
    if(filter)
      string(PREPEND filter "-")
    endif()
    weft_run_cases(${program} GROUP ${group} LABEL ${group} TIMEOUT 900 SERIAL FALSE FILTER "${filter}" ${lock})
  endif()
  if(slow AND WEFT_SANITIZE)
    weft_leave_out("${group}, *_slow_test.cc" "ten times slower here")
  elseif(slow)
    # Not linked plainly: they run for longer than it takes to optimise them.
    weft_add_gtest(test_tests_${group}_slow KIND across SOURCES ${slow} ${support} LINK ${link})
    weft_run_cases(test_tests_${group}_slow GROUP ${group}_slow LABEL slow TIMEOUT 1800 SERIAL FALSE)
  endif()
  foreach(script IN LISTS scripts)
    get_filename_component(name ${script} NAME_WE)
    set(name ${group}.${name})
    if(WEFT_SANITIZE AND DEFINED weft_release_only_${name})
      weft_leave_out(${name} "${weft_release_only_${name}}")
      continue()
    endif()
    set(command bash ${script})
    if(script MATCHES "\\.py$")
      set(command ${Python3_EXECUTABLE} ${script})
    endif()
    if(name IN_LIST weft_halved_scripts)
      foreach(part RANGE 1)
        math(EXPR number "${part} + 1")
        weft_add_script(${name}.${number} LABEL ${group} TIMEOUT 900
          COMMAND ${CMAKE_COMMAND} -E env TESTS_PARTS=2 TESTS_PART=${part} ${command})
      endforeach()
    else()
      weft_add_script(${name} COMMAND ${command} LABEL ${group} TIMEOUT 900)
    endif()
    if(name IN_LIST weft_alone_scripts)
      set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
    endif()
  endforeach()
endforeach()

# `make test` prints it.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tests-left-out.txt CONTENT "${weft_left_out}" @ONLY)
if(WEFT_SANITIZE)
  return()
endif()

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
