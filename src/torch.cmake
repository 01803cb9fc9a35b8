# The target shardmark_torch: LibTorch with CUDA, CUDA's runtime, NCCL, MPI, hwloc and xxHash.
# A Torch of the site, which CMAKE_PREFIX_PATH leads to, goes before .venv: the prefix of LibTorch's archive, what Spack or a
# module sets, or what `python3 -c 'import torch; print(torch.utils.cmake_prefix_path)'` prints. Its own package,
# find_package(Torch), asks for a whole CUDA toolkit with nvcc; no .cu file is compiled here, so its files are named instead.
find_package(MPI REQUIRED COMPONENTS C)
find_path(HWLOC_INCLUDE hwloc.h REQUIRED)
find_library(HWLOC_LIBRARY hwloc REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)    # the library is its header

file(GLOB _site "${SHARDMARK_VENV}/lib/python3*/site-packages")
find_path(SHARDMARK_TORCH_CMAKE Torch/TorchConfig.cmake PATHS "${_site}/torch" PATH_SUFFIXES share/cmake
          DOC "folder share/cmake of LibTorch")
if(NOT SHARDMARK_TORCH_CMAKE)
  message(FATAL_ERROR "no Torch in CMAKE_PREFIX_PATH and none in ${SHARDMARK_VENV}: name the site's own (jobs/README.md), run "
          "jobs/bootstrap.sh, or configure with -DSHARDMARK_ANALYSIS_ONLY=ON")
endif()
get_filename_component(_torch "${SHARDMARK_TORCH_CMAKE}/../.." ABSOLUTE)
if(NOT EXISTS "${_torch}/lib/libtorch_cuda.so")
  message(FATAL_ERROR "the Torch in ${_torch} was built without CUDA, and shardmark is compiled and linked with its CUDA part, "
          "for CPU ranks as well: name one with CUDA (no GPU need be there), or configure with -DSHARDMARK_ANALYSIS_ONLY=ON")
endif()
file(STRINGS ${CMAKE_SOURCE_DIR}/jobs/requirements.txt _tested REGEX "^torch==")
string(REPLACE "torch==" "" _tested "${_tested}")
include("${SHARDMARK_TORCH_CMAKE}/Torch/TorchConfigVersion.cmake")  # sets PACKAGE_VERSION
if(NOT PACKAGE_VERSION VERSION_EQUAL _tested)
  message(WARNING "${_torch} is Torch ${PACKAGE_VERSION}; shardmark is tested with ${_tested}, and what changed in between "
          "may not compile")
endif()

# CUDA's runtime and NCCL: those that were installed beside this Torch (PyPI's packages nvidia/*), else the site's.
file(GLOB _beside "${_torch}/../nvidia/*")
list(TRANSFORM _beside REPLACE "/torch/\\.\\./" "/")
function(find_of_cuda name header)  # header, then the library's names: sets NAME_INCLUDE and NAME_LIBRARY
  find_path(${name}_INCLUDE ${header} PATHS ${_beside} PATH_SUFFIXES include NO_DEFAULT_PATH)
  find_library(${name}_LIBRARY NAMES ${ARGN} PATHS ${_beside} PATH_SUFFIXES lib NO_DEFAULT_PATH)
  set(_places HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda)
  find_path(${name}_INCLUDE ${header} ${_places} PATH_SUFFIXES include targets/x86_64-linux/include)
  find_library(${name}_LIBRARY NAMES ${ARGN} ${_places} PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib)
  if(NOT ${name}_INCLUDE OR NOT ${name}_LIBRARY)
    message(FATAL_ERROR "${header} and its library ${ARGV2} are neither beside ${_torch} nor in CMAKE_PREFIX_PATH: add their "
            "prefix to it, that of the version which this Torch was built with")
  endif()
endfunction()
find_of_cuda(SHARDMARK_CUDART cuda_runtime_api.h cudart libcudart.so.13 libcudart.so.12)
find_of_cuda(SHARDMARK_NCCL nccl.h nccl libnccl.so.2)

add_library(shardmark_torch INTERFACE)
target_include_directories(shardmark_torch SYSTEM INTERFACE ${_torch}/include ${_torch}/include/torch/csrc/api/include
  ${SHARDMARK_CUDART_INCLUDE} ${SHARDMARK_NCCL_INCLUDE} ${HWLOC_INCLUDE} ${XXHASH_INCLUDE})
set(_torch_libs torch torch_cpu c10 torch_cuda c10_cuda)
list(TRANSFORM _torch_libs PREPEND ${_torch}/lib/lib)
list(TRANSFORM _torch_libs APPEND .so)
# libstdc++ first: libtorch exports parts of an older one, whose std::filesystem::remove_all jumps to address 0.
target_link_libraries(shardmark_torch INTERFACE -Wl,--no-as-needed stdc++ ${_torch_libs}
  ${SHARDMARK_NCCL_LIBRARY} ${SHARDMARK_CUDART_LIBRARY} -Wl,--as-needed MPI::MPI_C ${HWLOC_LIBRARY} ${CMAKE_DL_LIBS})
get_filename_component(_nccl ${SHARDMARK_NCCL_LIBRARY} DIRECTORY)
get_filename_component(_cudart ${SHARDMARK_CUDART_LIBRARY} DIRECTORY)
target_link_options(shardmark_torch INTERFACE -Wl,-rpath,${_torch}/lib:${_nccl}:${_cudart})
# NDEBUG: the wheel was built with it, and without it some of its classes have other members (at::RecordFunction).
target_compile_definitions(shardmark_torch INTERFACE OMPI_SKIP_MPICXX NDEBUG)
