# Run by `cmake --install`: the unit names the program where this very installation puts it, whatever --prefix says.
# In: UNITS, SOURCE, BINARY, SBINDIR, DOCDIR, UNIT_DIR; the environment's SPARK_SYSTEMD_UNIT_DIR goes before UNIT_DIR.
if(DEFINED ENV{SPARK_SYSTEMD_UNIT_DIR})
  set(UNIT_DIR "$ENV{SPARK_SYSTEMD_UNIT_DIR}")
endif()
cmake_path(ABSOLUTE_PATH SBINDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE SBIN_DIR)
cmake_path(ABSOLUTE_PATH DOCDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE DOC_DIR)
foreach(UNIT ${UNITS})
  configure_file("${SOURCE}/${UNIT}.in" "${BINARY}/${UNIT}" @ONLY)
  file(INSTALL "${BINARY}/${UNIT}" DESTINATION "${CMAKE_INSTALL_PREFIX}/${UNIT_DIR}")
endforeach()
