// Passes that users register: after a stage they get the text of the form that it made, and return the text of another one.
//
// Text is what an extension and the library agree on: it is documented (docs/ir.md), and no type of the library crosses. What a pass returns is
// untrusted: it is parsed and verified, and has to take and return what the form did. That its kernels stay inside of their tensors is not proved.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "driver/form.h"
#include "support/options.h"

namespace cxxinductor::driver {

struct TextPass {
  std::string name, stage, version;
  std::function<std::string(const std::string& text)> function;
};
using TextPasses = std::vector<std::shared_ptr<const TextPass>>;  // in the order in which they run

// UserError where the name, the stage or the version is not one that a pass may have.
void check_text_pass(const TextPass& pass);
// Whether it changed the form. UserError that names the pass where it raises, or does not return the text of a valid form with the same signature.
bool run_text_pass(const TextPass& pass, Form& form);
// Takes what option skip_passes names out of the passes, and their names out of the option.
void leave_out_skipped(TextPasses& passes, Options& options);
std::string describe(const TextPass& pass);  // "NAME (after STAGE)"

}  // namespace cxxinductor::driver
