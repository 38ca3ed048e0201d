# The Debian package: cpack --preset package. It holds headers, the compiled library, and nni-keeper.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME nni-dev)
set(CPACK_PACKAGE_VENDOR "the nni for C++ authors")
set(CPACK_PACKAGE_CONTACT "the nni for C++ authors <nni@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
# What nni-keeper links is found by dpkg-shlibdeps; what users of the headers need is named here.
find_program(NNI_SHLIBDEPS dpkg-shlibdeps)
if(NNI_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
set(boost "${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR}")
set(depends "libboost${boost}-dev" "libboost-json${boost}-dev")
if("sqlite" IN_LIST NNI_COMPONENTS)
  list(APPEND depends libsqlite3-dev)
endif()
list(JOIN depends ", " CPACK_DEBIAN_PACKAGE_DEPENDS)

include(CPack)
