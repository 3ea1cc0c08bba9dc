# CUDA_HEADERS: the folder of cuda.h, nvrtc.h and nvtx3. The libraries behind them are opened at run time, so a GPU is not needed.
# They come with a CUDA toolkit, or beside torch as the Python package nvidia-cuda-runtime, nvidia-cuda-nvrtc and nvidia-nvtx.
file(GLOB venv_cuda_folders ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu1*/include)
execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import nvidia; print(';'.join(p + '/cu13/include' for p in nvidia.__path__))"
  OUTPUT_VARIABLE python_cuda_folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_path(CUDA_HEADERS NAMES cuda.h HINTS $ENV{CUDA_HOME}/include ${python_cuda_folders} ${venv_cuda_folders}
          PATHS /usr/local/cuda/include)
if(NOT CUDA_HEADERS OR NOT EXISTS ${CUDA_HEADERS}/nvrtc.h OR NOT EXISTS ${CUDA_HEADERS}/nvtx3/nvToolsExt.h)
  message(FATAL_ERROR "cuda.h, nvrtc.h and nvtx3/nvToolsExt.h were not found in one folder: install torch==2.11.* (its CUDA 13 build brings them) into .venv with "
                      "`make setup`, or set CUDA_HOME to a CUDA toolkit, or pass -DCUDA_HEADERS=<folder>")
endif()
