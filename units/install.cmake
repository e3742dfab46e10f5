# Run by `cmake --install`: the unit names the program where this very installation puts it, whatever --prefix says.
# In: UNITS, SOURCE, SBINDIR, DOCDIR, UNIT_DIR; the environment's SPARK_SYSTEMD_UNIT_DIR goes before UNIT_DIR. Nothing is written to the
# build folder: several installations from it may run at once.
if(DEFINED ENV{SPARK_SYSTEMD_UNIT_DIR})
  set(UNIT_DIR "$ENV{SPARK_SYSTEMD_UNIT_DIR}")
endif()
cmake_path(ABSOLUTE_PATH SBINDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE SBIN_DIR)
cmake_path(ABSOLUTE_PATH DOCDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE DOC_DIR)
foreach(UNIT ${UNITS})
  set(PLACE "${CMAKE_INSTALL_PREFIX}/${UNIT_DIR}/${UNIT}")
  configure_file("${SOURCE}/${UNIT}.in" "$ENV{DESTDIR}${PLACE}" @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${PLACE}")
endforeach()
