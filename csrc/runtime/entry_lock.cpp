#include "runtime/entry_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace cxxinductor::runtime {

EntryLock::EntryLock(std::string path) : path_(std::move(path)) {
  // For writing: NFS locks no other file.
  Descriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
  if (!file.open()) return;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
    file_ = std::move(file);
    state_ = State::Held;
  } else if (errno == EWOULDBLOCK) {
    state_ = State::Busy;
  }
}

EntryLock& EntryLock::operator=(EntryLock&& other) noexcept {
  release();
  path_ = std::move(other.path_);
  file_ = std::move(other.file_);
  state_ = std::exchange(other.state_, State::None);
  return *this;
}

void EntryLock::release() {
  if (std::exchange(state_, State::None) != State::Held) return;
  ::unlink(path_.c_str());
  ::flock(file_.get(), LOCK_UN);  // a forked child may have the file open too
  file_.close();
}

}  // namespace cxxinductor::runtime
