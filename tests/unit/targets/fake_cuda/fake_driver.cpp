// A CUDA driver without a GPU, for tests of what happens when the real one refuses: one device, host memory, launches
// that only count. It is opened by name in place of libcuda.so.1; tests say which call fails next.
#include "unit/targets/fake_cuda/fake_driver.h"

#include <cuda.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "targets/cuda/node_update_table.h"

namespace {

std::mutex mutex;
std::map<std::string, int> failing_calls;  // name -> calls until it fails
std::map<std::string, int> calls;
thread_local CUcontext current_context = nullptr;
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
bool capturing = false, capture_good = true;
int module_object = 0, function_object = 0, context_object = 0, stream_object = 0;

// A kernel in a graph. Addresses of nodes stay as more are added.
struct FakeNode {
  unsigned long long words[2] = {};
  void* addresses[2] = {&words[0], &words[1]};
  bool updatable = false;
};
struct FakeGraph {
  std::deque<FakeNode> nodes;
  std::set<std::pair<CUgraphNode, CUgraphNode>> edges;
  // Kernels in front of the others that update them, in order.
  std::deque<cxxinductor::targets::NodeUpdateTable> update_tables;

  CUgraph handle() { return reinterpret_cast<CUgraph>(this); }
};
FakeGraph recorded, cloned;
FakeGraph* replayed = &recorded;  // last
FakeGraph& graph_of(void* handle) { return *static_cast<FakeGraph*>(handle); }
template <class T>
CUgraphNode handle_of(T& node) {
  return reinterpret_cast<CUgraphNode>(&node);
}
std::map<unsigned, unsigned> replays_by_ring;
std::mutex gpu;
bool held_back = false;
int held_replays = 0;                            // of a GPU that is held back
std::vector<unsigned long long> replayed_words;  // by replay: the second word of the first kernel
FakeLaunch last_launch{};
bool recording = false;

// Of calls that a capture forbids.
CUresult count_unsafe(const char* name, CUresult failure = CUDA_ERROR_UNKNOWN);

CUresult count(const char* name, CUresult failure = CUDA_ERROR_UNKNOWN) {
  const std::lock_guard lock(mutex);
  ++calls[name];
  const auto failing = failing_calls.find(name);
  if (failing == failing_calls.end()) return CUDA_SUCCESS;
  if (failing->second-- > 0) return CUDA_SUCCESS;
  failing_calls.erase(failing);
  return failure;
}

CUresult count_unsafe(const char* name, CUresult failure) {
  {
    const std::lock_guard lock(mutex);
    if (capturing && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
      capture_good = false;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return count(name, failure);
}

// As kernels_templates/cuda/update_nodes.cuh.
void update_nodes(const cxxinductor::targets::NodeUpdateTable& table) {
  unsigned& replay = replays_by_ring[table.ring];
  for (unsigned i = 0; i < table.words; ++i) {
    const unsigned long long value = table.begins[replay % table.slots * table.ranges + table.range_of[i]] + static_cast<unsigned long long>(table.offsets[i]);
    static_cast<FakeNode*>(table.nodes[i])->words[table.arguments[i] / 8] = value;
  }
  if (table.is_last) *table.done = ++replay;
}

void run_replay() {
  for (const auto& table : replayed->update_tables) update_nodes(table);
  if (!replayed->nodes.empty()) replayed_words.push_back(replayed->nodes[0].words[1]);
}

}  // namespace

extern "C" {

void fake_cuda_begin_capture() {
  const std::lock_guard lock(mutex);
  capturing = capture_good = true;
}
bool fake_cuda_end_capture() {
  const std::lock_guard lock(mutex);
  capturing = false;
  return capture_good;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return CUDA_SUCCESS;
}
void fake_cuda_fail(const char* call, int after) {
  const std::lock_guard lock(mutex);
  failing_calls[call] = after;
}
int fake_cuda_calls(const char* call) {
  const std::lock_guard lock(mutex);
  return calls[call];
}

CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuInit(unsigned) { return count("cuInit", CUDA_ERROR_NO_DEVICE); }
CUresult cuDeviceGetCount(int* devices) {
  *devices = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "Fake", static_cast<size_t>(length));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&context_object);
  return count("cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current_context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  current_context = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  *context = current_context;
  current_context = nullptr;
  return CUDA_SUCCESS;
}
// As the real one, it wants an ELF file.
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  *module = reinterpret_cast<CUmodule>(&module_object);
  replays_by_ring.clear();  // variables of a module begin anew
  const CUresult wanted = count_unsafe("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  if (wanted != CUDA_SUCCESS) return wanted;
  return std::memcmp(image,
                     "\x7f"
                     "ELF",
                     4) == 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_IMAGE;
}
CUresult cuModuleUnload(CUmodule) { return count_unsafe("cuModuleUnload"); }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  *function = reinterpret_cast<CUfunction>(&function_object);
  return count("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return count("cuFuncSetAttribute"); }
FakeLaunch fake_cuda_last_launch() { return last_launch; }
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction, void** arguments, void**) {
  last_launch = {config->gridDimZ, 1, false, false};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) last_launch.cluster = attribute.value.clusterDim.x;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) last_launch.cooperative = attribute.value.cooperative != 0;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      last_launch.overlaps_previous = attribute.value.programmaticStreamSerializationAllowed != 0;
  }
  if (recording) {
    FakeNode& node = recorded.nodes.emplace_back();
    if (recorded.nodes.size() > 1) recorded.edges.emplace(handle_of(recorded.nodes[recorded.nodes.size() - 2]), handle_of(node));
    for (int i = 0; i < 2; ++i) std::memcpy(&node.words[i], arguments[i], 8);
  }
  return count("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  const CUresult result = count_unsafe("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  *memory = result == CUDA_SUCCESS ? std::malloc(bytes) : nullptr;
  return result;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* memory, unsigned) {
  *device = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  std::free(memory);
  return count_unsafe("cuMemFreeHost");
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case CUDA_ERROR_INVALID_IMAGE:
      *name = "CUDA_ERROR_INVALID_IMAGE";
      break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      *name = "CUDA_ERROR_NO_BINARY_FOR_GPU";
      break;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
      break;
    default:
      *name = "CUDA_ERROR_OTHER";
  }
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "told to fail";
  return CUDA_SUCCESS;
}

// Graphs: kernels that are launched on a stream while it is captured become nodes with two words of arguments.
CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = reinterpret_cast<CUstream>(&stream_object);
  return count("cuStreamCreate", CUDA_ERROR_OUT_OF_MEMORY);
}
CUresult cuStreamBeginCapture(CUstream, CUstreamCaptureMode) {
  recorded.nodes.clear();
  recorded.edges.clear();
  replayed = &recorded;
  replayed_words.clear();
  recording = true;
  return count("cuStreamBeginCapture", CUDA_ERROR_ILLEGAL_STATE);
}
CUresult cuStreamEndCapture(CUstream, CUgraph* graph) {
  recording = false;
  *graph = recorded.handle();
  return count("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
CUresult cuStreamGetCaptureInfo(CUstream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph* graph, const CUgraphNode**, const CUgraphEdgeData**, size_t*) {
  *status = recording ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  *graph = recorded.handle();
  return count("cuStreamGetCaptureInfo", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* out, size_t* found) {
  auto& nodes = graph_of(graph).nodes;
  if (out)
    for (size_t i = 0; i < nodes.size(); ++i) out[i] = handle_of(nodes[i]);
  *found = nodes.size();
  return CUDA_SUCCESS;
}
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData*, size_t* found) {
  const auto& edges = graph_of(graph).edges;
  size_t at = 0;
  if (from)
    for (const auto& [first, second] : edges) {
      from[at] = first;
      to[at++] = second;
    }
  *found = edges.size();
  return count("cuGraphGetEdges");
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*, size_t number) {
  for (size_t i = 0; i < number; ++i)
    if (!graph_of(graph).edges.emplace(from[i], to[i]).second) return CUDA_ERROR_INVALID_VALUE;  // as the real one
  return count("cuGraphAddDependencies");
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*, size_t number) {
  for (size_t i = 0; i < number; ++i)
    if (graph_of(graph).edges.erase({from[i], to[i]}) == 0) return CUDA_ERROR_INVALID_VALUE;
  return count("cuGraphRemoveDependencies");
}
bool fake_cuda_graph_edge(int from, int to) {
  const auto handle = [](int node) { return handle_of(recorded.nodes.at(static_cast<size_t>(node))); };
  return recorded.edges.contains({handle(from), handle(to)});
}
int fake_cuda_graph_edges() { return static_cast<int>(recorded.edges.size()); }
CUresult cuGraphNodeGetType(CUgraphNode, CUgraphNodeType* type) {
  *type = CU_GRAPH_NODE_TYPE_KERNEL;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {
  FakeNode& found = *reinterpret_cast<FakeNode*>(node);
  *parameters = {};
  parameters->func = reinterpret_cast<CUfunction>(&function_object);
  parameters->gridDimX = parameters->gridDimY = parameters->gridDimZ = parameters->blockDimX = parameters->blockDimY = parameters->blockDimZ = 1;
  parameters->kernelParams = found.addresses;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction, size_t index, size_t* offset, size_t* bytes) {
  if (index >= 2) return CUDA_ERROR_INVALID_VALUE;
  *offset = 8 * index;
  *bytes = 8;
  return CUDA_SUCCESS;
}
CUresult cuKernelGetParamInfo(CUkernel, size_t index, size_t* offset, size_t* bytes) { return cuFuncGetParamInfo(nullptr, index, offset, bytes); }
CUresult cuGraphMemsetNodeGetParams(CUgraphNode, CUDA_MEMSET_NODE_PARAMS*) { return CUDA_ERROR_INVALID_VALUE; }
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode, CUDA_MEMCPY3D*) { return CUDA_ERROR_INVALID_VALUE; }
// An executable graph is the graph itself here.
CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  *executable = reinterpret_cast<CUgraphExec>(graph);
  return count("cuGraphInstantiateWithFlags", CUDA_ERROR_OUT_OF_MEMORY);
}
CUresult cuGraphClone(CUgraph* clone, CUgraph original) {
  cloned.nodes.clear();
  cloned.edges.clear();
  cloned.update_tables.clear();
  for (const FakeNode& node : graph_of(original).nodes) {
    FakeNode& copy = cloned.nodes.emplace_back();
    std::memcpy(copy.words, node.words, sizeof copy.words);
    if (cloned.nodes.size() > 1) cloned.edges.emplace(handle_of(cloned.nodes[cloned.nodes.size() - 2]), handle_of(copy));
  }
  *clone = cloned.handle();
  return count("cuGraphClone", CUDA_ERROR_OUT_OF_MEMORY);
}
CUresult cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original, CUgraph clone) {
  for (size_t i = 0; i < recorded.nodes.size(); ++i)
    if (handle_of(recorded.nodes[i]) == original) *found = handle_of(graph_of(clone).nodes.at(i));
  return CUDA_SUCCESS;
}
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* out, size_t* found) {
  size_t at = 0;
  for (FakeNode& node : graph_of(graph).nodes) {
    bool waits = false;
    for (const auto& [from, to] : graph_of(graph).edges) waits |= to == handle_of(node);
    if (waits) continue;
    if (out) out[at] = handle_of(node);
    ++at;
  }
  *found = at;
  return CUDA_SUCCESS;
}
CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t number, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  const auto& table = *static_cast<const cxxinductor::targets::NodeUpdateTable*>(parameters->kernelParams[0]);
  *node = handle_of(graph_of(graph).update_tables.emplace_back(table));
  for (size_t i = 0; i < number; ++i) graph_of(graph).edges.emplace(after[i], *node);
  return count("cuGraphAddKernelNode", CUDA_ERROR_OUT_OF_MEMORY);
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue* value) {
  const CUresult wanted = count("cuGraphKernelNodeSetAttribute", CUDA_ERROR_INVALID_VALUE);
  if (wanted != CUDA_SUCCESS || attribute != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) return wanted;
  reinterpret_cast<FakeNode*>(node)->updatable = true;
  const_cast<CUkernelNodeAttrValue*>(value)->deviceUpdatableKernelNode.devNode = reinterpret_cast<CUgraphDeviceNode>(node);
  return CUDA_SUCCESS;
}
CUresult cuGraphUpload(CUgraphExec, CUstream) { return count("cuGraphUpload"); }
int fake_cuda_update_tables() { return static_cast<int>(replayed->update_tables.size()); }
void fake_cuda_hold_back(bool hold) {
  const std::lock_guard lock(gpu);
  held_back = hold;
  for (; !hold && held_replays > 0; --held_replays) run_replay();
}
unsigned long long fake_cuda_replayed_word(int replay) {
  const std::lock_guard lock(gpu);
  return replayed_words.at(static_cast<size_t>(replay));
}
CUresult cuStreamQuery(CUstream) {
  const CUresult wanted = count("cuStreamQuery", CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::lock_guard lock(gpu);
  return wanted == CUDA_SUCCESS && held_back ? CUDA_ERROR_NOT_READY : wanted;
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  for (int i = 0; i < 2; ++i) std::memcpy(&reinterpret_cast<FakeNode*>(node)->words[i], parameters->kernelParams[i], 8);
  return count("cuGraphKernelNodeSetParams", CUDA_ERROR_INVALID_VALUE);
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode, const CUDA_MEMSET_NODE_PARAMS*) { return CUDA_ERROR_INVALID_VALUE; }
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode, const CUDA_MEMCPY3D*) { return CUDA_ERROR_INVALID_VALUE; }
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  FakeNode& found = *reinterpret_cast<FakeNode*>(node);
  if (found.updatable) return CUDA_ERROR_INVALID_VALUE;  // the real one wants an upload after that
  for (int i = 0; i < 2; ++i) std::memcpy(&found.words[i], parameters->kernelParams[i], 8);
  return count("cuGraphExecKernelNodeSetParams");
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS*, CUcontext) { return CUDA_ERROR_INVALID_VALUE; }
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D*, CUcontext) { return CUDA_ERROR_INVALID_VALUE; }
CUresult cuGraphLaunch(CUgraphExec executable, CUstream) {
  if (count("cuGraphLaunch's memory", CUDA_ERROR_OUT_OF_MEMORY) != CUDA_SUCCESS) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = count("cuGraphLaunch", CUDA_ERROR_LAUNCH_FAILED);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(gpu);
  replayed = &graph_of(executable);
  if (held_back)
    ++held_replays;
  else
    run_replay();
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph) { return count("cuGraphDestroy"); }
CUresult cuGraphExecDestroy(CUgraphExec) { return count("cuGraphExecDestroy"); }
unsigned long long fake_cuda_graph_word(int node, int word) { return replayed->nodes.at(static_cast<size_t>(node)).words[word]; }

}  // extern "C"
