// Indices against bounds. Included by value after vector_memory.h.
namespace cxxi {

// record: {0 or 1, number of the check, index found, bound}; the first failure of any thread is kept.
template <class V>
inline bool within(V indices, index bound, long long* record, int check) {
  constexpr int L = lane_count<V>;
  if constexpr (L > 1) {
    const auto low = apply<bool, L>([](auto i, auto limit) -> decltype(i >= limit) { return i >= limit; }, indices, 0ll);
    const auto high = apply<bool, L>([](auto i, auto limit) -> decltype(i < limit) { return i < limit; }, indices, bound);
    if (__builtin_expect(all(low & high), true)) return true;
  }
  for (int l = 0; l < L; ++l) {
    const index found = lane(indices, l);
    if (__builtin_expect(found < 0 || found >= bound, false)) {
      long long expected = 0;
      if (__atomic_compare_exchange_n(record, &expected, 1LL, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        record[1] = check;
        record[2] = found;
        record[3] = bound;
      }
      return false;
    }
  }
  return true;
}

}  // namespace cxxi
