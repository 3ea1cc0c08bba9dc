// How the threads of a row or a column join the states that they hold. Follows reduce.cuh in a unit.

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
    cxxi_sync_block();
    if (part >= 0 && part < Room) {
#pragma unroll
      for (int k = 0; k < Items; ++k) {
#pragma unroll
        for (int e = 0; e < W; ++e) shared[part * elements + (k * W + e) * Threads + int(lane)] = states[k][e];
      }
    }
    cxxi_sync_block();
    if constexpr (Room > 1) {
      for (int element = int(threadIdx.x); element < elements; element += Threads * Slots) {
        cxxi_joined<State> joined(shared[element]);
#pragma unroll
        for (int other = 1; other < Room; ++other) {
          if (turn + other < Slots) joined.add(shared[other * elements + element]);
        }
        shared[element] = joined.state();
      }
      cxxi_sync_block();
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
    cxxi_sync_block();
    if (first) {
#pragma unroll
      for (int e = 0; e < W; ++e) shared[(slot * W + e) * Groups + group] = states[e];
    }
    // A thread joins a few states of one column: in halves, most threads would wait.
#pragma unroll
    for (int apart = 1; apart < slots; apart *= in_turn) {
      cxxi_sync_block();
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
    cxxi_sync_block();
#pragma unroll
    for (int e = 0; e < W; ++e) states[e] = shared[e * Groups + group];
  }
}
