// A file's bytes in memory: of its pages, those are read that somebody looks at.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace cxxinductor::api {

// Bytes that somebody keeps. Writes to them reach nobody else.
struct Bytes {
  std::shared_ptr<void> owner;
  std::span<std::byte> span;
};

Bytes map_file(const std::string& path);          // privately; UserError when it cannot be read
Bytes copy_bytes(const void* data, size_t size);  // aligned as PyTorch aligns weights

}  // namespace cxxinductor::api
