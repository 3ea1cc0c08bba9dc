// What is known of dispatcher ops beyond their schemas, by name ("aten::mm"). For an op that nothing is known of, every
// function gives the answer that restricts the compiler most.
#pragma once

#include <string_view>

namespace cxxinductor {

// The op may keep a reference to the memory of its arguments, return memory that it keeps, or have effects that its
// schema does not state: custom ops, collectives, and the few ops of ATen that take storages over. Such calls get
// memory with an owner, nobody writes to what they return, and they keep their order among each other.
bool is_opaque_callee(std::string_view callee);

// The call starts a collective of torch.distributed's functional ones. Until a wait for its results has returned, other
// threads and streams may read its operands and write its results. Ranks start the collectives of a group in one order.
bool starts_collective(std::string_view callee);

// The call returns its operand once the collective that makes it has ended.
bool waits_for_collective(std::string_view callee);

// A call whose arguments have the recorded sizes and dtypes may still raise, because of the elements of its arguments
// or of what the op does besides. Running out of memory does not count.
bool may_raise(std::string_view callee);

// The op's kernels may read memory of a library that is not torch's allocator's and that the library frees when it likes: tables of plans
// for Fourier transforms, of which a cache keeps the last ones.
bool uses_library_memory(std::string_view callee);

// Graph and plan text, which is untrusted, may call the op without being allowed to by name: it is on a list of those that
// read their arguments and nothing else. The schema must state no mutation, too.
bool is_reachable_from_text(std::string_view callee);

}  // namespace cxxinductor
