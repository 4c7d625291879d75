# llama.cpp as tools/setup left it: static libraries and headers, pinned to one version.
#
# pallas_llama_cpp carries them in link order. Its include folders are llama.cpp's public headers,
# its `common` library, what that vendors, and, last, the internal headers (llama-kv-cache.h and
# others) that one source file of src/engine_llama needs; tools/check_layers keeps it at one file.
include_guard()

set(src "${PALLAS_LLAMA_DIR}/src")
set(built "${PALLAS_LLAMA_DIR}/build")

set(libraries
  "${built}/common/libllama-common.a"
  "${built}/common/libllama-common-base.a"
  "${built}/src/libllama.a"
  "${built}/ggml/src/libggml.a"
  "${built}/ggml/src/libggml-cpu.a")
# With PALLAS_CUDA=1 tools/setup also leaves the CUDA backend here. Nobody has tested it.
set(cuda "${built}/ggml/src/ggml-cuda/libggml-cuda.a")
if(EXISTS "${cuda}")
  list(APPEND libraries "${cuda}")
endif()
list(APPEND libraries
  "${built}/ggml/src/libggml-base.a"
  "${built}/vendor/cpp-httplib/libcpp-httplib.a")

foreach(file "${src}/include/llama.h" ${libraries})
  if(NOT EXISTS "${file}")
    message(FATAL_ERROR "${file} is missing. Run tools/setup, or configure with -DPALLAS_WITH_LLAMA=OFF.")
  endif()
endforeach()

add_library(pallas_llama_cpp INTERFACE)
target_include_directories(pallas_llama_cpp SYSTEM INTERFACE
  "${src}/include" "${src}/ggml/include" "${src}/common" "${src}/vendor" "${src}/src")
target_link_libraries(pallas_llama_cpp INTERFACE ${libraries} Threads::Threads ${CMAKE_DL_LIBS})
if(EXISTS "${cuda}")
  find_package(CUDAToolkit REQUIRED)
  target_link_libraries(pallas_llama_cpp INTERFACE CUDA::cudart CUDA::cublas CUDA::cuda_driver)
endif()
