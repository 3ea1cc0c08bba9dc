// States of reductions, one struct a row of reductions.def, and how threads of a row or column join them. Follows
// group.cuh in a unit; included only where a kernel reduces.
//
// T is the compute type of the operand. `update` takes the elements of one thread, in any order; `merge` joins with a state of
// other elements. States are plain data, so that they may lie in shared memory.

// ---- Exchange between the threads of a warp --------------------------------------------------------------------------
template <class T>
CXXI_FN T cxxi_from_lane(T v, int mask) {
  return T(__shfl_xor_sync(0xffffffffu, int(v), mask));
}
template <class T>
CXXI_FN T cxxi_of_lane(T v, int lane) {
  return __shfl_sync(0xffffffffu, v, lane);
}
#define CXXI_FROM_LANE(type) \
  CXXI_FN type cxxi_from_lane(type v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
CXXI_FROM_LANE(unsigned int)
CXXI_FROM_LANE(float)
CXXI_FROM_LANE(double)
CXXI_FROM_LANE(long long)
CXXI_FROM_LANE(unsigned long long)
#undef CXXI_FROM_LANE

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
#ifndef CXXI_HOST_EMULATION
  CXXI_FN static float of(float a, float b) {
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
  }
#endif
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
#ifndef CXXI_HOST_EMULATION
  CXXI_FN static float of(float a, float b) {
    float smaller;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
    return smaller;
  }
#endif
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

// ---- Joining ---------------------------------------------------------------------------------------------------------
// Equal: both threads have seen equally many elements.
template <bool Equal, class State>
CXXI_FN void cxxi_lane_reduce(State& state, int mask) {
  State other = state.from_lane(mask);
  if constexpr (Equal) {
    state.merge_equal(other);
  } else if (State::ordered && (int(threadIdx.x) & mask)) {
    other.merge(state);
    state = other;
  } else {
    state.merge(other);
  }
}
// Between lanes that differ in the bits [First, Last) of their number: afterwards they hold the same state.
template <int First, int Last, bool Equal = false, class State>
CXXI_FN void cxxi_warp_reduce(State& state) {
#pragma unroll
  for (int mask = First; mask < Last; mask *= 2) cxxi_lane_reduce<Equal>(state, mask);
}
// The same of W columns. A thread has taken as many elements of one as of the others.
template <int First, int Last, int W, class State>
CXXI_FN void cxxi_warp_reduce_columns(State (&states)[W]) {
#pragma unroll
  for (int e = 0; e < W; ++e) cxxi_warp_reduce<First, Last>(states[e]);
}
template <int First, int Last, int W, class T>
CXXI_FN void cxxi_warp_reduce_columns(cxxi_welford<T> (&states)[W]) {
  if constexpr (First < Last) {
    const int first_lane = int(threadIdx.x) % 32 & ~(Last - First);
    unsigned int count = states[0].count;
#pragma unroll
    for (int mask = First; mask < Last; mask *= 2) count += cxxi_from_lane(count, mask);
    const T part = count == 0u ? T(0) : T(1) / T(count);
#pragma unroll
    for (int e = 0; e < W; ++e) {
      cxxi_moments<T> moments{cxxi_of_lane(states[e].mean, first_lane)};
      moments.add(states[e]);
#pragma unroll
      for (int mask = First; mask < Last; mask *= 2) {
        moments.sum = moments.sum + cxxi_from_lane(moments.sum, mask);
        moments.squares = moments.squares + cxxi_from_lane(moments.squares, mask);
      }
      moments.count = count;
      states[e] = moments.state(part);
    }
  }
}
// The states of several threads for the same elements, one after the other.
template <class State>
struct cxxi_joined {
  State held;
  CXXI_FN explicit cxxi_joined(const State& first) : held(first) {}
  CXXI_FN void add(const State& other) { held.merge(other); }
  CXXI_FN State state() const { return held; }
};
template <class T>
struct cxxi_joined<cxxi_welford<T>> {
  cxxi_moments<T> held;
  CXXI_FN explicit cxxi_joined(const cxxi_welford<T>& first) : held{first.mean, T(0), first.m2, first.count} {}
  CXXI_FN void add(const cxxi_welford<T>& other) { held.add(other); }
  CXXI_FN cxxi_welford<T> state() const { return held.count == 0u ? cxxi_welford<T>::start() : held.state(T(1) / T(held.count)); }
};
// A row of Threads threads. More than a warp: share, a barrier, collect; `shared` has an entry a warp of the block.
template <int Threads, bool Equal, class State>
CXXI_FN void cxxi_block_reduce(State& state) {
  cxxi_warp_reduce<1, Threads, Equal>(state);
}
template <bool Equal, class State>
CXXI_FN void cxxi_share_row(State& state, State* shared) {
  cxxi_warp_reduce<1, 32, Equal>(state);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = state;
}
template <int Threads, bool Equal, class State>
CXXI_FN void cxxi_collect_row(State& state, const State* shared) {
  constexpr int warps = Threads / 32;
  state = shared[threadIdx.x / Threads * warps + threadIdx.x % warps];
  cxxi_warp_reduce<1, warps, Equal>(state);
}
// States that the Slots parts of a block, of Threads threads each, hold for the same columns: the first part ends with what all of them joined, in
// the order of the parts. `shared_bytes` has room for the states of Room parts and may be in use.
template <int Threads, int Slots, int Room, class State, int Items, int W>
CXXI_FN void cxxi_slot_reduce(State (&states)[Items][W], void* shared_bytes, unsigned int lane, unsigned int slot) {
  constexpr int elements = Items * W * Threads;
  State* shared = static_cast<State*>(shared_bytes);
#pragma unroll 1
  for (int turn = 0; turn < Slots; turn += Room) {
    const int part = int(slot) - turn;
    __syncthreads();
    if (part >= 0 && part < Room) {
#pragma unroll
      for (int k = 0; k < Items; ++k) {
#pragma unroll
        for (int e = 0; e < W; ++e) shared[part * elements + (k * W + e) * Threads + int(lane)] = states[k][e];
      }
    }
    __syncthreads();
    if constexpr (Room > 1) {
      for (int element = int(threadIdx.x); element < elements; element += Threads * Slots) {
        cxxi_joined<State> joined(shared[element]);
#pragma unroll
        for (int other = 1; other < Room; ++other) {
          if (turn + other < Slots) joined.add(shared[other * elements + element]);
        }
        shared[element] = joined.state();
      }
      __syncthreads();
    }
    if (slot != 0) continue;
#pragma unroll
    for (int k = 0; k < Items; ++k) {
#pragma unroll
      for (int e = 0; e < W; ++e) {
        const State& joined = shared[(k * W + e) * Threads + int(lane)];
        if (turn == 0)
          states[k][e] = joined;
        else
          states[k][e].merge(joined);
      }
    }
  }
}
// States of Groups groups of W elements in shared memory: chunks of at most 16 bytes, those of consecutive groups side by
// side, so that no two lanes of a wide access meet in a bank. Threads keep to groups of their own.
template <class State, int W, int Groups>
struct cxxi_shared_states {
  static constexpr int size = int(sizeof(State)), count = W * size < 16 ? W : 16 / size;
  struct alignas(count * size) chunk {
    State states[count];
  };
  chunk* chunks;
  CXXI_FN void load(State (&states)[W], unsigned int group) const {
#pragma unroll
    for (int c = 0; c < W / count; ++c) {
      const chunk from = chunks[c * Groups + group];
#pragma unroll
      for (int i = 0; i < count; ++i) states[c * count + i] = from.states[i];
    }
  }
  CXXI_FN void store(const State (&states)[W], unsigned int group) const {
#pragma unroll
    for (int c = 0; c < W / count; ++c) {
      chunk to;
#pragma unroll
      for (int i = 0; i < count; ++i) to.states[i] = states[c * count + i];
      chunks[c * Groups + group] = to;
    }
  }
};
// A strip of Groups groups of W columns, Threads threads a column. Every thread of the block takes part; `shared` may be in
// use by an earlier call.
template <int Threads, int Groups, int W, class State>
CXXI_FN void cxxi_column_reduce(State (&states)[W], void* shared_bytes) {
  constexpr bool in_lanes = Groups < 32 && (Groups & (Groups - 1)) == 0;
  constexpr int in_warp = !in_lanes ? 1 : Threads * Groups < 32 ? Threads : 32 / Groups;
  constexpr int slots = Threads / in_warp, in_turn = 8, columns = W * Groups;  // the slots are a power of two
  cxxi_warp_reduce_columns<Groups, Groups * in_warp>(states);
  if constexpr (slots > 1) {
    State* shared = static_cast<State*>(shared_bytes);
    const int group = threadIdx.x % Groups, slot = threadIdx.x / (Groups * in_warp);
    const bool first = threadIdx.x / Groups % in_warp == 0;
    __syncthreads();
    if (first) {
#pragma unroll
      for (int e = 0; e < W; ++e) shared[(slot * W + e) * Groups + group] = states[e];
    }
    // A thread joins a few states of one column: in halves, most threads would wait.
#pragma unroll
    for (int apart = 1; apart < slots; apart *= in_turn) {
      __syncthreads();
      for (int part = int(threadIdx.x); part < columns * ((slots / apart + in_turn - 1) / in_turn); part += Threads * Groups) {
        const int first_slot = part / columns * in_turn * apart, column = part % columns;
        State& place = shared[first_slot * columns + column];
        cxxi_joined<State> joined(place);
#pragma unroll
        for (int i = 1; i < in_turn; ++i) {
          if (i * apart < slots) joined.add(shared[(first_slot + i * apart) * columns + column]);
        }
        place = joined.state();
      }
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < W; ++e) states[e] = shared[e * Groups + group];
  }
}
