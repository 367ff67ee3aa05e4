# lib_mrc.so: src/device and what it stands on, compiled a second time as position-independent code, so that the program
# and its tests stay as they are. Only the functions of the API and of verbs are exported (lib_mrc.map).

# Everything below `folder` in layers.txt, itself included.
function(weft_folders_below folder out)
  set(all ${folder})
  foreach(used IN LISTS layer_${folder}_2)
    weft_folders_below(${used} below)
    list(APPEND all ${below})
  endforeach()
  list(REMOVE_DUPLICATES all)
  set(${out} ${all} PARENT_SCOPE)
endfunction()

# As weft_X of layers.cmake, but position-independent.
function(weft_link_pic target folder)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # Nobody puts another function in the place of ours: the compiler may inline them.
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  weft_optimise(${target})
  target_link_libraries(${target} PRIVATE weft_flags)
  foreach(used IN LISTS layer_${folder}_2)
    if(TARGET weft_pic_${used})
      target_link_libraries(${target} PRIVATE weft_pic_${used})
    endif()
  endforeach()
  foreach(name IN LISTS layer_${folder}_3)
    target_link_libraries(${target} PRIVATE ${package_${name}_3})
  endforeach()
endfunction()

weft_folders_below(device shared_folders)
list(REMOVE_ITEM shared_folders device)
foreach(folder IN LISTS weft_folders)
  if(folder IN_LIST shared_folders AND weft_sources_${folder})
    add_library(weft_pic_${folder} STATIC EXCLUDE_FROM_ALL ${weft_sources_${folder}})
    weft_link_pic(weft_pic_${folder} ${folder})
  endif()
endforeach()

add_library(mrc SHARED ${weft_sources_device})
weft_link_pic(mrc device)
target_link_libraries(mrc PRIVATE Threads::Threads ${CMAKE_DL_LIBS} INTERFACE $<BUILD_INTERFACE:weft_mrc_api>)
set(map ${PROJECT_SOURCE_DIR}/cmake/lib_mrc.map)
target_link_options(mrc PRIVATE -Wl,--version-script=${map})
set_target_properties(mrc PROPERTIES
  PREFIX "" OUTPUT_NAME lib_mrc VERSION 1.0.1 SOVERSION 1 LINK_DEPENDS ${map})
if(NOT WEFT_SANITIZE)
  target_link_options(mrc PRIVATE -Wl,-z,defs)
endif()
