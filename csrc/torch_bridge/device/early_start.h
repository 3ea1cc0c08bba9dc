// Starts the compiled form of a recording before the recording has ended, so that the GPU works while the host records: while the calls
// are those of a recording that ran compiled before, the rest is predicted to be the same. When the recording ends and is the same, its
// run goes on where it is; otherwise what ran is dropped, and the recording runs as if nothing had.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "torch_bridge/device/early_steps.h"
#include "torch_bridge/record/specializations.h"

namespace cxxinductor::torch_bridge {

class KnownCalls;
class Recording;

// By input of a form of the calls: how many of them are recorded once it is known.
std::vector<size_t> known_after(const CallPattern& pattern, const RecordedCalls& calls, size_t integers);

// A compiled form of known calls, as far as runs of it may start early.
struct EarlyForm {
  EarlyForm(std::shared_ptr<const Specializations::Form> of, const RecordedCalls& calls, const std::vector<size_t>& integers);

  const std::shared_ptr<const Specializations::Form> form;
  // By input of the form.
  std::vector<size_t> arguments;     // tensors of the recording, then its integers, then its floats
  std::vector<size_t> known_after;   // calls
  std::vector<c10::IValue> unknown;  // what stands for it until then
  std::vector<EarlyPoint> points;
  size_t tensors = 0, integers = 0;  // arguments of these kinds
  // After a wrong prediction so many recordings pass without one; twice as many after each in a row.
  uint32_t to_pass = 0, pass_next = 1;
};

// Of one index. The device's lock is held.
class EarlyStart {
 public:
  explicit EarlyStart(c10::Device backing) : backing_(backing), is_on_(!backing.is_cpu()) {}

  // On from the start where the backing device works beside the host.
  bool is_on() const { return is_on_; }
  void turn(bool on);

  // The next recording is compared with these calls; on the streams that are current now.
  void expect(std::shared_ptr<KnownCalls> calls);
  // When the recording has as many calls, advance() has something to do.
  size_t next() const { return next_; }
  void advance(const Recording& recording);

  // Whether this form has been started for a recording that is now proved to be what was predicted. If another one was, it is dropped.
  bool holds_for(const Specializations::Form& form);
  // The results; inputs: of the form. Once, where it holds.
  std::vector<c10::IValue> finish(std::vector<c10::IValue> inputs);
  // The prediction was wrong, or cannot be proved. The backing generator is then as if nothing had been drawn.
  void drop();

  // Whether random numbers were drawn; and nobody has changed the backing generator since.
  bool has_drawn() const { return after_.defined(); }
  bool has_drawn_last() const;

  int64_t starts() const { return starts_; }
  int64_t drops() const { return drops_; }

 private:
  static constexpr size_t never = std::numeric_limits<size_t>::max();

  void run_to(const EarlyPoint& point, const Recording& recording);
  void end();
  c10::Stream current_stream() const;

  const c10::Device backing_;
  bool is_on_;
  std::shared_ptr<KnownCalls> calls_;
  std::shared_ptr<EarlyForm> form_;
  std::unique_ptr<PartialRun> run_;
  size_t point_ = 0, next_ = never;
  size_t known_ = 0;  // calls whose inputs the run has
  std::optional<c10::Stream> stream_;
  at::Tensor before_, after_;  // states of the generator, where random numbers were drawn
  int64_t starts_ = 0, drops_ = 0;
};

}  // namespace cxxinductor::torch_bridge
