# How this project builds: one static library a layer, warnings as errors for our own code, ccache where present.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Units compile an eighth faster with -O2; kernels have their own flags.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
# Smaller libraries: the linker drops functions that nothing calls (--gc-sections), and those of headers are not exported.
string(APPEND CMAKE_CXX_FLAGS_RELEASE " -ffunction-sections -fdata-sections")
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

find_package(fmt REQUIRED)
find_path(GINAC_INCLUDE_DIR ginac/ginac.h REQUIRED)
find_library(GINAC_LIBRARY ginac REQUIRED)
find_library(CLN_LIBRARY cln REQUIRED)
find_path(NLOHMANN_JSON_INCLUDE_DIR nlohmann/json.hpp REQUIRED)
find_path(MINIZIP_INCLUDE_DIR minizip/unzip.h REQUIRED)
find_library(MINIZIP_LIBRARY minizip REQUIRED)
find_library(ZLIB_LIBRARY z REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
# Static: SHA-256 and Ed25519 are a tenth of nettle. Its archives are position-independent.
find_path(NETTLE_INCLUDE_DIR nettle/eddsa.h REQUIRED)
find_library(HOGWEED_LIBRARY NAMES libhogweed.a hogweed REQUIRED)
find_library(NETTLE_LIBRARY NAMES libnettle.a nettle REQUIRED)
find_library(GMP_LIBRARY gmp REQUIRED)

# -Wrestrict, -Wfree-nonheap-object: false positives of GCC 12 on std::string concatenation and on vectors. Warnings of
# compilers that nobody here has tried are not errors: they come with every release.
set(CXXINDUCTOR_WARNINGS -Wall -Wextra -Wshadow -Werror=switch -Wno-missing-field-initializers -Wno-restrict
    -Wno-free-nonheap-object)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
  list(APPEND CXXINDUCTOR_WARNINGS -Werror)
endif()
# Sanitizers make false positives, most of all of this warning, as GCC's manual says (Program Instrumentation Options).
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
  list(APPEND CXXINDUCTOR_WARNINGS -Wno-maybe-uninitialized)
endif()

# Whether files share what they include. In builds for debugging they do not, which finds headers that a file forgets to include.
if(CMAKE_BUILD_TYPE STREQUAL Debug AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
  set(CXXINDUCTOR_SHARES_HEADERS OFF)
else()
  set(CXXINDUCTOR_SHARES_HEADERS ON)
endif()

# cxxi_precompile(target headers... | REUSE_FROM target): headers that nearly all of a target's files include, compiled once: half of what a small
# file costs. Targets with equal flags share them.
set(CXXINDUCTOR_STANDARD_HEADERS <algorithm> <fmt/format.h> <functional> <map> <memory> <optional> <set> <string> <unordered_map> <variant> <vector>)
function(cxxi_precompile target)
  if(NOT CXXINDUCTOR_SHARES_HEADERS)
    return()
  endif()
  if("REUSE_FROM" IN_LIST ARGN)
    target_precompile_headers(${target} ${ARGN})
  else()
    target_precompile_headers(${target} PRIVATE ${CXXINDUCTOR_STANDARD_HEADERS} ${ARGN})
  endif()
endfunction()

# cxxi_units(target): up to twenty files of a folder are compiled as one unit: headers are read, and templates instantiated, once for all of them.
# Names in anonymous namespaces are therefore unique in their folder. -DCMAKE_UNITY_BUILD=OFF compiles each file by itself.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ${CXXINDUCTOR_SHARES_HEADERS})
endif()
function(cxxi_units target)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(folder ${source} ABSOLUTE)
    get_filename_component(folder ${folder} DIRECTORY)
    file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    list(APPEND files_of_${folder} ${source})
    list(LENGTH files_of_${folder} number)
    math(EXPR unit "(${number} - 1) / 20")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${unit})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# cxxi_layer(name [SMALL] DEPENDS layers... PRECOMPILE arguments of cxxi_precompile...): static library cxxi_<name> from csrc/<name>.
# SMALL: compiled with -Os, a third smaller than with -O2: what runs once for a model, not in each of its calls. The IRs, on whose texts and
# expressions a compile spends the most, are not.
function(cxxi_layer name)
  cmake_parse_arguments(LAYER "SMALL" "" "DEPENDS;PRECOMPILE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  add_library(cxxi_${name} STATIC ${sources})
  cxxi_units(cxxi_${name})
  target_include_directories(cxxi_${name} PUBLIC ${CMAKE_SOURCE_DIR}/csrc ${CMAKE_SOURCE_DIR}/include)
  target_compile_options(cxxi_${name} PRIVATE ${CXXINDUCTOR_WARNINGS})
  if(LAYER_SMALL)
    target_compile_options(cxxi_${name} PRIVATE $<$<CONFIG:Release>:-Os>)
  endif()
  cxxi_precompile(cxxi_${name} ${LAYER_PRECOMPILE})
  target_link_libraries(cxxi_${name} PUBLIC fmt::fmt)
  foreach(layer ${LAYER_DEPENDS})
    target_link_libraries(cxxi_${name} PUBLIC cxxi_${layer})
  endforeach()
endfunction()
