# Install rules and the package that find_package(nni) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(targets nni_nni nni_all)
foreach(component sqlite http process compiled)
  if(TARGET nni_${component})
    list(APPEND targets nni_${component})
  endif()
endforeach()
install(TARGETS ${targets} EXPORT nniTargets
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILE_SET bodies DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/nni")
install(EXPORT nniTargets NAMESPACE nni:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/nniConfig.cmake.in" "${PROJECT_BINARY_DIR}/nniConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/nniConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/nniConfig.cmake" "${PROJECT_BINARY_DIR}/nniConfigVersion.cmake"
  DESTINATION "${package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/nni")
