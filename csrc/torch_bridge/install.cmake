# `cmake --install`: library, program, public headers, the libraries that they need beside LibTorch, and the files for find_package and pkg-config.
# Components wheel and wheel-<cache tag of the CPython> are the Python package, where libraries lie beside the modules and PyTorch is the
# neighbouring package; setup.py installs them.
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cxxinductorConfigVersion.cmake COMPATIBILITY SameMinorVersion)

# Copies the libraries of the system that libcxxinductor.so needs and that are not on every machine, each once and by the name that is looked for.
set(copy_needed_libraries [[
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES "$<TARGET_FILE:cxxinductor>" RESOLVED_DEPENDENCIES_VAR needed
       PRE_INCLUDE_REGEXES "^lib(fmt|ginac|cln|gmp|minizip|z)[.]so" PRE_EXCLUDE_REGEXES ".*")
  foreach(library IN LISTS needed)
    get_filename_component(name "${library}" NAME)
    file(REAL_PATH "${library}" library)
    message(STATUS "Installing: ${folder}/${name}")
    file(COPY_FILE "${library}" "${folder}/${name}" ONLY_IF_DIFFERENT)
  endforeach()
]])

# Files of one layout: libraries in `folder`, LibTorch in `torch` for programs built against it.
function(cxxi_install folder torch)
  set(INSTALLED_LIBRARIES ${folder})
  set(INSTALLED_TORCH ${torch})
  string(MAKE_C_IDENTIFIER "${ARGN}" layout)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/cxxinductor.pc.in ${CMAKE_BINARY_DIR}/package${layout}/cxxinductor.pc @ONLY)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/cxxinductorConfig.cmake.in ${CMAKE_BINARY_DIR}/package${layout}/cxxinductorConfig.cmake @ONLY)
  install(TARGETS cxxinductor LIBRARY DESTINATION ${folder} ${ARGN})
  install(TARGETS cxxinductor_program RUNTIME DESTINATION bin ${ARGN})
  install(CODE "set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}\")\n${copy_needed_libraries}" ${ARGN})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/cxxinductor DESTINATION include ${ARGN})
  install(FILES ${CMAKE_BINARY_DIR}/package${layout}/cxxinductorConfig.cmake ${CMAKE_BINARY_DIR}/cxxinductorConfigVersion.cmake
          DESTINATION lib/cmake/cxxinductor ${ARGN})
  install(FILES ${CMAKE_BINARY_DIR}/package${layout}/cxxinductor.pc DESTINATION lib/pkgconfig ${ARGN})
endfunction()

# A wheel is for other machines: the folder of the PyTorch that it was built against is taken out of what the loader searches.
function(cxxi_forget_build_folder file target component)
  get_target_property(runpath ${target} INSTALL_RPATH)
  list(FILTER runpath EXCLUDE REGEX "^/")
  list(JOIN runpath ":" relative)
  string(REPLACE "$" "\\$" relative "${relative}")
  install(CODE "file(RPATH_CHANGE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\"
                OLD_RPATH \"${relative}:${TORCH_ROOT}/lib\" NEW_RPATH \"${relative}\")" COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

cxxi_install(lib ${TORCH_ROOT})
cxxi_install(. "\${prefix}/../torch" COMPONENT wheel EXCLUDE_FROM_ALL)
cxxi_forget_build_folder(libcxxinductor.so cxxinductor wheel)
cxxi_forget_build_folder(bin/cxxinductor cxxinductor_program wheel)
foreach(module ${python_modules})
  string(REPLACE cxxinductor_python_ wheel- component ${module})
  install(TARGETS ${module} LIBRARY DESTINATION . COMPONENT ${component} EXCLUDE_FROM_ALL)
  cxxi_forget_build_folder(_C.so ${module} ${component})
endforeach()
