// What functions and the shared memory of templates are declared with. First of all intrinsics in a unit.
//
// Files of this folder are all that CUDA text needs beside C++ and the words of CUDA itself (__global__, __shared__, threadIdx). Each function
// states what it computes, to the bit where the hardware defines it. tests/emulation has a host version of each file.
#define CXXI_FN __device__ __forceinline__
// The shared memory that a launch asks for, as bytes.
#define CXXI_DYNAMIC_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]
