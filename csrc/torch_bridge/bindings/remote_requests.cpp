#include "torch_bridge/bindings/remote_requests.h"

#include <algorithm>
#include <utility>

#include "torch_bridge/bindings/without_gil.h"

namespace cxxinductor::bindings {
namespace {

// How long a waiting thread goes without asking whether the interpreter ends.
constexpr std::chrono::milliseconds poll_interval{20};
constexpr std::chrono::minutes pause_after_none{1};

}  // namespace

RemoteRequests::RemoteRequests(std::chrono::milliseconds patience)
    : patience_(patience), state_(std::make_unique<State>()), in_child_([this] {
        static_cast<void>(state_.release());  // others may have held its mutex
        state_ = std::make_unique<State>();
      }) {}

std::optional<std::string> RemoteRequests::ask(std::string name, std::optional<std::string> file) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto start = Clock::now();
  if (state.closed || start < state.paused_until) return std::nullopt;
  const uint64_t number = ++state.last;
  state.open[number];
  state.waiting.push_back({number, std::move(name), std::move(file)});
  state.asked.notify_one();
  const auto is_over = [&] { return state.closed || state.open[number].has_value(); };
  while (!state.answered.wait_for(lock, poll_interval, is_over)) {
    const bool ends = !Py_IsInitialized() || interpreter_ends(), is_late = Clock::now() - start > patience_;
    if (is_late) state.paused_until = Clock::now() + pause_after_none;
    if (ends || is_late) break;
  }
  std::erase_if(state.waiting, [&](const Request& request) { return request.number == number; });
  auto answer = std::move(state.open.extract(number).mapped());
  return answer ? std::move(*answer) : std::nullopt;
}

std::optional<RemoteRequests::Request> RemoteRequests::next() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.asked.wait(lock, [&] { return state.closed || !state.waiting.empty(); });
  if (state.closed) return std::nullopt;
  Request request = std::move(state.waiting.front());
  state.waiting.pop_front();
  return request;
}

// One that nobody waits for any more is dropped.
void RemoteRequests::answer(uint64_t number, std::optional<std::string> file) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  state.paused_until = {};  // somebody answers again
  if (const auto found = state.open.find(number); found != state.open.end()) found->second.emplace(std::move(file));
  state.answered.notify_all();
}

void RemoteRequests::close() {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  state.closed = true;
  state.asked.notify_all();
  state.answered.notify_all();
}

}  // namespace cxxinductor::bindings
