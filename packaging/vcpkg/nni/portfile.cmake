# An overlay port of the checkout that it lies in: vcpkg install nni --overlay-ports=packaging/vcpkg
cmake_path(SET SOURCE_PATH NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../..")

# There is no shared library: most of it is templates, and the rest is small.
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)

set(components "")
foreach(component IN ITEMS sqlite http process)
  if(component IN_LIST FEATURES)
    list(APPEND components ${component})
  endif()
endforeach()
set(programs OFF)
if("keeper" IN_LIST FEATURES)
  set(programs ON)
endif()

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    "-DNNI_COMPONENTS=${components}"
    -DNNI_BUILD_COMPILED=ON
    -DNNI_BUILD_PROGRAMS=${programs}
    -DNNI_BUILD_TESTS=OFF
    -DNNI_BUILD_EXAMPLES=OFF
    -DNNI_BUILD_BENCHMARKS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/nni)
if(programs)
  vcpkg_copy_tools(TOOL_NAMES nni-keeper nni-convert AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
