// The nodes of a recorded CUDA graph with their arguments, and the words among these that are addresses. Includes cuda.h: only for
// sources of this folder.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cxxinductor::targets {

// A word of a node's arguments: an address inside of a range.
struct Word {
  uint32_t node = 0, at = 0;  // bytes from the beginning of the node's arguments
  uint32_t range = 0;
  int64_t offset = 0;
};

// One kernel, memset or copy. What `arguments` holds depends on the kind: the parameters of a kernel one after the other, each at a
// multiple of 8; the address of a memset; the addresses that a copy reads and writes.
struct Node {
  CUgraphNode handle = nullptr;
  size_t step = 0;  // that it was recorded in
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  CUDA_MEMSET_NODE_PARAMS fill{};
  CUDA_MEMCPY3D copy{};
  std::vector<uint64_t> arguments;
  size_t address_words = 0;  // of the arguments, those at the front that may be addresses
  struct Parameter {
    uint32_t start = 0;   // in `arguments`
    uint32_t offset = 0;  // in the block that the kernel sees
    uint32_t bytes = 0;
    bool operator==(const Parameter&) const = default;
  };
  std::vector<Parameter> parameters;  // of a kernel
  std::vector<uint32_t> own;          // words that are addresses of the recording's own memory

  std::byte* argument(uint32_t at) { return reinterpret_cast<std::byte*>(arguments.data()) + at; }
};

// Whether two nodes do the same work, the values of arguments aside.
bool same_kind(const Node& a, const Node& b);
// The parameter of a kernel that a word of its arguments belongs to.
const Node::Parameter& parameter_of(const Node& node, uint32_t at);

}  // namespace cxxinductor::targets
