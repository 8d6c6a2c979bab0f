# What `cmake --install` puts where: the program, the library, the headers that tools/tandem.h needs, and the package for find_package(tandem).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)

# Below include/tandem/ the headers keep their paths from the root, so that one spelling of an include is right here and for users.
install(TARGETS tandem EXPORT tandem-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tandem)
install(TARGETS tandem_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The program finds the library beside it wherever the tree is moved.
file(RELATIVE_PATH lib_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(tandem_program PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_bin}")

install(EXPORT tandem-targets NAMESPACE tandem:: DESTINATION ${package_dir})
configure_package_config_file(cmake/tandem-config.cmake.in tandem-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tandem-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tandem-config.cmake ${CMAKE_BINARY_DIR}/tandem-config-version.cmake DESTINATION ${package_dir})

install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
