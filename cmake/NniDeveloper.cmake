# Settings of a build of this project itself. Nothing here reaches a project that uses the library.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

# Compiler cache: paths below the source tree are hashed as relative ones and the working directory is not
# hashed, so a second clone of the same commit finds everything.
find_program(NNI_CCACHE ccache)
if(NNI_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${NNI_CCACHE}")
endif()

# A faster linker where there is one. g++ before 12.1 does not know mold.
find_program(NNI_MOLD mold)
if(NNI_MOLD AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-fuse-ld")
  add_link_options(-fuse-ld=mold)
endif()

if(NNI_SANITIZE)
  add_compile_options(-fsanitize=${NNI_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${NNI_SANITIZE})
endif()
