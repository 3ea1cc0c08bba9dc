// A recording that was run before, and what runs it again.
#pragma once

#include <ATen/core/ivalue.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "torch_bridge/aten_executor.h"
#include "torch_bridge/device/calls.h"
#include "torch_bridge/device/context_settings.h"
#include "torch_bridge/device/early_start.h"
#include "torch_bridge/record/specializations.h"

namespace cxxinductor::torch_bridge {

class KnownCalls {
 public:
  // settings: that they were made under. results: see Recording::finish. forms: those of recordings with the same words and results, in which numbers alone
  // differ. compiled: counts compiled forms.
  KnownCalls(RecordedCalls calls, const ContextSettings& settings, std::vector<int64_t> results, std::shared_ptr<Specializations> forms,
             std::shared_ptr<std::atomic<int64_t>> compiled);

  bool differs_in_numbers_alone(const std::vector<int64_t>& words, const std::vector<int64_t>& results) const {
    return results_ == results && calls.code.words == words;
  }
  const std::vector<int64_t>& results() const { return results_; }
  const std::shared_ptr<Specializations>& forms() const { return forms_; }

  struct Results {
    std::vector<c10::IValue> values;
    bool is_compiled = false;  // else they ran through ATen
  };
  // inputs: on the backing device. early: goes on if it started the form that they need, and is dropped otherwise. One run at a time.
  Results run(std::vector<c10::IValue> inputs, const std::vector<double>& reals, const Options& options, EarlyStart& early);
  // Of the compiled form that ran last; null: none did.
  const std::shared_ptr<EarlyForm>& early_form() const { return early_form_; }

  const RecordedCalls calls;
  const ContextSettings settings;
  std::weak_ptr<KnownCalls> next;  // what followed last, which the next recording is compared with

 private:
  // keeps_late_apart: of what is compiled, for early starts.
  Tracer tracer(const Options& options, bool keeps_late_apart) const;
  model::CallGraph graph_for(const CallPattern& pattern, std::vector<model::SizeGuard>* guards) const;

  const std::vector<int64_t> results_;
  const std::vector<size_t> integers_;  // positions in calls.code.numbers
  const std::shared_ptr<Specializations> forms_;
  const std::shared_ptr<std::atomic<int64_t>> compiled_;
  std::shared_ptr<EarlyForm> early_form_;
  std::optional<CallPattern> uncompiled_pattern_;
  std::unique_ptr<AtenExecutor> uncompiled_;
};

}  // namespace cxxinductor::torch_bridge
