# Tests: tests/unit (no torch, no MPI), tests/threads (the same, in a program of its own for thread sanitizers), tests/mpi and tests/gpu (torch + MPI, run on several rank counts), and scripts.
# A file tests/mpi/x.cpp names its rank counts in its first lines: "// RANKS 1 2 4".
find_package(GTest REQUIRED)
include(GoogleTest)

set(_paths SHARDMARK_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data" SHARDMARK_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
# Scripts first, faults/ and cluster/ before cli/: on a fresh clone ctest knows no times, and the longest have to start first.
file(GLOB _scripts CONFIGURE_DEPENDS tests/cli/*.sh tests/faults/*.sh tests/cluster/*.sh)
list(REVERSE _scripts)
foreach(script ${_scripts})
  file(STRINGS ${script} _needs REGEX "^# NEEDS torch" LIMIT_COUNT 1)
  if(SHARDMARK_ANALYSIS_ONLY AND _needs)
    continue()
  endif()
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/tests ${script})
  string(REPLACE ".sh" "" name ${name})
  add_test(NAME ${name} COMMAND bash ${script} $<TARGET_FILE:shardmark> WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  get_filename_component(_label ${name} DIRECTORY)
  file(STRINGS ${script} _quick REGEX "^# QUICK$" LIMIT_COUNT 1)
  if(_quick)
    set(_quick ";quick")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${_label}${_quick}" TIMEOUT 1800 SKIP_RETURN_CODE 77)
  file(STRINGS ${script} _alone REGEX "^# ALONE" LIMIT_COUNT 1)  # and why, as in "# ALONE it compares speeds."
  if(_alone)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
  if(_label MATCHES "faults|cluster")  # the long form: ctest -C soak
    add_test(NAME soak/${name} COMMAND bash ${script} $<TARGET_FILE:shardmark>
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} CONFIGURATIONS soak)
    set_tests_properties(soak/${name} PROPERTIES LABELS soak TIMEOUT 14400 SKIP_RETURN_CODE 77 RUN_SERIAL ON
                         ENVIRONMENT "SOAK=1")
  endif()
endforeach()

# The seconds after which a test program counts as stuck. They are many times what it takes alone: beside other work
# on all cores the longest ones take eight minutes.
set(_limit 1800)
if(SHARDMARK_SANITIZE)
  set(_limit 7200)
endif()

# The tests' own code runs once and is most of what there is to compile. Without optimization it takes half the time.
set(SHARDMARK_QUICKLY_COMPILED -O0)

file(GLOB _unit CONFIGURE_DEPENDS tests/unit/*.cpp)
# Where bytes of damaged files go is watched by sanitizers in every build: the tests of base and schema are a program of
# their own, without those of kills and full disks. `make sanitize` watches all.
if(NOT SHARDMARK_SANITIZE AND NOT SHARDMARK_FUZZ)
  file(GLOB _sanitized CONFIGURE_DEPENDS tests/unit/base_*.cpp tests/unit/schema_*.cpp)
  list(FILTER _sanitized EXCLUDE REGEX schema_faults_test)
  list(REMOVE_ITEM _unit ${_sanitized})
  file(GLOB _tested CONFIGURE_DEPENDS src/base/*.cpp src/schema/*.cpp)
  add_library(unit_sanitized_sources OBJECT ${_tested})
  target_link_libraries(unit_sanitized_sources PUBLIC shardmark_options)
  target_compile_options(unit_sanitized_sources PUBLIC ${SHARDMARK_SANITIZERS})
  target_precompile_headers(unit_sanitized_sources PRIVATE src/base/pch.h)
  add_executable(unit_sanitized ${_sanitized})
  target_link_libraries(unit_sanitized PRIVATE unit_sanitized_sources GTest::gtest_main GTest::gmock)
  target_compile_definitions(unit_sanitized PRIVATE ${_paths})
  target_compile_options(unit_sanitized PRIVATE ${SHARDMARK_QUICKLY_COMPILED})
  target_precompile_headers(unit_sanitized PRIVATE tests/pch.h)
  target_link_options(unit_sanitized PRIVATE ${SHARDMARK_SANITIZERS})
  add_test(NAME unit/sanitized COMMAND unit_sanitized)
  set_tests_properties(unit/sanitized PROPERTIES LABELS unit TIMEOUT ${_limit})
endif()
# The pure parts of layers that are not built without torch.
add_executable(unit_tests ${_unit} src/sweep/round_counts.cpp src/sweep/search.cpp src/sweep/stopping.cpp src/sweep/time_left.cpp src/executor/optim/lr_scheduler.cpp)
target_link_libraries(unit_tests PRIVATE shardmark_analysis_side GTest::gtest_main GTest::gmock)
target_compile_options(unit_tests PRIVATE ${SHARDMARK_QUICKLY_COMPILED})
target_compile_definitions(unit_tests PRIVATE ${_paths})
target_precompile_headers(unit_tests PRIVATE tests/pch.h)
gtest_discover_tests(unit_tests TEST_FILTER -Playbook.* DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 PROPERTIES LABELS unit TIMEOUT ${_limit})
# In one process, because they share the predictions of all rows, which take half a minute.
add_test(NAME unit/playbook COMMAND unit_tests --gtest_filter=Playbook.*)
set_tests_properties(unit/playbook PROPERTIES LABELS unit TIMEOUT ${_limit})

# tests/threads, under ThreadSanitizer: a second copy of the few sources that they need; in a build with other sanitizers
# under those.
file(GLOB _threads CONFIGURE_DEPENDS tests/threads/*.cpp)
add_executable(threads_tests ${_threads})
target_link_libraries(threads_tests PRIVATE shardmark_options GTest::gtest_main GTest::gmock)
if(SHARDMARK_SANITIZE OR SHARDMARK_FUZZ)
  target_link_libraries(threads_tests PRIVATE shardmark_analysis_side)
else()
  file(GLOB _tested CONFIGURE_DEPENDS src/base/*.cpp src/comm/watch/*.cpp src/comm/pt2pt/engine/*.cpp)
  target_sources(threads_tests PRIVATE ${_tested})
  target_compile_options(threads_tests PRIVATE -O1 -g1 -fsanitize=thread)
  target_link_options(threads_tests PRIVATE -fsanitize=thread)
endif()
add_test(NAME threads/all COMMAND bash ${CMAKE_SOURCE_DIR}/tests/threads/run.sh $<TARGET_FILE:threads_tests>)
set_tests_properties(threads/all PROPERTIES LABELS threads TIMEOUT ${_limit} SKIP_RETURN_CODE 77)

if(NOT SHARDMARK_ANALYSIS_ONLY)
  set(_mpirun ${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
  file(GLOB _mpi CONFIGURE_DEPENDS tests/mpi/*_test.cpp)
  add_library(fake_nvml SHARED tests/mpi/fake_nvml.cpp)
  # Open MPI keeps memory to the end, torch its registries.
  set(_sanitizer "ASAN_OPTIONS=detect_leaks=0")
  # Without a search for networks, which takes a third of the time to start.
  set(_mpirun ${_mpirun} --mca pml ob1)
  # A program over MPI and torch, on all ranks of a world: runs the tests of the files that it is told.
  add_library(rank_tests_main OBJECT tests/mpi/main.cpp)
  target_link_libraries(rank_tests_main PRIVATE MPI::MPI_C GTest::gtest)
  target_compile_definitions(rank_tests_main PRIVATE OMPI_SKIP_MPICXX)
  function(add_rank_tests name)
    add_executable(${name} ${ARGN} $<TARGET_OBJECTS:rank_tests_main>)
    target_link_libraries(${name} PRIVATE shardmark_all GTest::gtest GTest::gmock)
    precompiled(${name} TORCH)
    target_compile_definitions(${name} PRIVATE ${_paths} FAKE_NVML="$<TARGET_FILE:fake_nvml>")
  endfunction()
  # It compiles CUDA texts as C++, with CUDA's words as macros.
  set_source_files_properties(tests/mpi/kernels_test.cpp tests/mpi/fused_strategies_test.cpp tests/mpi/fp8_test.cpp
    tests/mpi/cross_entropy_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_rank_tests(rank_tests ${_mpi})
  foreach(source ${_mpi})
    get_filename_component(name ${source} NAME_WE)
    file(STRINGS ${source} _ranks REGEX "^//.*RANKS [0-9]" LIMIT_COUNT 1)
    string(REGEX REPLACE ".*RANKS " "" _ranks "${_ranks}")
    string(REGEX MATCHALL "[0-9]+" _ranks "${_ranks}")
    if(NOT _ranks)
      message(FATAL_ERROR "${source} does not say on how many ranks it runs: // RANKS 1 2 4")
    endif()
    foreach(n ${_ranks})
      add_test(NAME mpi/${name}_${n} COMMAND ${_mpirun} -n ${n} $<TARGET_FILE:rank_tests> ${name}.cpp)
      set(_quick "")
      if(n EQUAL 2 OR _ranks STREQUAL "1")
        set(_quick ";quick")
      endif()
      set_tests_properties(mpi/${name}_${n} PROPERTIES LABELS "mpi${_quick}" TIMEOUT ${_limit} PROCESSORS ${n}
                           ENVIRONMENT "OMP_NUM_THREADS=1;${_sanitizer}")
    endforeach()
  endforeach()

  # tests/gpu is one program, so that a bundle of it is small. emulated: two ranks share a GPU.
  file(GLOB _gpu CONFIGURE_DEPENDS tests/gpu/*_test.cpp)
  add_rank_tests(gpu_tests ${_gpu})
  add_test(NAME gpu/all_1 COMMAND ${_mpirun} -n 1 $<TARGET_FILE:gpu_tests>)
  add_test(NAME gpu/all_2 COMMAND ${_mpirun} -n 2 $<TARGET_FILE:gpu_tests>)
  add_test(NAME gpu/emulated_2 COMMAND ${_mpirun} -n 1 -x NCCL_HOSTID=a $<TARGET_FILE:gpu_tests>
                                       : -n 1 -x NCCL_HOSTID=b $<TARGET_FILE:gpu_tests>)
  set_tests_properties(gpu/all_1 gpu/all_2 gpu/emulated_2 PROPERTIES LABELS gpu TIMEOUT ${_limit} PROCESSORS 2
                       ENVIRONMENT "OMP_NUM_THREADS=1;${_sanitizer}")
  set_tests_properties(gpu/emulated_2 PROPERTIES LABELS "gpu;emulated")
endif()

# tests/fuzz: with libFuzzer (make fuzz) a program that goes on by itself; without it, a replay of the corpus and of
# seeded damage to it.
file(GLOB _targets CONFIGURE_DEPENDS tests/fuzz/*_fuzz.cpp)
foreach(source ${_targets})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "_fuzz" "" _corpus ${name})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE shardmark_analysis_side)
  if(SHARDMARK_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE tests/fuzz/replay.cpp)
    file(STRINGS ${source} _replays REGEX "^// REPLAYS [0-9]+$" LIMIT_COUNT 1)
    string(REPLACE "// REPLAYS " "" _replays "${_replays}")
    set(_files ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${_corpus})
    if(NOT IS_DIRECTORY ${_files})
      set(_files ${CMAKE_SOURCE_DIR}/tests/data/${_corpus})
    endif()
    add_test(NAME fuzz/${_corpus} COMMAND ${name} ${_files} ${_replays})
    set_tests_properties(fuzz/${_corpus} PROPERTIES LABELS fuzz TIMEOUT ${_limit})
  endif()
endforeach()
