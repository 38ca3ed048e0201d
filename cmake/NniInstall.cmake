# Install rules and the package that find_package(nni) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(nni_package_components ${NNI_COMPONENTS})
set(targets nni_nni nni_all)
foreach(component IN LISTS NNI_COMPONENTS)
  list(APPEND targets nni_${component})
endforeach()
if(TARGET nni_compiled)
  list(APPEND targets nni_compiled)
  list(APPEND nni_package_components compiled)
endif()
list(JOIN nni_package_components " " nni_package_components)
list(JOIN nni_known_components "|" nni_known_components_regex)
string(APPEND nni_known_components_regex "|compiled")

install(TARGETS ${targets} EXPORT nniTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILE_SET bodies DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET nni-keeper)
  install(TARGETS nni-keeper nni-convert RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/nni")
install(EXPORT nniTargets NAMESPACE nni:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/nniConfig.cmake.in" "${PROJECT_BINARY_DIR}/nniConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/nniConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/nniConfig.cmake" "${PROJECT_BINARY_DIR}/nniConfigVersion.cmake"
  DESTINATION "${package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/nni")

if(PROJECT_IS_TOP_LEVEL)
  include(NniPackage)
endif()
