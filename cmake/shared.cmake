# lib_mrc.so: src/device whole, and what it stands on as far as it is used. Only the functions of the API and of verbs are
# exported (lib_mrc.map).

set(map ${PROJECT_SOURCE_DIR}/cmake/lib_mrc.map)
add_library(mrc SHARED $<TARGET_OBJECTS:weft_device>)
target_link_libraries(mrc PRIVATE $<TARGET_PROPERTY:weft_device,LINK_LIBRARIES> Threads::Threads ${CMAKE_DL_LIBS}
  INTERFACE $<BUILD_INTERFACE:weft_mrc_api>)
target_link_options(mrc PRIVATE -Wl,--version-script=${map})
set_target_properties(mrc PROPERTIES
  LINKER_LANGUAGE CXX PREFIX "" OUTPUT_NAME lib_mrc VERSION 1.0.1 SOVERSION 1 LINK_DEPENDS ${map})
weft_optimise(mrc)
if(NOT WEFT_SANITIZE)
  target_link_options(mrc PRIVATE -Wl,-z,defs)
endif()
