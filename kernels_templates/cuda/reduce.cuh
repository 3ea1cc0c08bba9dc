// States of reductions, one struct a row of reductions.def. Follows group.cuh in a unit; included only where a kernel reduces. How threads of a row or
// column join their states: join.cuh.
//
// T is the compute type of the operand. `update` takes the elements of one thread, in any order; `merge` joins with a state of
// other elements. States are plain data, so that they may lie in shared memory.

// ---- States ----------------------------------------------------------------------------------------------------------
// A pairwise tree over the elements of one group: short chains, and less rounding than one after the other.
template <class Combine, class T, int N>
CXXI_FN T cxxi_tree(const T (&values)[N]) {
  T level[N];
#pragma unroll
  for (int i = 0; i < N; ++i) level[i] = values[i];
#pragma unroll
  for (int width = N / 2; width > 0; width /= 2) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      if (i < width) level[i] = Combine::of(level[2 * i], level[2 * i + 1]);
    }
  }
  return level[0];
}

template <class T, class Combine>
struct cxxi_folded {
  static constexpr bool ordered = false;
  T value;
  CXXI_FN static cxxi_folded start() { return {Combine::template start<T>()}; }
  CXXI_FN void update(T v, long long) { value = Combine::of(value, v); }
  template <int N>
  CXXI_FN void update(const T (&values)[N], int count, long long) {
    if (count >= N) {
      value = Combine::of(value, cxxi_tree<Combine>(values));
      return;
    }
#pragma unroll
    for (int e = 0; e < N; ++e) {
      if (e < count) value = Combine::of(value, values[e]);
    }
  }
  CXXI_FN void merge(const cxxi_folded& other) { value = Combine::of(value, other.value); }
  CXXI_FN void merge_equal(const cxxi_folded& other) { merge(other); }
  CXXI_FN cxxi_folded from_lane(int mask) const { return {cxxi_from_lane(value, mask)}; }
  template <int>
  CXXI_FN T result() const {
    return value;
  }
};

template <class T>
CXXI_FN T cxxi_lowest() {
  return T(-1) < T(1) ? T((unsigned long long)(1) << (8 * sizeof(T) - 1)) : T(0);
}
template <>
CXXI_FN float cxxi_lowest<float>() {
  return -cxxi_infinity(0.0f);
}
template <>
CXXI_FN double cxxi_lowest<double>() {
  return -cxxi_infinity(0.0);
}
template <>
CXXI_FN bool cxxi_lowest<bool>() {
  return false;
}
template <class T>
CXXI_FN T cxxi_highest() {
  return T(~cxxi_lowest<T>());
}
template <>
CXXI_FN float cxxi_highest<float>() {
  return cxxi_infinity(0.0f);
}
template <>
CXXI_FN double cxxi_highest<double>() {
  return cxxi_infinity(0.0);
}
template <>
CXXI_FN bool cxxi_highest<bool>() {
  return true;
}

struct cxxi_add_states {
  template <class T>
  CXXI_FN static T start() {
    return T(0);
  }
  template <class T>
  CXXI_FN static T of(T a, T b) {
    return cxxi_add(a, b);
  }
};
struct cxxi_mul_states {
  template <class T>
  CXXI_FN static T start() {
    return T(1);
  }
  template <class T>
  CXXI_FN static T of(T a, T b) {
    return cxxi_mul(a, b);
  }
};
struct cxxi_max_states {
  template <class T>
  CXXI_FN static T start() {
    return cxxi_lowest<T>();
  }
  template <class T>
  CXXI_FN static T of(T a, T b) {
    return cxxi_maximum(a, b);
  }
  CXXI_FN static float of(float a, float b) { return cxxi_max_nan(a, b); }
};
struct cxxi_min_states {
  template <class T>
  CXXI_FN static T start() {
    return cxxi_highest<T>();
  }
  template <class T>
  CXXI_FN static T of(T a, T b) {
    return cxxi_minimum(a, b);
  }
  CXXI_FN static float of(float a, float b) { return cxxi_min_nan(a, b); }
};
struct cxxi_or_states {
  template <class T>
  CXXI_FN static T start() {
    return T(false);
  }
  template <class T>
  CXXI_FN static T of(T a, T b) {
    return a || b;
  }
};
struct cxxi_and_states {
  template <class T>
  CXXI_FN static T start() {
    return T(true);
  }
  template <class T>
  CXXI_FN static T of(T a, T b) {
    return a && b;
  }
};
template <class T>
using cxxi_sum = cxxi_folded<T, cxxi_add_states>;
template <class T>
using cxxi_prod = cxxi_folded<T, cxxi_mul_states>;
template <class T>
using cxxi_max = cxxi_folded<T, cxxi_max_states>;
template <class T>
using cxxi_min = cxxi_folded<T, cxxi_min_states>;
using cxxi_any = cxxi_folded<bool, cxxi_or_states>;
using cxxi_all = cxxi_folded<bool, cxxi_and_states>;

// NaN beats every number; among equal values the smaller position wins, whatever the order of joining.
template <class T, bool Largest>
struct cxxi_arg {
  static constexpr bool ordered = false;
  T value;
  long long position;  // -1: no element yet
  CXXI_FN static cxxi_arg start() { return {T(0), -1}; }
  CXXI_FN void update(T v, long long at) { merge({v, at}); }
  template <int N>
  CXXI_FN void update(const T (&values)[N], int count, long long first) {
#pragma unroll
    for (int e = 0; e < N; ++e) {
      if (e < count) update(values[e], first + e);
    }
  }
  CXXI_FN void merge(const cxxi_arg& other) {
    if (other.position < 0) return;
    const bool nan = value != value, other_nan = other.value != other.value;
    const bool better = Largest ? other.value > value : other.value < value;
    const bool equal = nan ? other_nan : other.value == value;
    if (position < 0 || (!nan && (other_nan || better)) || (equal && other.position < position)) *this = other;
  }
  CXXI_FN void merge_equal(const cxxi_arg& other) { merge(other); }
  CXXI_FN cxxi_arg from_lane(int mask) const { return {cxxi_from_lane(value, mask), cxxi_from_lane(position, mask)}; }
  template <int>
  CXXI_FN long long result() const {
    return position;
  }
};
template <class T>
using cxxi_argmax = cxxi_arg<T, true>;
template <class T>
using cxxi_argmin = cxxi_arg<T, false>;

// Mean and sum of squared deviations. A group is summed up on its own and joined by Chan's formula.
template <class T>
struct cxxi_welford {
  static constexpr bool ordered = true;  // joining is not symmetric in its last bits: the lower lane comes first
  T mean, m2;
  unsigned int count;
  CXXI_FN static cxxi_welford start() { return {T(0), T(0), 0u}; }
  CXXI_FN void update(T v, long long) {
    ++count;
    const T delta = v - mean;
    mean = mean + delta / T(count);
    m2 = m2 + delta * (v - mean);
  }
  template <int N>
  CXXI_FN void update(const T (&values)[N], int present, long long) {
    if (present < N) {
#pragma unroll
      for (int e = 0; e < N; ++e) {
        if (e < present) update(values[e], 0);
      }
      return;
    }
    const T group_mean = cxxi_tree<cxxi_add_states>(values) * (T(1) / T(N));
    T squares[N];
#pragma unroll
    for (int e = 0; e < N; ++e) {
      const T delta = values[e] - group_mean;
      squares[e] = delta * delta;
    }
    merge({group_mean, cxxi_tree<cxxi_add_states>(squares), (unsigned int)(N)});
  }
  CXXI_FN void merge(const cxxi_welford& other) {
    if (other.count == 0u) return;
    const T delta = other.mean - mean;
    const unsigned int joined = count + other.count;
    // Threads of a row mostly hold equally many elements: no division then.
    const T share = other.count == count ? T(0.5) : T(other.count) / T(joined);
    mean = mean + delta * share;
    m2 = m2 + (other.m2 + delta * delta * (T(count) * share));
    count = joined;
  }
  // With a state of as many elements: no division, and symmetric.
  CXXI_FN void merge_equal(const cxxi_welford& other) {
    const T delta = other.mean - mean;
    mean = (mean + other.mean) * T(0.5);
    m2 = (m2 + other.m2) + delta * delta * (T(count) * T(0.5));
    count += count;
  }
  CXXI_FN cxxi_welford from_lane(int mask) const {
    return {cxxi_from_lane(mean, mask), cxxi_from_lane(m2, mask), cxxi_from_lane(count, mask)};
  }
  template <int Which>
  CXXI_FN T result() const {
    return Which == 0 ? mean : m2;
  }
};

// The largest element and the sum of exp(element - largest) so far. Elements of -infinity alone add nothing until the end,
// where an infinite maximum minus itself is no number.
template <class T>
struct cxxi_softmax_sum {
  static constexpr bool ordered = false;
  T largest, sum;
  CXXI_FN static cxxi_softmax_sum start() { return {cxxi_lowest<T>(), T(0)}; }
  CXXI_FN static T base(T maximum) { return maximum == cxxi_lowest<T>() ? T(0) : maximum; }
  CXXI_FN void update(T v, long long) { merge({v, T(1)}); }
  template <int N>
  CXXI_FN void update(const T (&values)[N], int present, long long) {
    if (present < N) {
#pragma unroll
      for (int e = 0; e < N; ++e) {
        if (e < present) update(values[e], 0);
      }
      return;
    }
    const T joined = cxxi_max_states::of(largest, cxxi_tree<cxxi_max_states>(values)), from = base(joined);
    T terms[N];
#pragma unroll
    for (int e = 0; e < N; ++e) terms[e] = cxxi_exp(values[e] - from);
    // Mostly the maximum stays.
    if (joined != largest) sum = sum * cxxi_exp(largest - from);
    sum = sum + cxxi_tree<cxxi_add_states>(terms);
    largest = joined;
  }
  CXXI_FN void merge(const cxxi_softmax_sum& other) {
    const T joined = cxxi_max_states::of(largest, other.largest), from = base(joined);
    sum = sum * cxxi_exp(largest - from) + other.sum * cxxi_exp(other.largest - from);
    largest = joined;
  }
  CXXI_FN void merge_equal(const cxxi_softmax_sum& other) { merge(other); }
  CXXI_FN cxxi_softmax_sum from_lane(int mask) const { return {cxxi_from_lane(largest, mask), cxxi_from_lane(sum, mask)}; }
  template <int Which>
  CXXI_FN T result() const {
    return Which == 0 ? largest : cxxi_abs(largest) == cxxi_infinity(largest) ? largest - largest : sum;
  }
};

// ---- Accumulators ----------------------------------------------------------------------------------------------------
// What a thread adds elements to one by one, where a state would need a division for each.
template <class State>
struct cxxi_accumulator {
  State held = State::start();
  template <class T>
  CXXI_FN void update(T v, long long position) { held.update(v, position); }
  CXXI_FN State state() const { return held; }
};
// Moments about a center, which are joined by additions alone. The center is the mean of one of the states that are added, one without elements only
// if all are. However far it lies from the others' means, its own distance is part of m2: subtracting what the center is off loses little beside that,
// as long as that state has about as many elements as each other one.
template <class T>
struct cxxi_moments {
  T center, sum = T(0), squares = T(0);
  unsigned int count = 0u;
  CXXI_FN void add(const cxxi_welford<T>& state) {
    const T delta = state.mean - center, moved = delta * T(state.count);
    sum = sum + moved;
    squares = squares + (state.m2 + moved * delta);
    count += state.count;
  }
  // part: one over the count.
  CXXI_FN cxxi_welford<T> state(T part) const {
    const T shift = sum * part;
    // inf - inf would be no number. Where an element is infinite, so is the sum, and the result is none.
    if (squares == cxxi_infinity(squares) && sum - sum == T(0)) return {center + shift, squares, count};
    const T m2 = squares - sum * shift;
    return {center + shift, m2 < T(0) ? T(0) : m2, count};
  }
};
// Deviations from the first element. That is one of the elements: however far it lies from the mean, its own deviation is part of m2,
// and what a few dozen additions lose is small beside it.
template <class T>
struct cxxi_accumulator<cxxi_welford<T>> {
  T first = T(0), sum = T(0), squares = T(0);
  unsigned int count = 0u;
  CXXI_FN void update(T v, long long) {
    if (count == 0u) first = v;
    ++count;
    const T delta = v - first;
    sum = sum + delta;
    squares = squares + delta * delta;
  }
  CXXI_FN cxxi_welford<T> state() const {
    return count == 0u ? cxxi_welford<T>::start() : cxxi_moments<T>{first, sum, squares, count}.state(T(1) / T(count));
  }
};

// ---- Blocks ----------------------------------------------------------------------------------------------------------
// A thread that takes many elements puts its state aside every few dozen updates, and begins anew: of a long chain of
// additions, each one would lose more than the whole sum may. What was put aside is joined with nothing lost.
template <class State>
struct cxxi_blocks {
  State joined = State::start();
  CXXI_FN void add(const State& block) { joined.merge(block); }
  CXXI_FN State state() const { return joined; }
};

// `lost` is what rounding takes from the sum. An infinite sum loses what is no number, and stands as it is.
template <class T>
struct cxxi_exact_sum {
  T sum = T(0), lost = T(0);
  CXXI_FN void add(T block) {
    const T joined = sum + block, taken = joined - sum;
    lost = lost + ((sum - (joined - taken)) + (block - taken));
    sum = joined;
  }
  CXXI_FN T total() const {
    const T whole = sum + lost;
    return whole == whole ? whole : sum;
  }
};
template <class T>
struct cxxi_exact_blocks {
  cxxi_exact_sum<T> sum;
  CXXI_FN void add(const cxxi_sum<T>& block) { sum.add(block.value); }
  CXXI_FN cxxi_sum<T> state() const { return {sum.total()}; }
};
template <>
struct cxxi_blocks<cxxi_sum<float>> : cxxi_exact_blocks<float> {};
template <>
struct cxxi_blocks<cxxi_sum<double>> : cxxi_exact_blocks<double> {};
template <class T>
struct cxxi_blocks<cxxi_welford<T>> {
  cxxi_exact_sum<T> mean, m2;
  unsigned int count = 0u;
  CXXI_FN void add(const cxxi_welford<T>& block) {
    if (block.count == 0u) return;
    const T delta = (block.mean - mean.sum) - mean.lost;
    const unsigned int joined = count + block.count;
    const T share = T(block.count) / T(joined);
    mean.add(delta * share);
    m2.add(block.m2 + delta * (delta * (T(count) * share)));
    count = joined;
  }
  CXXI_FN cxxi_welford<T> state() const { return {mean.total(), m2.total(), count}; }
};
template <class State>
CXXI_FN void cxxi_put_aside(State& state, cxxi_blocks<State>& blocks) {
  blocks.add(state);
  state = State::start();
}
template <class State, int N>
CXXI_FN void cxxi_put_aside(State (&states)[N], cxxi_blocks<State> (&blocks)[N]) {
#pragma unroll
  for (int e = 0; e < N; ++e) cxxi_put_aside(states[e], blocks[e]);
}
template <class State, int N>
CXXI_FN void cxxi_put_aside(cxxi_accumulator<State> (&accumulators)[N], cxxi_blocks<State> (&blocks)[N]) {
#pragma unroll
  for (int e = 0; e < N; ++e) {
    blocks[e].add(accumulators[e].state());
    accumulators[e] = {};
  }
}
// The state of all elements, when the last ones have been taken.
template <class State>
CXXI_FN void cxxi_take_all(State& state, cxxi_blocks<State>& blocks) {
  blocks.add(state);
  state = blocks.state();
}
template <class State, int N>
CXXI_FN void cxxi_take_all(State (&states)[N], cxxi_blocks<State> (&blocks)[N]) {
#pragma unroll
  for (int e = 0; e < N; ++e) cxxi_take_all(states[e], blocks[e]);
}

template <class State, int N>
CXXI_FN void cxxi_take_all(State (&states)[N], const cxxi_accumulator<State> (&accumulators)[N]) {
#pragma unroll
  for (int e = 0; e < N; ++e) states[e] = accumulators[e].state();
}
template <class State, int N>
CXXI_FN void cxxi_take_all(State (&states)[N], const cxxi_accumulator<State> (&accumulators)[N], cxxi_blocks<State> (&blocks)[N]) {
  cxxi_take_all(states, accumulators);
  cxxi_take_all(states, blocks);
}
