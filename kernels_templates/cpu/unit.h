// What a unit of kernels has of its own: the size of its vectors, and slots for the functions that ops call on vectors, which the loader fills.
#define CXXI_VECTOR_BYTES /*{{vector_bytes*/ 32 /*}}*/
#define CXXI_KEEP_SCALAR __asm__ volatile("")  // a tail is short: vectorising it again costs compile time
enum cxxi_slot {
  /*{{for slots*/ /*{{slot*/ cxxi_slot_exp_u10_f32 /*}}*/, /*}}*/
  cxxi_slot_count
};
extern "C" __attribute__((visibility("default"))) void* cxxi_math[cxxi_slot_count + 1];
void* cxxi_math[cxxi_slot_count + 1];
