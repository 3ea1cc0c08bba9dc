// Reductions over lanes: one struct each, named after the rows of reductions.def, with a partial state in every lane.
// D is the operand's dtype. Included by value after vector.h.
//
//   update(v, position)  one element a lane; position: its place in the reduced space
//   merge(other)         joins the state of other elements, lane by lane, whatever their order
//   across()             the states of all lanes joined in one lane, as a tree
//   result<k>()          what the IR exposes
namespace cxxi {

template <class T>
constexpr T lowest() {
  if constexpr (same<T, float>) {
    return -__builtin_inff();
  } else if constexpr (same<T, double>) {
    return -__builtin_inf();
  } else if constexpr (T(-1) > T(0)) {
    return 0;
  } else {
    return static_cast<T>(1ull << (8 * sizeof(T) - 1));
  }
}
template <class T>
constexpr T highest() {
  if constexpr (same<T, float>) {
    return __builtin_inff();
  } else if constexpr (same<T, double>) {
    return __builtin_inf();
  } else {
    return static_cast<T>(~lowest<T>());
  }
}

// What a state is made of: the compute type, bytes for bool.
template <class D>
struct state_of {
  using type = typename D::compute;
};
template <>
struct state_of<boolean> {
  using type = unsigned char;
};
template <class D, int L, class V>
inline vec<typename state_of<D>::type, L> to_state(V v) {
  if constexpr (same<D, boolean>) {
    return to_memory<boolean, L>(v);
  } else {
    return widen<L>(to_compute<D>(v));
  }
}
template <class D, int L, class V>
inline auto from_state(V v) {
  if constexpr (same<D, boolean>) {
    return from_memory<boolean, L>(v);
  } else if constexpr (D::narrow) {
    return cast<D, f32>(v);
  } else {
    return v;
  }
}
template <class State, int L>
inline auto joined_across(const State& state) {
  if constexpr (L == 1) {
    return state;
  } else {
    auto half = state.template lanes<L / 2, 0>();
    half.merge(state.template lanes<L / 2, L / 2>());
    return joined_across<decltype(half), L / 2>(half);
  }
}

template <class D, int L>
struct sum {
  using T = typename state_of<D>::type;
  vec<T, L> value{};
  template <class V, class P>
  void update(V v, P) {
    value += to_state<D, L>(v);
  }
  void merge(const sum& o) { value += o.value; }
  template <int N, int First>
  sum<D, N> lanes() const {
    return {part<N, First>(value)};
  }
  auto across() const { return joined_across<sum, L>(*this); }
  template <int K>
  auto result() const {
    return from_state<D, L>(value);
  }
};

template <class D, int L>
struct prod {
  using T = typename state_of<D>::type;
  vec<T, L> value = widen<L>(T(1));
  template <class V, class P>
  void update(V v, P) {
    value *= to_state<D, L>(v);
  }
  void merge(const prod& o) { value *= o.value; }
  template <int N, int First>
  prod<D, N> lanes() const {
    return {part<N, First>(value)};
  }
  auto across() const { return joined_across<prod, L>(*this); }
  template <int K>
  auto result() const {
    return from_state<D, L>(value);
  }
};

// Largest: NaN sticks, as no comparison replaces it.
template <class D, int L>
struct max {
  using T = typename state_of<D>::type;
  vec<T, L> value = widen<L>(lowest<T>());
  void take(vec<T, L> v) {
    if constexpr (T(0.5) == T(0)) {
      value = v > value ? v : value;
    } else {
      value = ((v > value) | (v != v)) ? v : value;
    }
  }
  template <class V, class P>
  void update(V v, P) {
    take(to_state<D, L>(v));
  }
  void merge(const max& o) { take(o.value); }
  template <int N, int First>
  max<D, N> lanes() const {
    return {part<N, First>(value)};
  }
  auto across() const { return joined_across<max, L>(*this); }
  template <int K>
  auto result() const {
    return from_state<D, L>(value);
  }
};
template <class D, int L>
struct min {
  using T = typename state_of<D>::type;
  vec<T, L> value = widen<L>(highest<T>());
  void take(vec<T, L> v) {
    if constexpr (T(0.5) == T(0)) {
      value = v < value ? v : value;
    } else {
      value = ((v < value) | (v != v)) ? v : value;
    }
  }
  template <class V, class P>
  void update(V v, P) {
    take(to_state<D, L>(v));
  }
  void merge(const min& o) { take(o.value); }
  template <int N, int First>
  min<D, N> lanes() const {
    return {part<N, First>(value)};
  }
  auto across() const { return joined_across<min, L>(*this); }
  template <int K>
  auto result() const {
    return from_state<D, L>(value);
  }
};

// Truth values as bytes 0 and 1.
template <class D, int L>
struct any {
  vec<unsigned char, L> value{};
  template <class V, class P>
  void update(V v, P) {
    value |= to_memory<boolean, L>(cast<boolean, D>(v));
  }
  void merge(const any& o) { value |= o.value; }
  template <int N, int First>
  any<D, N> lanes() const {
    return {part<N, First>(value)};
  }
  auto across() const { return joined_across<any, L>(*this); }
  template <int K>
  auto result() const {
    return from_memory<boolean, L>(value);
  }
};
template <class D, int L>
struct all_of {
  vec<unsigned char, L> value = widen<L>(static_cast<unsigned char>(1));
  template <class V, class P>
  void update(V v, P) {
    value &= to_memory<boolean, L>(cast<boolean, D>(v));
  }
  void merge(const all_of& o) { value &= o.value; }
  template <int N, int First>
  all_of<D, N> lanes() const {
    return {part<N, First>(value)};
  }
  auto across() const { return joined_across<all_of, L>(*this); }
  template <int K>
  auto result() const {
    return from_memory<boolean, L>(value);
  }
};

// The first position of the largest (Sign 1) or smallest (Sign -1) element; NaN beats all. Lanes hold interleaved
// positions, so ties are decided by position, never by the order of merging. Within a lane positions grow from update to
// update. Position: int, where the reduced space has fewer points than that counts.
template <class D, int L, int Sign, class Position>
struct extreme_position {
  using T = typename state_of<D>::type;
  vec<T, L> value = widen<L>(Sign > 0 ? lowest<T>() : highest<T>());
  vec<Position, L> at = widen<L>(highest<Position>());
  void take(vec<T, L> v, vec<Position, L> p) {
    const auto nan = as_mask<L>(v != v), old_nan = as_mask<L>(value != value);
    const auto beats = as_mask<L>(Sign > 0 ? v > value : v < value) & !old_nan;
    const auto equal = as_mask<L>(v == value) | (nan & old_nan);
    const auto chosen = beats | (nan & !old_nan) | (equal & as_mask<L>(p < at));
    value = select(chosen, v, value);
    at = select(chosen, p, at);
  }
  template <class V, class P>
  void update(V v, P position) {
    const vec<T, L> x = to_state<D, L>(v);
    const auto no_better = as_mask<L>(Sign > 0 ? x <= value : x >= value);  // false for NaN
    const auto chosen = !no_better & as_mask<L>(value == value);
    value = select(chosen, x, value);
    at = select(chosen, widen<L>(convert<Position>(position)), at);
  }
  void merge(const extreme_position& o) { take(o.value, o.at); }
  template <int N, int First>
  extreme_position<D, N, Sign, Position> lanes() const {
    return {part<N, First>(value), part<N, First>(at)};
  }
  auto across() const { return joined_across<extreme_position, L>(*this); }
  template <int K>
  auto result() const {  // nothing was better than the least value that there is: the first element is one of those
    return convert<long long>(select(as_mask<L>(at == highest<Position>()), vec<Position, L>{}, at));
  }
};
template <class D, int L>
using argmax = extreme_position<D, L, 1, int>;
template <class D, int L>
using argmin = extreme_position<D, L, -1, int>;
template <class D, int L>
using long_argmax = extreme_position<D, L, 1, long long>;
template <class D, int L>
using long_argmin = extreme_position<D, L, -1, long long>;

// Mean and sum of squared deviations. Every lane has seen the same number of elements.
template <class D, int L>
struct welford {
  using T = typename state_of<D>::type;
  vec<T, L> mean{}, m2{};
  long long count = 0;
  template <class V, class P>
  void update(V v, P) {
    const vec<T, L> x = to_state<D, L>(v);
    ++count;
    const vec<T, L> delta = x - mean;
    mean += delta * (T(1) / static_cast<T>(count));
    m2 += delta * (x - mean);
  }
  void merge(const welford& o) {
    if (o.count == 0) return;
    const T mine = static_cast<T>(count), theirs = static_cast<T>(o.count), total = static_cast<T>(count + o.count);
    const vec<T, L> delta = o.mean - mean;
    mean += delta * (theirs / total);
    m2 += o.m2 + delta * (delta * (mine * (theirs / total)));
    count += o.count;
  }
  template <int N, int First>
  welford<D, N> lanes() const {
    return {part<N, First>(mean), part<N, First>(m2), count};
  }
  auto across() const { return joined_across<welford, L>(*this); }
  template <int K>
  auto result() const {
    if constexpr (K == 0) {
      return mean;
    } else {
      return m2;
    }
  }
};

}  // namespace cxxi
