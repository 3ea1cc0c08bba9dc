// Why calls of ATen stay calls. The one source of the reasons that explain() and docs/coverage.md give, and of what is
// not decomposed before the import, so that it arrives as the call that it stays.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace cxxinductor::frontend {

// Of externs, by callee ("aten::mm"): the reasons, of different calls different ones.
using CallReasons = std::map<std::string, std::set<std::string>, std::less<>>;

// Why no importer covers the op: a row of call_reasons.cpp; general words where there is none. An importer that covers
// other forms of the op states the reason itself (CallContext::decline).
std::string_view reason_of_call(std::string_view callee);
// Whether torch has a decomposition of the op that is not used, for that reason.
bool arrives_whole(std::string_view callee);

}  // namespace cxxinductor::frontend
