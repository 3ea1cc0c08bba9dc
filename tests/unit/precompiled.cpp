// A unit for the headers that all tests include first (tests/CMakeLists.txt).
