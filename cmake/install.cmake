# What `cmake --install` and `make install` put where: the program, lib_mrc.so with its headers, a pkg-config file and a
# CMake package for programs that use it, the dissector. The files say where things are relative to themselves, so the
# tree may be moved, and DESTDIR is as good a place as the prefix.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_target_property(mrc_version mrc VERSION)
set(mrc_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mrc)
set(mrc_made ${PROJECT_BINARY_DIR}/install)

target_include_directories(mrc INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/mrc>)
install(TARGETS mrc EXPORT mrcTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/mrc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET weft)
  install(TARGETS weft RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES tools/wireshark/mrc.lua DESTINATION ${CMAKE_INSTALL_DATADIR}/weft/wireshark)

# find_package(mrc): the target mrc::mrc.
install(EXPORT mrcTargets NAMESPACE mrc:: DESTINATION ${mrc_cmake_dir})
configure_package_config_file(cmake/mrcConfig.cmake.in ${mrc_made}/mrcConfig.cmake
  INSTALL_DESTINATION ${mrc_cmake_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${mrc_made}/mrcConfigVersion.cmake
  VERSION ${mrc_version} COMPATIBILITY SameMajorVersion)
install(FILES ${mrc_made}/mrcConfig.cmake ${mrc_made}/mrcConfigVersion.cmake DESTINATION ${mrc_cmake_dir})

# pkg-config mrc, whose file lies in a folder of the library's.
file(RELATIVE_PATH mrc_to_include ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/mrc.pc.in ${mrc_made}/mrc.pc @ONLY)
install(FILES ${mrc_made}/mrc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
