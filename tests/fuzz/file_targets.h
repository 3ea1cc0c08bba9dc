// The readers of untrusted files, each with files that it reads whole and what must hold of everything that it reads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fuzz/file_mutators.h"

namespace cxxinductor::fuzz {

enum class Outcome : uint8_t { Read, Refused, Unsupported };

class FileTarget {
 public:
  virtual ~FileTarget() = default;
  virtual std::string_view name() const = 0;
  // A file, edited in some way.
  virtual std::string make(Random& random) const = 0;
  // Reads it as the library does. Throws Error where the file is refused, anything else for a bug.
  virtual void read(const std::string& file) const = 0;
};

// .pt2 archives; packages; the compiled forms of TorchScript regions.
std::vector<std::unique_ptr<FileTarget>> file_targets();

// read() of a target. Throws for what a file may not do to its reader; the message says what.
Outcome try_file(const FileTarget& target, const std::string& file);

}  // namespace cxxinductor::fuzz
