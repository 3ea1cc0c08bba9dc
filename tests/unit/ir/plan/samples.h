// One sound plan that holds every kind of step, buffer, home and access; printed as the printer prints it.
#pragma once

inline const char* const every_plan_kind =
    R"(plan @f for cuda on cuda:0, cpu (@x: bf16[s0, 1000] bytes (2000*s0), sym s0, opaque from "gen", @w: f32[4] on cpu bytes (16), @g: f32[10, 100] bytes (4000) donated, @r: f32[] on cpu bytes (4)) where 1 <= s0 <= 65536, 8 | s0 {
  symbol s0 = input 1
  symbol s1 = input 0 dim 2
  arena (4096)
  eager_peak 1000000
  ; holds at most 140288 bytes, 140000 at least
  buffer @y: bf16[s0, 1000] bytes (2000*s0) standalone
  buffer @t: f32[1000] bytes (4000) arena at (96)
  buffer @u: f32[10] bytes (40) arena at (0)
  buffer @e: f32[10, 100] strides [1, 10] bytes (4000) extern_owned
  buffer @h: f32[1000] bytes (4000) standalone
  buffer @v: f32[10, 100] bytes (4000) slice of @t at (0)
  kernel @softmax on cuda:0 (bf16 read aligned, bf16 written aligned, f32 written) symbols [s0] where 0 <= i, 0 <= j <= 999 {
    index_limit (1000*s0) always_index32 order_changed bytes_read 100 bytes_written 200
    region @f0 over i < s0, j < 1000 {
      %0 = load @0[1000*i + j] at (1000*i + j) vector memory_space persistent from "model.py":12 "h" "aten._softmax"  ; (i j)
      %1 = cast<f32>(%0)  ; (i j)
      %2 = reduce<max>(%1) over j memory_space row  ; (i)
      %3 = sub(%1, %2)  ; (i j)
      %4 = exp(%3) memory_space persistent  ; (i j)
      %5 = reduce<sum>(%4) over j memory_space row  ; (i)
      %6 = div(%4, %5)  ; (i j)
      %7 = cast<bf16>(%6)  ; (i j)
      store @1[1000*i + j] = %7 at (1000*i + j) vector  ; (i j)
      store @2[0] = %5 at (0) broadcast  ; (i)
    }
    mapping rows space [i] row [j] vector_width 8 vector_tail threads_per_row 32 rows_per_block 4 items_per_thread 4 persistent
    row_loop [%0, %1, %2]
    row_loop [%1, %3, %4, %5]
    row_loop [%6, %7, %8]
    per_row [%9]
  }
  kernel @copy on cuda:0 (f32 read, f32 written) symbols [] {
    index_limit (1000) bytes_read 0 bytes_written 0
    region @f1 over i < 10, j < 100 {
      %0 = index(i)  ; (i)
      %1 = load @0[i + 10*j] at (i + 10*j) staged  ; (i j)
      store @1[100*i + j] = %1 at (100*i + j) strided  ; (i j)
    }
    mapping tiles space [i, j] tile_var i
    row_loop [%0, %1, %2]
  }
  kernel @fill on cuda:0 (f32 written, f32 read by_value) symbols [n] where 0 <= i, 1 <= n {
    index_limit (n) always_index32 max_grouped 3 bytes_read 0 bytes_written 40
    region @f2 over i < n {
      %0 = load @1[0] at (0) broadcast  ; ()
      store @0[i] = %0 at (i) vector  ; (i)
    }
    mapping pointwise space [i] vector_width 4 vector_tail
    row_loop [%0, %1]
  }
  allocate @y
  launch @softmax(@x, @y, @t) symbols [s0] grid [-floordiv(-s0, 4), 1] or @softmax grid [-floordiv(-s0, 4)] where s0 <= 100, 16 | s0 from "model.py":12 "h" "aten._softmax"
  @e = extern "aten::f"($0, $1) with (view @t: f32[10] strides [1] offset (s1), expr(s0)) from "m.py":2 "" ""
  launch @copy(@e, @v) symbols [] grid [40, 1]
  extern "aten::g.out"($0) with (@t) mutates [0]
  free @e
  reuse @g as @h
  launch @copy(@t, @h) symbols [] grid [40, 1]
  free @h
  grouped_launch @fill {
    (@t, @r) symbols [1000] grid [1, 1] from "model.py":12 "h" "aten._softmax"
    (@u, @r) symbols [10] grid [1, 1]
  }
  return @y, view @y: bf16[1000] strides [1] offset (1000), expr(s0 + 1), none
}
)";

// One product on tensor cores with a bias.
inline const char* const matmul_plan =
    R"(plan @f for cuda on cuda:0 (@x: bf16[s0, 64] bytes (128*s0), @w: bf16[96, 64] bytes (12288), @b: bf16[96] bytes (192), sym s0) where 1 <= s0 <= 65536 {
  symbol s0 = input 3
  ; holds at most 12288 bytes, 12288 at least
  buffer @y: bf16[s0, 96] bytes (192*s0) standalone
  kernel @k0_addmm on cuda:0 (bf16 read aligned, bf16 read aligned, bf16 read aligned, bf16 written aligned) symbols [s0] where 1 <= s0 <= 65536 {
    index_limit (96*s0) always_index32 order_changed bytes_read 12480 bytes_written 12288
    region @f0 over i0 < s0, i1 < 96, r0 < 64 {
      %0 = load @0[64*i0 + r0] at (64*i0 + r0) staged  ; (i0 r0)
      %1 = cast<f32>(%0)  ; (i0 r0)
      %2 = load @1[64*i1 + r0] at (64*i1 + r0) staged  ; (i1 r0)
      %3 = cast<f32>(%2)  ; (i1 r0)
      %4 = mul(%1, %3)  ; (i0 i1 r0)
      %5 = reduce<sum>(%4) over r0 memory_space row  ; (i0 i1)
      %6 = load @2[i1] at (i1) vector  ; (i1)
      %7 = cast<f32>(%6)  ; (i1)
      %8 = add(%5, %7)  ; (i0 i1)
      %9 = cast<bf16>(%8)  ; (i0 i1)
      store @3[96*i0 + i1] = %9 at (96*i0 + i1) vector  ; (i0 i1)
    }
    mapping matmul space [i0, i1] row [r0] vector_width 8 tile_m 64 tile_n 32 tile_k 64 warps_m 2 warps_n 2 stages 4 group_m 8 unroll 4 left_along_k right_along_k
    row_loop [%0, %1, %2, %3, %4, %5]
    per_row [%6, %7, %8, %9, %10]
  }
  allocate @y
  launch @k0_addmm(@x, @w, @b, @y) symbols [s0] grid [-3*floordiv(-s0, 64), 1]
  return @y
}
)";
