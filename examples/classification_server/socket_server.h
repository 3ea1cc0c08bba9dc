// A local socket for requests: a client sends the bytes of an image (f32, as many as the model's input has elements) and reads an Answer, again and
// again, over one connection. Numbers are in the machine's byte order. A request that fails ends its connection.
#pragma once

#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "batcher.h"

// Reads or writes all of the bytes; false where the connection ended.
bool read_all(int connection, void* bytes, size_t size);
bool write_all(int connection, const void* bytes, size_t size);
// A connection to the server that listens at the path.
int connect_to(const std::string& path);

class SocketServer {
 public:
  // Listens at the path, which must not exist. Images have these sizes. The batcher has to outlive the server.
  SocketServer(const std::string& path, std::vector<int64_t> sizes, Batcher& batcher);
  // Answers the requests that it has read, and ends the connections.
  ~SocketServer();
  SocketServer(const SocketServer&) = delete;
  SocketServer& operator=(const SocketServer&) = delete;

 private:
  struct Connection {
    int socket;
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  void accept_connections();
  void serve(Connection& connection) const;
  static void finish(Connection& connection);

  const std::string path_;
  const std::vector<int64_t> sizes_;
  Batcher& batcher_;
  int listening_ = -1;
  std::list<Connection> connections_;  // of the accepting thread, while it runs
  std::thread accepting_;
};
