#include "socket_server.h"

#include <ATen/ATen.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <stdexcept>
#include <system_error>

namespace {

[[noreturn]] void throw_errno(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::invalid_argument(path + ": too long for a socket");
  path.copy(address.sun_path, path.size());
  return address;
}

int new_socket() {
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) throw_errno("socket");
  return made;
}

}  // namespace

bool read_all(int connection, void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t count = recv(connection, static_cast<char*>(bytes) + done, size - done, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

bool write_all(int connection, const void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t count = send(connection, static_cast<const char*>(bytes) + done, size - done, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

int connect_to(const std::string& path) {
  const sockaddr_un address = address_of(path);
  const int connection = new_socket();
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) throw_errno(path);
  return connection;
}

SocketServer::SocketServer(const std::string& path, std::vector<int64_t> sizes, Batcher& batcher) : path_(path), sizes_(std::move(sizes)), batcher_(batcher) {
  const sockaddr_un address = address_of(path);
  listening_ = new_socket();
  if (bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) throw_errno(path);
  if (listen(listening_, 128) != 0) throw_errno(path);
  accepting_ = std::thread([this] { accept_connections(); });
}

SocketServer::~SocketServer() {
  shutdown(listening_, SHUT_RDWR);  // accept returns
  accepting_.join();
  for (Connection& connection : connections_) {
    shutdown(connection.socket, SHUT_RD);
    finish(connection);
  }
  close(listening_);
  unlink(path_.c_str());
}

void SocketServer::finish(Connection& connection) {
  connection.thread.join();
  close(connection.socket);
}

void SocketServer::accept_connections() {
  for (;;) {
    const int accepted = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (accepted < 0 && errno != EINTR && errno != ECONNABORTED) return;
    connections_.remove_if([](Connection& connection) {
      if (!connection.ended) return false;
      finish(connection);
      return true;
    });
    if (accepted < 0) continue;
    Connection& connection = connections_.emplace_back();
    connection.socket = accepted;
    connection.thread = std::thread([this, &connection] { serve(connection); });
  }
}

void SocketServer::serve(Connection& connection) const {
  try {
    for (;;) {
      const at::Tensor image = at::empty(sizes_, at::kFloat);
      if (!read_all(connection.socket, image.mutable_data_ptr(), image.nbytes())) break;
      const Answer answer = batcher_.submit(image).get();
      if (!write_all(connection.socket, &answer, sizeof answer)) break;
    }
  } catch (const std::exception& error) {
    std::cerr << "a request failed: " << error.what() << '\n';
  }
  shutdown(connection.socket, SHUT_RDWR);
  connection.ended = true;
}
