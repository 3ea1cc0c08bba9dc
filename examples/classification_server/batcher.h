// Collects requests into batches and runs them on threads of its own, each with a stream of its own where the model is on a GPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <cxxinductor/cxxinductor.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

struct Answer {
  int32_t label = 0;  // of the largest logit
  float score = 0;    // its softmax
};

struct BatchLimits {
  int64_t requests = 16;                 // a batch starts when it has so many requests,
  std::chrono::microseconds wait{2000};  // or its first one has waited for so long
};

class Batcher {
 public:
  // The model maps f32[b, ...] to logits f32[b, classes], for each b up to limits.requests.
  Batcher(cxxinductor::Model model, at::Device device, BatchLimits limits, int threads);
  // Answers what was submitted before it returns.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // image: one element of a batch, f32 on the CPU. The future throws what the model throws.
  std::future<Answer> submit(at::Tensor image);

  struct Counts {
    int64_t requests = 0, batches = 0;
  };
  Counts counts() const;

 private:
  struct Request {
    at::Tensor image;
    std::promise<Answer> answer;
    std::chrono::steady_clock::time_point arrival;
  };

  void work();
  std::vector<Request> next_batch();  // empty: the batcher ends
  void answer(std::vector<Request>& batch) const;

  const cxxinductor::Model model_;
  const at::Device device_;
  const BatchLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> queue_;
  Counts counts_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};
