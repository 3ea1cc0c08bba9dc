// Clients that load a server: each on a thread of its own sends one image after the other and waits for the answer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "batcher.h"

struct Load {
  std::vector<Answer> answers;       // an entry for each image
  std::vector<double> milliseconds;  // of each request, from sending it to reading its answer
  double seconds = 0;                // all together
};

// Sends images[0], images[1], ... (f32 on the CPU, a batch) to the server at `path`, over as many connections as there are clients.
Load run_clients(const std::string& path, const at::Tensor& images, int clients);

// Throughput, percentiles of the latency and its histogram.
void print_load(const char* name, const Load& load, Batcher::Counts counts);
