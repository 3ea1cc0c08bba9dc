#include "batcher.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

Batcher::Batcher(cxxinductor::Model model, at::Device device, BatchLimits limits, int threads) : model_(std::move(model)), device_(device), limits_(limits) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::future<Answer> Batcher::submit(at::Tensor image) {
  Request request{std::move(image), {}, std::chrono::steady_clock::now()};
  std::future<Answer> answer = request.answer.get_future();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(request));
  }
  changed_.notify_one();
  return answer;
}

Batcher::Counts Batcher::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void Batcher::work() {
  const at::NoGradGuard no_gradients;
  std::optional<c10::StreamGuard> stream;
  if (device_.is_cuda()) stream.emplace(c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_));
  for (std::vector<Request> batch = next_batch(); !batch.empty(); batch = next_batch()) answer(batch);
}

std::vector<Batcher::Request> Batcher::next_batch() {
  std::unique_lock lock(mutex_);
  const auto most = static_cast<size_t>(limits_.requests);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return {};
    const auto deadline = queue_.front().arrival + limits_.wait;
    changed_.wait_until(lock, deadline, [&] { return ending_ || queue_.size() >= most || queue_.empty(); });
    if (!queue_.empty()) break;  // else another thread took what was there
  }
  std::vector<Request> batch;
  for (size_t count = std::min(queue_.size(), most); batch.size() < count; queue_.pop_front()) batch.push_back(std::move(queue_.front()));
  ++counts_.batches;
  counts_.requests += static_cast<int64_t>(batch.size());
  if (!queue_.empty()) changed_.notify_one();
  return batch;
}

void Batcher::answer(std::vector<Request>& batch) const {
  std::vector<Answer> answers;
  try {
    std::vector<at::Tensor> images;
    for (const Request& request : batch) images.push_back(request.image);
    const at::Tensor logits = model_.run({at::stack(images).to(device_)}).at(0).toTensor();
    const auto [scores, labels] = logits.softmax(1).max(1);
    const at::Tensor host_scores = scores.cpu(), host_labels = labels.cpu();  // wait for this thread's stream
    for (size_t i = 0; i < batch.size(); ++i)
      answers.push_back({static_cast<int32_t>(host_labels.const_data_ptr<int64_t>()[i]), host_scores.const_data_ptr<float>()[i]});
  } catch (...) {
    for (Request& request : batch) request.answer.set_exception(std::current_exception());
    return;
  }
  for (size_t i = 0; i < batch.size(); ++i) batch[i].answer.set_value(answers[i]);
}
