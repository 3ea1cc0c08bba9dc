// Between memory and lanes, and ops applied to lanes. Included by value after vector.h.
namespace cxxi {

// ---- memory -----------------------------------------------------------------------------------------------------
// The upper halves of 32-bit lanes, and lanes that have v there and zeros below: one shuffle each, where a conversion
// between 16 and 32 bits and a shift would be several instructions.
template <class V, int... I>
inline auto upper_halves(V v, indices<I...>) {
  return __builtin_shufflevector(v, v, (2 * I + 1)...);
}
template <class V, int... I>
inline auto as_upper_halves(V v, indices<I...>) {
  return __builtin_shufflevector(V{}, v, (I % 2 ? lane_count<V> + I / 2 : 0)...);
}
template <int L>
inline constexpr bool shuffles_halves = L >= 8 && 4 * L <= CXXI_VECTOR_BYTES;

// A value as the kernel holds it from the element(s) of memory, and back.
template <class D, int L, class V>
inline auto from_memory(V v) {
  if constexpr (same<D, bf16>) {
    if constexpr (shuffles_halves<L>) {
      return bit_cast<vec<unsigned int, L>>(as_upper_halves(v, typename make_indices<2 * L>::type()));
    } else if constexpr (L == 1) {
      return static_cast<unsigned int>(v) << 16;
    } else {
      return __builtin_convertvector(v, vec<unsigned int, L>) << 16;
    }
  } else if constexpr (!same<D, boolean>) {
    return v;
  } else if constexpr (L == 1) {
    return v != 0;
  } else {
    return as_mask<L>(v != 0);
  }
}
template <class D, int L, class V>
inline vec<typename D::element, L> to_memory(V v) {
  if constexpr (same<D, bf16>) {
    const auto bits = widen<L>(v);
    if constexpr (shuffles_halves<L>) {
      return upper_halves(bit_cast<vec<unsigned short, 2 * L>>(bits), typename make_indices<L>::type());
    } else if constexpr (L == 1) {
      return static_cast<unsigned short>(bits >> 16);
    } else {
      return __builtin_convertvector(bits >> 16, vec<unsigned short, L>);
    }
  } else if constexpr (!same<D, boolean>) {
    return widen<L>(v);
  } else if constexpr (L == 1) {
    return static_cast<unsigned char>(v);
  } else {
    return bit_cast<vec<unsigned char, L>>(as_bytes<1>(widen<L>(v)).bits & 1);
  }
}
template <class D, int L>
inline auto load(const typename D::element* p) {
  vec<typename D::element, L> v;
  __builtin_memcpy(&v, p, sizeof v);
  return from_memory<D, L>(v);
}
template <class D, int L, class V>
inline void store(typename D::element* p, V value) {
  const auto v = to_memory<D, L>(value);
  __builtin_memcpy(p, &v, sizeof v);
}
// offset(l): element offset of lane l. Lanes whose mask is false are not read and give `otherwise`.
template <class D, int L, class F>
inline auto gather(const typename D::element* p, F offset) {
  if constexpr (L == 1) {
    return load<D, 1>(p + offset(0));
  } else {
    vec<typename D::element, L> v;
    for (int l = 0; l < L; ++l) v[l] = p[offset(l)];
    return from_memory<D, L>(v);
  }
}
template <class D, int L, class M, class F, class O>
inline auto gather_masked(M m, const typename D::element* p, F offset, O other) {
  const typename D::element rest = to_memory<D, 1>(other);
  if constexpr (L == 1) {
    return from_memory<D, 1>(m ? p[offset(0)] : rest);
  } else {
    vec<typename D::element, L> v;
    for (int l = 0; l < L; ++l) v[l] = lane(m, l) ? p[offset(l)] : rest;
    return from_memory<D, L>(v);
  }
}
// As gather_masked where the lanes' offsets are consecutive: one access when every lane is wanted, none when no lane is.
template <class D, int L, class M, class F, class O>
inline auto load_masked(M m, const typename D::element* p, F offset, O other) {
  if constexpr (L == 1) {
    return gather_masked<D, L>(m, p, offset, other);
  } else {
    const typename D::element rest = to_memory<D, 1>(other);
    vec<typename D::element, L> v;
    if (all(m)) {
      __builtin_memcpy(&v, p + offset(0), sizeof v);
    } else if (all(!m)) {
      v = vec<typename D::element, L>{} + rest;
    } else {
      for (int l = 0; l < L; ++l) v[l] = lane(m, l) ? p[offset(l)] : rest;
    }
    return from_memory<D, L>(v);
  }
}
template <class D, int L, class F, class V>
inline void scatter(typename D::element* p, F offset, V value) {
  const auto v = to_memory<D, L>(value);
  for (int l = 0; l < L; ++l) p[offset(l)] = lane(v, l);
}
template <class D, int L, class M, class F, class V>
inline void scatter_masked(M m, typename D::element* p, F offset, V value) {
  const auto v = to_memory<D, L>(value);
  for (int l = 0; l < L; ++l) {
    if (lane(m, l)) p[offset(l)] = lane(v, l);
  }
}

// ---- ops --------------------------------------------------------------------------------------------------------
// f is the op's spelling. Where it does not work on vectors it is applied lane by lane; vectors that take several of the
// machine's go in halves.
template <class T, int L, class F, class... A>
inline vec<T, L> apply_lanes(F f, A... a) {
  vec<T, L> r;
  for (int l = 0; l < L; ++l) r[l] = static_cast<T>(f(lane(a, l)...));
  return r;
}
template <class T, int L, class F, class... A>
inline auto apply_wide(F f, A... a) {
  if constexpr (same<T, bool>) {
    if constexpr (requires { f(a...).bits; }) {
      return f(a...);
    } else if constexpr (requires { f(a...)[L - 1] << 1; }) {
      return as_mask<L>(f(a...));
    } else {
      vec<signed char, L> r;
      for (int l = 0; l < L; ++l) r[l] = f(lane(a, l)...) ? -1 : 0;
      return mask<1, L>{r};
    }
  } else if constexpr (requires { f(a...); }) {
    if constexpr (same<decltype(f(a...)), vec<T, L>>) {
      return f(a...);
    } else {
      return apply_lanes<T, L>(f, a...);
    }
  } else {
    return apply_lanes<T, L>(f, a...);
  }
}
template <class T, int L, class F, class... A>
inline auto apply(F f, A... a) {
  if constexpr (L == 1) {
    return static_cast<T>(f(a...));
  } else if constexpr ((splits<L, A> || ...)) {
    return join(apply<T, L / 2>(f, some_lanes<L / 2, 0>(a)...), apply<T, L / 2>(f, some_lanes<L / 2, L / 2>(a)...));
  } else {
    return apply_wide<T, L>(f, widen<L>(a)...);
  }
}

}  // namespace cxxi
