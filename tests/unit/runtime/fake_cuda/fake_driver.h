// Controls of the CUDA driver of the tests, found by name in the opened library.
#pragma once

extern "C" {
// The call with this name ("cuLaunchKernel") fails once, after `after` successful ones.
void fake_cuda_fail(const char* call, int after);
int fake_cuda_calls(const char* call);
}
