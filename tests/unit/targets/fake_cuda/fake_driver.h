// Controls of the CUDA driver of the tests, found by name in the opened library.
#pragma once

extern "C" {
// The call with this name ("cuLaunchKernelEx") fails once, after `after` successful ones.
void fake_cuda_fail(const char* call, int after);
int fake_cuda_calls(const char* call);
// Some thread captures a graph in the global mode from here on, until fake_cuda_end_capture, which says whether it is good: calls
// that a capture forbids, from threads in another mode than the relaxed one, fail and spoil it.
void fake_cuda_begin_capture();
bool fake_cuda_end_capture();
// Of the last launch: blocks of a cluster, whether it is cooperative, whether it overlaps the kernel ahead of it.
struct FakeLaunch {
  unsigned grid_z, cluster;
  bool cooperative, overlaps_previous;
};
FakeLaunch fake_cuda_last_launch();
// A word of the arguments of a kernel in the graph that was recorded last.
unsigned long long fake_cuda_graph_word(int node, int word);
// Of the same graph: whether one node waits for another, and how many such pairs there are.
bool fake_cuda_graph_edge(int from, int to);
int fake_cuda_graph_edges();
// Kernels in front of that graph that update its nodes. From `true` on the GPU runs no replay, until `false`.
int fake_cuda_update_tables();
void fake_cuda_hold_back(bool hold);
// The second word of that graph's first kernel as a replay, from 0 on, had it.
unsigned long long fake_cuda_replayed_word(int replay);
}
