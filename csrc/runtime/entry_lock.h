// The right to make an entry of the cache on disk: of one thread among those of all processes and hosts that share the folder.
//
// It is a lock (flock) of a file beside the entry. The kernel, or the NFS server, releases it when the holder ends, however that happens. It
// saves work and keeps nothing consistent: where a file system has no locks, or a holder is stopped, several make the same entry.
#pragma once

#include <string>
#include <utility>

#include "support/files.h"

namespace cxxinductor::runtime {

class EntryLock {
 public:
  enum class State {
    None,  // the file cannot be made or locked, or nothing was asked for
    Held,
    Busy  // another has it
  };

  static constexpr const char* suffix = ".lock";  // of its file's name

  EntryLock() = default;
  explicit EntryLock(std::string path);  // of its file; does not wait
  EntryLock(EntryLock&& other) noexcept { *this = std::move(other); }
  EntryLock& operator=(EntryLock&& other) noexcept;
  ~EntryLock() { release(); }

  State state() const { return state_; }
  void release();

 private:
  std::string path_;
  Descriptor file_;
  State state_ = State::None;
};

}  // namespace cxxinductor::runtime
