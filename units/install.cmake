# Run by `cmake --install`: the unit names the program where this very installation puts it, whatever --prefix says.
# In: SOURCE, BINARY, SBINDIR, DOCDIR, UNIT_DIR.
cmake_path(ABSOLUTE_PATH SBINDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE SBIN_DIR)
cmake_path(ABSOLUTE_PATH DOCDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE DOC_DIR)
configure_file("${SOURCE}/spark-staged.service.in" "${BINARY}/spark-staged.service" @ONLY)
file(INSTALL "${BINARY}/spark-staged.service" DESTINATION "${CMAKE_INSTALL_PREFIX}/${UNIT_DIR}")
