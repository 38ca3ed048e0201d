# The library: one interface target per component, and the same bodies compiled once.
#
#   nni::nni       core, coroutines, experiment, trials as callables
#   nni::sqlite    records in SQLite
#   nni::http      HTTP and WebSocket server, HTTP client
#   nni::process   trials as processes, the keeper
#   nni::all       everything that this build has
#   nni::compiled  the same with the bodies in a static library
#   nni::default   whichever of the last two this build uses for its own programs (not installed)

set(nni_known_components sqlite http process)
foreach(component IN LISTS NNI_COMPONENTS)
  if(NOT component IN_LIST nni_known_components)
    list(JOIN nni_known_components ", " known)
    message(FATAL_ERROR "NNI_COMPONENTS: nni has no component \"${component}\"; it has ${known}")
  endif()
endforeach()

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)

file(GLOB_RECURSE nni_headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "include/nni/*.hpp")
set(nni_bodies ${nni_headers})
list(FILTER nni_bodies INCLUDE REGEX "_inl\\.hpp$")
list(FILTER nni_headers EXCLUDE REGEX "_inl\\.hpp$")
list(TRANSFORM nni_headers PREPEND "${PROJECT_SOURCE_DIR}/")
list(TRANSFORM nni_bodies PREPEND "${PROJECT_SOURCE_DIR}/")

function(nni_component name)
  add_library(nni_${name} INTERFACE)
  add_library(nni::${name} ALIAS nni_${name})
  set_target_properties(nni_${name} PROPERTIES EXPORT_NAME ${name})
endfunction()

nni_component(nni)
target_compile_features(nni_nni INTERFACE cxx_std_20)
target_link_libraries(nni_nni INTERFACE Boost::headers Boost::json Threads::Threads)
target_sources(nni_nni INTERFACE
  FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${nni_headers}
  FILE_SET bodies TYPE HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${nni_bodies})

nni_component(all)
target_link_libraries(nni_all INTERFACE nni_nni)

if("sqlite" IN_LIST NNI_COMPONENTS)
  find_package(SQLite3 REQUIRED)
  nni_component(sqlite)
  target_link_libraries(nni_sqlite INTERFACE nni_nni SQLite::SQLite3)
  target_compile_definitions(nni_sqlite INTERFACE NNI_WITH_SQLITE=1)
  target_link_libraries(nni_all INTERFACE nni_sqlite)
endif()

if("http" IN_LIST NNI_COMPONENTS)
  nni_component(http)
  target_link_libraries(nni_http INTERFACE nni_nni)
  target_compile_definitions(nni_http INTERFACE NNI_WITH_HTTP=1)
  target_link_libraries(nni_all INTERFACE nni_http)
endif()

if("process" IN_LIST NNI_COMPONENTS)
  if(NOT TARGET nni_http)
    message(FATAL_ERROR "NNI_COMPONENTS: process needs http, because the keeper serves the channel of its trials")
  endif()
  nni_component(process)
  target_link_libraries(nni_process INTERFACE nni_http)
  target_compile_definitions(nni_process INTERFACE NNI_WITH_PROCESS=1)
  target_link_libraries(nni_all INTERFACE nni_process)
endif()

# Warnings are for the code of this project only.
add_library(nni_warnings INTERFACE)
target_compile_options(nni_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  # clang counts these as conversions, g++ does not.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>
  $<$<BOOL:${NNI_WARNINGS_AS_ERRORS}>:-Werror>
  $<$<CXX_COMPILER_ID:GNU>:-fconcepts-diagnostics-depth=3>)

add_library(nni_default INTERFACE)
add_library(nni::default ALIAS nni_default)

if(NNI_BUILD_COMPILED)
  # src/<component>*.cpp belongs to that component, every other file to the core.
  file(GLOB nni_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.cpp")
  foreach(component IN LISTS nni_known_components)
    if(NOT component IN_LIST NNI_COMPONENTS)
      list(FILTER nni_sources EXCLUDE REGEX "/src/${component}[^/]*\\.cpp$")
    endif()
  endforeach()
  add_library(nni_compiled STATIC ${nni_sources})
  add_library(nni::compiled ALIAS nni_compiled)
  set_target_properties(nni_compiled PROPERTIES EXPORT_NAME compiled OUTPUT_NAME nni)
  target_link_libraries(nni_compiled PUBLIC nni_all PRIVATE $<BUILD_INTERFACE:nni_warnings>)
  # The bodies come from _inl.hpp files, which g++ takes for headers: it then warns of every coroutine frame that holds a
  # lambda of such a body, although the body exists once.
  target_compile_options(nni_compiled PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  target_compile_definitions(nni_compiled PUBLIC NNI_SEPARATE_COMPILATION BOOST_ASIO_SEPARATE_COMPILATION)
  target_link_libraries(nni_default INTERFACE nni_compiled)
else()
  target_link_libraries(nni_default INTERFACE nni_all)
endif()

# The target all_verify_interface_header_sets compiles every header as a translation unit of its own, with all
# components on.
if(PROJECT_IS_TOP_LEVEL)
  add_library(nni_headers INTERFACE)
  target_link_libraries(nni_headers INTERFACE nni_default)
  target_sources(nni_headers INTERFACE
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${nni_headers})
  set_target_properties(nni_headers PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endif()
