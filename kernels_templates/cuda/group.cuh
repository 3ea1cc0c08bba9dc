// Groups: consecutive elements that one thread loads, holds and stores together. Follows prelude.cuh in a unit.
//
// A group of narrow elements is kept packed in 32-bit words, so that a row that stays in registers costs what it costs in
// memory. `Wide` says that the address is aligned to the group (or to 16 bytes, where a group is larger).
template <class T>
struct cxxi_raw {
  CXXI_FN static unsigned int of(T v) { return (unsigned int)(v) & (sizeof(T) == 1 ? 0xffu : 0xffffu); }
  CXXI_FN static T from(unsigned int bits) { return T(bits); }
};
#define CXXI_RAW(type)                                                 \
  template <>                                                          \
  struct cxxi_raw<type> {                                              \
    CXXI_FN static unsigned int of(type v) { return v.bits; }          \
    CXXI_FN static type from(unsigned int bits) {                      \
      type v;                                                          \
      v.bits = decltype(v.bits)(bits);                                 \
      return v;                                                        \
    }                                                                  \
  };
CXXI_RAW(cxxi_bf16)
CXXI_RAW(cxxi_f16)
CXXI_RAW(cxxi_f8e4m3fn)
CXXI_RAW(cxxi_f8e5m2)
#undef CXXI_RAW
template <>
struct cxxi_raw<bool> {
  CXXI_FN static unsigned int of(bool v) { return v ? 1u : 0u; }
  CXXI_FN static bool from(unsigned int bits) { return (bits & 0xffu) != 0u; }
};

template <class T, int W, bool Packed = (sizeof(T) < 4 && sizeof(T) * W % 4 == 0)>
struct alignas(sizeof(T) * W < 16 ? sizeof(T) * W : 16) cxxi_group {
  T elements[W];
  CXXI_FN T get(int e) const { return elements[e]; }
  CXXI_FN void set(int e, T v) { elements[e] = v; }
};
template <class T, int W>
struct alignas(sizeof(T) * W < 16 ? sizeof(T) * W : 16) cxxi_group<T, W, true> {
  static constexpr int per_word = 4 / int(sizeof(T));
  static constexpr int bits = 8 * int(sizeof(T));
  static constexpr unsigned int mask = (1u << bits) - 1u;
  unsigned int words[W / per_word];
  CXXI_FN T get(int e) const { return cxxi_raw<T>::from((words[e / per_word] >> (e % per_word * bits)) & mask); }
  CXXI_FN void set(int e, T v) {
    unsigned int& word = words[e / per_word];
    const int shift = e % per_word * bits;
    word = (word & ~(mask << shift)) | (cxxi_raw<T>::of(v) << shift);
  }
};

// The widest unit that memory moves for a group of so many bytes.
template <int Bytes>
struct cxxi_word {
  using type = typename cxxi_word<(Bytes % 16 == 0) ? 16 : (Bytes % 8 == 0) ? 8 : (Bytes % 4 == 0) ? 4 : 0>::type;
};
template <>
struct cxxi_word<16> {
  using type = uint4;
};
template <>
struct cxxi_word<8> {
  using type = uint2;
};
template <>
struct cxxi_word<4> {
  using type = unsigned int;
};
template <>
struct cxxi_word<0> {
  using type = void;
};

template <int W, bool Wide, class T>
CXXI_FN cxxi_group<T, W> cxxi_load_group(const T* p) {
  cxxi_group<T, W> group = {};
  constexpr int bytes = int(sizeof(T)) * W;
  if constexpr (Wide && bytes % 4 == 0) {
    using Word = typename cxxi_word<bytes>::type;
#pragma unroll
    for (int i = 0; i < bytes / int(sizeof(Word)); ++i) {
      reinterpret_cast<Word*>(&group)[i] = reinterpret_cast<const Word*>(p)[i];
    }
  } else {
#pragma unroll
    for (int e = 0; e < W; ++e) group.set(e, p[e]);
  }
  return group;
}
// The first `count` elements; the others are zero.
template <int W, bool Wide, class T>
CXXI_FN cxxi_group<T, W> cxxi_load_part(const T* p, int count) {
  if (count >= W) return cxxi_load_group<W, Wide>(p);
  cxxi_group<T, W> group = {};
#pragma unroll
  for (int e = 0; e < W; ++e) {
    if (e < count) group.set(e, p[e]);
  }
  return group;
}
template <int W, class T>
CXXI_FN cxxi_group<T, W> cxxi_fill_group(T value) {
  cxxi_group<T, W> group = {};
#pragma unroll
  for (int e = 0; e < W; ++e) group.set(e, value);
  return group;
}
template <int W, bool Wide, class T>
CXXI_FN void cxxi_store_group(T* p, const cxxi_group<T, W>& group) {
  constexpr int bytes = int(sizeof(T)) * W;
  if constexpr (Wide && bytes % 4 == 0) {
    using Word = typename cxxi_word<bytes>::type;
#pragma unroll
    for (int i = 0; i < bytes / int(sizeof(Word)); ++i) {
      reinterpret_cast<Word*>(p)[i] = reinterpret_cast<const Word*>(&group)[i];
    }
  } else {
#pragma unroll
    for (int e = 0; e < W; ++e) p[e] = group.get(e);
  }
}
template <int W, bool Wide, class T>
CXXI_FN void cxxi_store_part(T* p, const cxxi_group<T, W>& group, int count) {
  if (count >= W) {
    cxxi_store_group<W, Wide>(p, group);
    return;
  }
#pragma unroll
  for (int e = 0; e < W; ++e) {
    if (e < count) p[e] = group.get(e);
  }
}

// A square of W groups: element e of group r changes places with element r of group e.
template <class T, int W>
CXXI_FN void cxxi_transpose(cxxi_group<T, W> (&square)[W]) {
#pragma unroll
  for (int r = 0; r < W; ++r) {
#pragma unroll
    for (int e = 0; e < r; ++e) {
      const T low = square[r].get(e), high = square[e].get(r);
      square[r].set(e, high);
      square[e].set(r, low);
    }
  }
}

// Between sweeps: from here on the compiler does not know what these packed elements were computed from, so that it unpacks them
// again rather than keep the unpacked ones, twice or four times as large, in registers.
template <class T, int W, int Items>
CXXI_FN void cxxi_keep_packed(cxxi_group<T, W, true> (&groups)[Items]) {
#pragma unroll
  for (int k = 0; k < Items; ++k) {
#pragma unroll
    for (int i = 0; i < int(sizeof(groups[k].words) / 4); ++i) cxxi_hide_origin(groups[k].words[i]);
  }
}
template <class T, int W, int Items>
CXXI_FN void cxxi_keep_packed(cxxi_group<T, W, false> (&)[Items]) {}

// ---- Index arithmetic in the variant's own width ---------------------------------------------------------------------
CXXI_FN int cxxi_floor_mod(int a, int b) {
  const int r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
CXXI_FN int cxxi_min_int(int a, int b) { return a < b ? a : b; }
CXXI_FN int cxxi_max_int(int a, int b) { return a > b ? a : b; }

// ---- Checked indices -------------------------------------------------------------------------------------------------
CXXI_FN bool cxxi_within(long long index, long long bound) {
  return (unsigned long long)(index) < (unsigned long long)(bound);
}
// The first failing check of all threads leaves its statement, index and bound; the host raises the error.
CXXI_FN void cxxi_report(int* record, int stmt, long long index, long long bound) {
  if (cxxi_compare_and_swap(record, 0, 1) != 0) return;
  record[2] = int(index & 0xffffffffLL);
  record[3] = int(index >> 32);
  record[4] = int(bound & 0xffffffffLL);
  record[5] = int(bound >> 32);
  record[1] = stmt;
  cxxi_fence_system();
  record[6] = 1;  // the record is complete
}
