// The passes that this process registered (cxxinductor/extend.h, register_graph_pass), and their part in options and compiles.
#pragma once

#include <string_view>

#include "driver/compile.h"
#include "support/options.h"

namespace cxxinductor::torch_bridge {

// UserError where the pass is not valid, or another one has its name; again with the same stage and version does nothing.
void add_text_pass(driver::TextPass pass);
void remove_text_pass(std::string_view name);

driver::TextPasses registered_text_passes();

// UserError where options name passes or stages that are not known.
void check_pass_names(const Options& options);
// Gives the request the options, and the registered passes that they do not skip.
void set_options_and_passes(driver::Request& request, const Options& options);

}  // namespace cxxinductor::torch_bridge
