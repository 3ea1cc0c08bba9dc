// Indices against bounds. Included by value after vector.h.
namespace cxxi {

// record: {0 or 1, number of the check, index found, bound}; the first failure of any thread is kept.
template <class V>
inline bool within(V indices, index bound, long long* record, int check) {
  for (int l = 0; l < lane_count<V>; ++l) {
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
