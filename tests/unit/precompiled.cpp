// A unit for headers that programs share, compiled once (tests/CMakeLists.txt).
