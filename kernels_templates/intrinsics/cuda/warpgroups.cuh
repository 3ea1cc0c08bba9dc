// Products of warp groups: the tensor cores of sm_90a read both factors from shared memory (PTX ISA, "Asynchronous warpgroup level matrix
// multiply-accumulate"). All threads of the group of four warps must be at the same call.
//
// Sums are 64 x N for four warps: lane l of warp w holds, of each eight columns, rows 16 * w + l / 4 and that + 8, columns
// 2 * (l % 4) + {0, 1}. A factor is described by where it starts and how it lies: in blocks of `swizzle` bytes, 64 or 128, along its
// contiguous dimension (k, or m and n). In address a, bits 4 to 5 (of 64) or 4 to 6 (of 128) are exchanged for their exclusive or with as many
// bits from bit 7 on.

typedef unsigned long long cxxi_tile_descriptor;
// start: a multiple of 16. leading: bytes between blocks along m or n (not along k). stride: between groups of eight rows, which lie
// `swizzle` bytes apart.
CXXI_FN cxxi_tile_descriptor cxxi_describe_tile(const void* start, int leading, int stride, int swizzle) {
  const cxxi_tile_descriptor mode = swizzle == 128 ? 1 : 2;
  return cxxi_tile_descriptor(((unsigned int)(__cvta_generic_to_shared(start)) & 0x3ffff) >> 4) | cxxi_tile_descriptor(leading >> 4) << 16 |
         cxxi_tile_descriptor(stride >> 4) << 32 | mode << 62;
}
// What this thread stored in shared memory, or waited for, is there for products after the next barrier.
CXXI_FN void cxxi_publish_stage() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// What this thread stored in its sums is there for the products behind it.
CXXI_FN void cxxi_begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// The products since the last call become a group.
CXXI_FN void cxxi_commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most `Pending` of the warp group's last groups are under way: the others have read their factors and written their sums.
template <int Pending>
CXXI_FN void cxxi_wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
// Sums are not read, nor their registers moved, before this.
CXXI_FN void cxxi_settle(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }

#define CXXI_WARPGROUP_OPERANDS_64 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CXXI_WARPGROUP_OPERANDS_128 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, " \
  "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
  "%62, %63"
#define CXXI_WARPGROUP_OPERANDS_256 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, " \
  "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
  "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, " \
  "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, " \
  "%119, %120, %121, %122, %123, %124, %125, %126, %127"

#define CXXI_SUMS_8(s) CXXI_SUMS_4(s) , CXXI_SUMS_4((s + 1))
#define CXXI_SUMS_4(s) "+f"(sums[s][0]), "+f"(sums[s][1]), "+f"(sums[s][2]), "+f"(sums[s][3])
#define CXXI_SUMS_16(s) CXXI_SUMS_8(s), CXXI_SUMS_8((s + 2))
#define CXXI_SUMS_32(s) CXXI_SUMS_16(s), CXXI_SUMS_16((s + 4))
#define CXXI_SUMS_64(s) CXXI_SUMS_32(s), CXXI_SUMS_32((s + 8))
#define CXXI_SUMS_128(s) CXXI_SUMS_64(s), CXXI_SUMS_64((s + 16))
// sums += left * right over 16 of k, for 64, 128 or 256 columns, at any time up to the wait for its group. LeftAlongK, RightAlongK: the
// factor's contiguous dimension is k. Products are exact; the order and rounding of their sums is the hardware's.
#define CXXI_WARPGROUP_MULTIPLY(columns, registers, left_at, right_at, left_turned, right_turned, storage, name)              \
  template <bool LeftAlongK, bool RightAlongK>                                                                                \
  CXXI_FN void cxxi_multiply_add_group(float (&sums)[columns / 8][4], cxxi_tile_descriptor left, cxxi_tile_descriptor right,   \
                                       storage) {                                                                             \
    asm volatile("{\n.reg .pred add;\nsetp.eq.u32 add, 1, 1;\nwgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." name "." name \
                 " {" CXXI_WARPGROUP_OPERANDS_##columns "}, %" #left_at ", %" #right_at ", add, 1, 1, %" #left_turned          \
                 ", %" #right_turned ";\n}"                                                                                   \
                 : CXXI_SUMS_##registers(0)                                                                                   \
                 : "l"(left), "l"(right), "n"(LeftAlongK ? 0 : 1), "n"(RightAlongK ? 0 : 1));                                 \
  }
CXXI_WARPGROUP_MULTIPLY(64, 32, 32, 33, 34, 35, cxxi_bf16, "bf16")
CXXI_WARPGROUP_MULTIPLY(64, 32, 32, 33, 34, 35, cxxi_f16, "f16")
CXXI_WARPGROUP_MULTIPLY(128, 64, 64, 65, 66, 67, cxxi_bf16, "bf16")
CXXI_WARPGROUP_MULTIPLY(128, 64, 64, 65, 66, 67, cxxi_f16, "f16")
CXXI_WARPGROUP_MULTIPLY(256, 128, 128, 129, 130, 131, cxxi_bf16, "bf16")
CXXI_WARPGROUP_MULTIPLY(256, 128, 128, 129, 130, 131, cxxi_f16, "f16")
