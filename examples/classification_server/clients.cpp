#include "clients.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "socket_server.h"

Load run_clients(const std::string& path, const at::Tensor& images, int clients) {
  const int64_t count = images.size(0);
  const size_t bytes = images[0].nbytes();
  Load load{std::vector<Answer>(count), std::vector<double>(count), 0};
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  const auto request_in_turn = [&](int connection) {
    for (int64_t i = next++; i < count && !failed; i = next++) {
      const auto start = std::chrono::steady_clock::now();
      const char* image = static_cast<const char*>(images.const_data_ptr()) + static_cast<size_t>(i) * bytes;
      if (!write_all(connection, image, bytes) || !read_all(connection, &load.answers[i], sizeof(Answer))) failed = true;
      load.milliseconds[i] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    close(connection);
  };
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) threads.emplace_back(request_in_turn, connect_to(path));
  for (std::thread& thread : threads) thread.join();
  load.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (failed) throw std::runtime_error("the server closed a connection");
  return load;
}

namespace {

// A row for each power of the square root of two, as a multiple of 0.1 ms.
void print_histogram(const std::vector<double>& sorted) {
  const auto bin_of = [](double milliseconds) { return std::max(0, static_cast<int>(std::floor(2 * std::log2(milliseconds / 0.1)))); };
  const int first = bin_of(sorted.front()), last = bin_of(sorted.back());
  std::vector<size_t> counts(last - first + 1);
  for (double milliseconds : sorted) ++counts[bin_of(milliseconds) - first];
  const size_t most = *std::max_element(counts.begin(), counts.end());
  for (int bin = first; bin <= last; ++bin) {
    const size_t count = counts[bin - first];
    const std::string bar((count * 50 + most - 1) / most, '#');
    std::printf("  < %8.2f ms %7zu %s\n", 0.1 * std::exp2((bin + 1) / 2.0), count, bar.c_str());
  }
}

}  // namespace

void print_load(const char* name, const Load& load, Batcher::Counts counts) {
  std::vector<double> sorted = load.milliseconds;
  std::sort(sorted.begin(), sorted.end());
  const auto percentile = [&](double part) { return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))]; };
  std::printf("%s: %.1f images/s in batches of %.1f; latency p50 %.2f ms, p90 %.2f ms, p99 %.2f ms\n", name, static_cast<double>(sorted.size()) / load.seconds,
              static_cast<double>(counts.requests) / static_cast<double>(counts.batches), percentile(0.5), percentile(0.9), percentile(0.99));
  print_histogram(sorted);
}
